use rayon::prelude::*;

use crate::batch::gather_rows::GatherRows;
use crate::cpu::team::OnTeam;
use crate::sizes::in_u32;
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

/// Rows per task.
const BLOCK_ROWS: usize = 256;

pub(crate) fn run<T: Copy + Into<f32> + Sync, Y: Element>(
    kernel: &GatherRows,
    table: &[T],
    rows: &[u32],
    mean: &[f32],
    inv_std: &[f32],
    y: &mut [Y],
) {
    let n_cols = kernel.n_cols;
    let block = |(rows, y): (&[u32], &mut [Y])| {
        vectorised(inlined!(|| gather(kernel, table, rows, mean, inv_std, y)));
    };
    if y.len() < 64 * 1024 {
        rows.chunks(BLOCK_ROWS).zip(y.chunks_mut(BLOCK_ROWS * n_cols)).for_each(block);
    } else {
        rows.par_chunks(BLOCK_ROWS).zip(y.par_chunks_mut(BLOCK_ROWS * n_cols)).for_each_on_team(block);
    }
}

#[inline(always)]
fn gather<T: Copy + Into<f32>, Y: Element>(
    kernel: &GatherRows,
    table: &[T],
    rows: &[u32],
    mean: &[f32],
    inv_std: &[f32],
    y: &mut [Y],
) {
    let GatherRows { first_row, n_table_rows, n_cols, .. } = *kernel;
    for (y, &row) in y.chunks_exact_mut(n_cols).zip(rows) {
        let row = row.wrapping_sub(in_u32(first_row)) as usize;
        if row < n_table_rows {
            let x = &table[row * n_cols..][..n_cols];
            for (((y, x), mean), inv_std) in y.iter_mut().zip(x).zip(mean).zip(inv_std) {
                *y = Y::narrow(((*x).into() - mean) * inv_std);
            }
        } else if first_row == 0 {
            y.fill(Y::narrow(0.0));
        }
    }
}
