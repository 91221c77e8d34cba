//! The table as a CSV file.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use brisk_atomic_file::AtomicFile;
use rayon::prelude::*;

use super::{Simulation, columns};

/// Rows that one thread simulates and prints at a time.
const CHUNK_ROWS: u64 = 4096;
/// Chunks per write.
const N_CHUNKS: u64 = 16;

/// Writes events `first_row..first_row + n_rows` with a header, the label first. Numbers are printed in the shortest form that
/// reads back as the same `f32`.
///
/// The file appears at `path` when it is complete. A test set consists of the rows that follow the training set: use the same seed, and the
/// training set's length as `first_row`.
///
/// # Errors
/// If the folder cannot be written to, or the disk is full; `path` is then unchanged.
pub(crate) fn write_csv(path: &Path, n_rows: u64, seed: u64, first_row: u64) -> anyhow::Result<()> {
    write(path, n_rows, seed, first_row).with_context(|| format!("{}: could not write {n_rows} simulated rows", path.display()))
}

fn write(path: &Path, n_rows: u64, seed: u64, first_row: u64) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    writeln!(file, "{}", columns::NAMES.join(","))?;
    let simulation = Simulation { seed };
    let end = first_row + n_rows;
    for first in (first_row..end).step_by((CHUNK_ROWS * N_CHUNKS) as usize) {
        let starts = (0..N_CHUNKS).into_par_iter().map(|chunk| (first + chunk * CHUNK_ROWS).min(end));
        let texts: Vec<String> = starts.map(|start| printed(&simulation, start, end.min(start + CHUNK_ROWS))).collect();
        for text in &texts {
            file.write_all(text.as_bytes())?;
        }
    }
    Ok(file.publish()?)
}

fn printed(simulation: &Simulation, start: u64, end: u64) -> String {
    let mut text = String::with_capacity((end - start) as usize * 320);
    for i in start..end {
        let (label, features) = simulation.event(i);
        text.push(if label == 1 { '1' } else { '0' });
        for value in features {
            write!(text, ",{value}").expect("a String takes any text");
        }
        text.push('\n');
    }
    text
}
