//! The time to open a table of 10 GB.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::{sparse, tables};
use crate::options::Options;
use crate::row::{Row, median};

const N_BYTES: usize = 10_000_000_000;
const LIMIT_S: f64 = 0.005;
/// Repetitions per round, of which the median is used.
const N_OPENS: usize = 20;

pub(crate) fn run(options: &Options, folder: &Path) -> Result<Vec<Row>> {
    let path = folder.join("open.safetensors");
    let n_rows = sparse::table(&path, N_BYTES)?.n_rows;
    let mut medians = Vec::new();
    for _ in 0..options.n_rounds {
        let mut seconds = Vec::new();
        for _ in 0..N_OPENS {
            let started = Instant::now();
            let table = tables::mapped(&path)?;
            let last = table.rows::<f32>(n_rows - 1..n_rows)?;
            black_box(last[0]);
            seconds.push(started.elapsed().as_secs_f64());
            ensure!(table.n_rows() == n_rows && last.iter().all(|&x| x == 0.0), "{}: has other rows", path.display());
        }
        medians.push(median(&seconds));
    }
    std::fs::remove_file(&path)?;
    Ok(vec![Row::at_most("loader", "opening a table of 10 GB, and its last row".to_owned(), medians, "s", LIMIT_S)])
}
