use rayon::prelude::*;

use crate::core::half::Element;
use crate::core::vectorised::vectorised;

/// Rows summed in one go before the parts are added.
pub(crate) const PART_ROWS: usize = 64;

pub(crate) fn run<T: Element>(n_cols: usize, x: &[T], y: &mut [f32], parts: &mut [f32]) {
    let sum_part = |(rows, part): (&[T], &mut [f32])| {
        vectorised(
            #[inline(always)]
            || add_rows(rows, part),
        );
    };
    let rows = x.chunks(PART_ROWS * n_cols);
    if x.len() < 64 * 1024 {
        rows.zip(parts.chunks_exact_mut(n_cols)).for_each(sum_part);
    } else {
        x.par_chunks(PART_ROWS * n_cols).zip(parts.par_chunks_exact_mut(n_cols)).for_each(sum_part);
    }
    vectorised(
        #[inline(always)]
        || add_rows(&*parts, y),
    );
}

#[inline(always)]
pub(crate) fn add_rows<T: Element>(rows: &[T], sum: &mut [f32]) {
    sum.fill(0.0);
    for row in rows.chunks_exact(sum.len()) {
        for (sum, &x) in sum.iter_mut().zip(row) {
            *sum += x.widen();
        }
    }
}
