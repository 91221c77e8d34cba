//! The table that benches of reading write, and the median of their figures.

use std::error::Error;
use std::path::Path;

use brisk_table::{Schema, TableWriter};

pub(crate) const N_COLS: usize = 28;
pub(crate) const ROW_BYTES: usize = (N_COLS + 1) * 4;

/// Writes rows of [`N_COLS`] `f32`, which count up, and a label.
pub(crate) fn write(path: &Path, n_rows: usize) -> Result<(), Box<dyn Error>> {
    let mut writer = TableWriter::create(path, Schema::shaped(&[N_COLS]))?;
    let mut rows = vec![0.0_f32; 4096 * N_COLS];
    for start in (0..n_rows).step_by(4096) {
        let n = 4096.min(n_rows - start);
        rows.iter_mut().enumerate().for_each(|(i, x)| *x = (start * N_COLS + i) as f32);
        writer.push(&rows[..n * N_COLS], &vec![1.0_f32; n])?;
    }
    writer.finish()?;
    Ok(())
}

pub(crate) fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
