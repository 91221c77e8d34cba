use rayon::prelude::*;

use super::vectorised::vectorised;

/// Rows a task.
const BLOCK_ROWS: usize = 256;

pub(crate) fn run(n_cols: usize, table: &[f32], rows: &[u32], mean: &[f32], inv_std: &[f32], y: &mut [f32]) {
    let block = |(rows, y): (&[u32], &mut [f32])| {
        vectorised(
            #[inline(always)]
            || gather(n_cols, table, rows, mean, inv_std, y),
        );
    };
    if y.len() < 64 * 1024 {
        rows.chunks(BLOCK_ROWS).zip(y.chunks_mut(BLOCK_ROWS * n_cols)).for_each(block);
    } else {
        rows.par_chunks(BLOCK_ROWS).zip(y.par_chunks_mut(BLOCK_ROWS * n_cols)).for_each(block);
    }
}

#[inline(always)]
fn gather(n_cols: usize, table: &[f32], rows: &[u32], mean: &[f32], inv_std: &[f32], y: &mut [f32]) {
    for (y, &row) in y.chunks_exact_mut(n_cols).zip(rows) {
        let x = &table[row as usize * n_cols..][..n_cols];
        for (((y, x), mean), inv_std) in y.iter_mut().zip(x).zip(mean).zip(inv_std) {
            *y = (x - mean) * inv_std;
        }
    }
}
