//! Matrix products whose left side has one row or one column, where packing operands for `gemm` would cost more than it saves:
//! each element of the matrix is used once, so the product is memory-bound.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::cpu::team::OnTeam;
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

/// Elements of the matrix below which using other threads for a loop does not pay.
const SERIAL_LEN: usize = 128 * 1024;
/// Elements of the matrix per task.
const BLOCK_LEN: usize = 64 * 1024;

/// `y[col] = Σ_row x[row] matrix[row, col]` for `matrix: [x.len(), y.len()]`: chunks of rows, then their sums in order.
pub(crate) fn row_times_matrix<T: Element>(x: &[f32], matrix: &[T], y: &mut [f32]) {
    let n_cols = y.len();
    let run = |x: &[f32], rows: &[T], y: &mut [f32]| {
        vectorised(inlined!(|| add_scaled_rows(x, rows, y)));
    };
    if matrix.len() < SERIAL_LEN {
        return run(x, matrix, y);
    }
    let n_rows = (BLOCK_LEN / n_cols).max(1);
    let mut parts = vec![0.0; x.len().div_ceil(n_rows) * n_cols];
    parts
        .par_chunks_exact_mut(n_cols)
        .zip(x.par_chunks(n_rows))
        .zip(matrix.par_chunks(n_rows * n_cols))
        .for_each_on_team(|((part, x), rows)| run(x, rows, part));
    y.fill(0.0);
    for part in parts.chunks_exact(n_cols) {
        y.iter_mut().zip(part).for_each(|(y, part)| *y += part);
    }
}

/// `y[row] = matrix[row, ..] · x` for `matrix: [y.len(), x.len()]`.
pub(crate) fn matrix_times_column(matrix: &[f32], x: &[f32], y: &mut [f32]) {
    let n_rows = (BLOCK_LEN / x.len()).max(1);
    let run = |(matrix, y): (&[f32], &mut [f32])| Arch::new().dispatch(Dots { matrix, x, y });
    if matrix.len() < SERIAL_LEN {
        return run((matrix, y));
    }
    matrix.par_chunks(n_rows * x.len()).zip(y.par_chunks_mut(n_rows)).for_each_on_team(run);
}

struct Dots<'a> {
    matrix: &'a [f32],
    x: &'a [f32],
    y: &'a mut [f32],
}

impl WithSimd for Dots<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { matrix, x, y } = self;
        let (x, x_rest) = S::as_simd_f32s(x);
        let (x_fours, x_last) = x.as_chunks::<4>();
        for (row, y) in matrix.chunks_exact(self.x.len()).zip(y) {
            let (row, rest) = S::as_simd_f32s(row);
            let (fours, last) = row.as_chunks::<4>();
            let mut sums = [simd.splat_f32s(0.0); 4];
            for (a, b) in fours.iter().zip(x_fours) {
                for i in 0..4 {
                    sums[i] = simd.mul_add_e_f32s(a[i], b[i], sums[i]);
                }
            }
            for (a, b) in last.iter().zip(x_last) {
                sums[0] = simd.mul_add_e_f32s(*a, *b, sums[0]);
            }
            sums[1] = simd.mul_add_e_f32s(simd.partial_load_f32s(rest), simd.partial_load_f32s(x_rest), sums[1]);
            let [a, b] = [simd.add_f32s(sums[0], sums[1]), simd.add_f32s(sums[2], sums[3])];
            *y = simd.reduce_sum_f32s(simd.add_f32s(a, b));
        }
    }
}

/// Processes four rows at a time, so that the sums are read and written a quarter as often.
#[inline(always)]
fn add_scaled_rows<T: Element>(x: &[f32], rows: &[T], y: &mut [f32]) {
    let n_cols = y.len();
    y.fill(0.0);
    let quads = x.len() / 4;
    for (x, rows) in x.chunks_exact(4).zip(rows.chunks_exact(4 * n_cols)) {
        let (r0, rest) = rows.split_at(n_cols);
        let (r1, rest) = rest.split_at(n_cols);
        let (r2, r3) = rest.split_at(n_cols);
        for ((((y, &r0), &r1), &r2), &r3) in y.iter_mut().zip(r0).zip(r1).zip(r2).zip(r3) {
            *y += x[0] * r0.widen() + x[1] * r1.widen() + x[2] * r2.widen() + x[3] * r3.widen();
        }
    }
    for (x, row) in x[4 * quads..].iter().zip(rows[4 * quads * n_cols..].chunks_exact(n_cols)) {
        for (y, &r) in y.iter_mut().zip(row) {
            *y += x * r.widen();
        }
    }
}

/// `y[row, ..] = a[row] b`.
#[inline(always)]
pub(crate) fn scale_row(a: f32, b: &[f32], y: &mut [f32]) {
    for (y, b) in y.iter_mut().zip(b) {
        *y = a * b;
    }
}
