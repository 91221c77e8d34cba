//! The sum of weighted losses, which BCE and MSE share.

use rayon::prelude::*;

use crate::core::rows_cpu::{sum, sum_of_two};
use crate::core::vectorised::vectorised;

/// Rows that are summed in f32 before the sums are added up in f64.
const BLOCK_ROWS: usize = 1024;
/// Rows below which a loop is not worth handing to other threads.
const SERIAL_ROWS: usize = 8 * 1024;

/// `[Σ w l, Σ w]`, where `f(first row, losses)` writes the losses of a block of rows.
pub(crate) fn weighted_sums(weight: &[f32], f: impl Fn(usize, &mut [f32]) + Sync) -> [f64; 2] {
    let block = |(i, weight): (usize, &[f32])| {
        let mut sums = [0.0_f64; 2];
        vectorised(
            #[inline(always)]
            || {
                let mut losses = [0.0; BLOCK_ROWS];
                let losses = &mut losses[..weight.len()];
                f(i * BLOCK_ROWS, losses);
                let weighted = sum_of_two(
                    weight,
                    losses,
                    #[inline(always)]
                    |w, l| w * l,
                );
                let weights = sum(
                    weight,
                    #[inline(always)]
                    |w| w,
                );
                sums = [f64::from(weighted), f64::from(weights)];
            },
        );
        sums
    };
    let blocks: Vec<[f64; 2]> = if weight.len() < SERIAL_ROWS {
        weight.chunks(BLOCK_ROWS).enumerate().map(block).collect()
    } else {
        weight.par_chunks(BLOCK_ROWS).enumerate().map(block).collect()
    };
    blocks.into_iter().fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d])
}
