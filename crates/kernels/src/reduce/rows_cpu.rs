//! Twins that process rows: how rows are divided into tasks, and sums and maxima along a row.

use rayon::prelude::*;

use crate::cpu::blocks::{Threads, each_chunk};
use crate::cpu::team::OnTeam;
use crate::vectorised::{inlined, vectorised};

/// Elements per task, approximately: values written first are then still in the nearest cache when they are read again.
const BLOCK_LEN: usize = 4 * 1024;
/// Elements below which using other threads for a loop does not pay.
const SERIAL_LEN: usize = 16 * 1024 + 1;
/// The number of sums or maxima that are computed in parallel, so that they fill vector registers.
const LANES: usize = 16;

/// The number of rows of `n_cols` elements per block.
fn block_rows(n_cols: usize) -> usize {
    (BLOCK_LEN / n_cols).max(1)
}

/// Calls `f(first row, block of y)` for blocks of rows of `y_cols` elements, as many as for rows of `n_cols` elements, compiled
/// for the vector instructions this machine has.
pub(crate) fn each_row_block<T: Send>([n_cols, y_cols]: [usize; 2], y: &mut [T], f: impl Fn(usize, &mut [T]) + Sync) {
    let n_rows = block_rows(n_cols);
    let threads = Threads::for_work(y.len() / y_cols * n_cols, SERIAL_LEN);
    each_chunk(threads, n_rows * y_cols, y, |i, y| vectorised(inlined!(|| f(i * n_rows, y))));
}

/// Calls `f(first row, block of y, block of z)` for blocks of the same rows of two arrays of `y_cols` and `z_cols` columns,
/// likewise.
pub(crate) fn each_row_block_of_two<T: Send, U: Send>(
    n_cols: usize,
    [y_cols, z_cols]: [usize; 2],
    y: &mut [T],
    z: &mut [U],
    f: impl Fn(usize, &mut [T], &mut [U]) + Sync,
) {
    let n_rows = block_rows(n_cols);
    let run = |(i, (y, z)): (usize, (&mut [T], &mut [U]))| {
        vectorised(inlined!(|| f(i * n_rows, y, z)));
    };
    if y.len() / y_cols * n_cols < SERIAL_LEN {
        y.chunks_mut(n_rows * y_cols).zip(z.chunks_mut(n_rows * z_cols)).enumerate().for_each(run);
    } else {
        y.par_chunks_mut(n_rows * y_cols).zip(z.par_chunks_mut(n_rows * z_cols)).enumerate().for_each_on_team(run);
    }
}

/// `Σ f(x)` over a row: sixteen partial sums in parallel, then their sum in order.
#[inline(always)]
pub(crate) fn sum(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    sum_of_two(x, x, inlined!(|x, _| f(x)))
}

/// `Σ f(a, b)` over two rows of one length, likewise.
#[inline(always)]
pub(crate) fn sum_of_two(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum += f(a, b);
        }
    }
    let mut total = 0.0;
    for (&a, &b) in rest {
        total += f(a, b);
    }
    if a.len() >= LANES {
        for sum in sums {
            total += sum;
        }
    }
    total
}

/// The maximum of `x`, ignoring NaN.
#[inline(always)]
pub(crate) fn max(x: &[f32]) -> f32 {
    let greater = |a: f32, b: f32| if b > a { b } else { a };
    let mut maxima = [f32::MIN; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (max, &x) in maxima.iter_mut().zip(chunk) {
            *max = greater(*max, x);
        }
    }
    maxima.iter().chain(rest).fold(f32::MIN, |a, &b| greater(a, b))
}
