use super::column_sum::{PART_ROWS, add_rows};
use super::rows::{each_row_block, each_row_block_of_two, sum, sum_of_two};
use super::vectorised::vectorised;
use crate::LayerNorm;

pub(crate) fn run(kernel: &LayerNorm, x: &[f32], weight: Option<&[f32]>, bias: Option<&[f32]>, y: &mut [f32], stats: &mut [f32]) {
    let n_cols = kernel.n_cols;
    each_row_block_of_two(
        n_cols,
        [n_cols, 2],
        y,
        stats,
        #[inline(always)]
        |first, y, stats| {
            let x = &x[first * n_cols..][..y.len()];
            for ((y, x), stats) in y.chunks_exact_mut(n_cols).zip(x.chunks_exact(n_cols)).zip(stats.chunks_exact_mut(2)) {
                let mean = sum(
                    x,
                    #[inline(always)]
                    |x| x,
                ) / n_cols as f32;
                let variance = sum(
                    x,
                    #[inline(always)]
                    |x| (x - mean) * (x - mean),
                ) / n_cols as f32;
                let inv_std = 1.0 / (variance + kernel.eps).sqrt();
                (stats[0], stats[1]) = (mean, inv_std);
                normalise(x, mean, inv_std, weight, bias, y);
            }
        },
    );
}

#[inline(always)]
fn normalise(x: &[f32], mean: f32, inv_std: f32, weight: Option<&[f32]>, bias: Option<&[f32]>, y: &mut [f32]) {
    match (weight, bias) {
        (Some(weight), Some(bias)) => {
            for (((y, x), weight), bias) in y.iter_mut().zip(x).zip(weight).zip(bias) {
                *y = (x - mean) * inv_std * weight + bias;
            }
        }
        (Some(weight), None) => {
            for ((y, x), weight) in y.iter_mut().zip(x).zip(weight) {
                *y = (x - mean) * inv_std * weight;
            }
        }
        _ => {
            for (y, x) in y.iter_mut().zip(x) {
                *y = (x - mean) * inv_std;
            }
        }
    }
}

pub(crate) fn grad(forward: &LayerNorm, dy: &[f32], x: &[f32], weight: Option<&[f32]>, stats: &[f32], dx: &mut [f32]) {
    let n_cols = forward.n_cols;
    each_row_block(
        n_cols,
        dx,
        #[inline(always)]
        |first, dx| {
            let block = first * n_cols..first * n_cols + dx.len();
            let rows = dy[block.clone()].chunks_exact(n_cols).zip(x[block].chunks_exact(n_cols));
            let stats = stats[2 * first..].chunks_exact(2);
            for ((dx, (dy, x)), stats) in dx.chunks_exact_mut(n_cols).zip(rows).zip(stats) {
                row_grad(dy, x, weight, [stats[0], stats[1]], dx);
            }
        },
    );
}

#[inline(always)]
fn row_grad(dy: &[f32], x: &[f32], weight: Option<&[f32]>, [mean, inv_std]: [f32; 2], dx: &mut [f32]) {
    // dx holds g = dy weight until the sums are known.
    match weight {
        None => dx.copy_from_slice(dy),
        Some(weight) => {
            for ((g, dy), weight) in dx.iter_mut().zip(dy).zip(weight) {
                *g = dy * weight;
            }
        }
    }
    let n = dx.len() as f32;
    let mean_g = sum(
        dx,
        #[inline(always)]
        |g| g,
    ) / n;
    let mean_gx = sum_of_two(
        dx,
        x,
        #[inline(always)]
        |g, x| g * ((x - mean) * inv_std),
    ) / n;
    for (dx, x) in dx.iter_mut().zip(x) {
        *dx = inv_std * (*dx - mean_g - (x - mean) * inv_std * mean_gx);
    }
}

pub(crate) fn weight_grad(forward: &LayerNorm, dy: &[f32], x: &[f32], stats: &[f32], dweight: &mut [f32], parts: &mut [f32]) {
    let n_cols = forward.n_cols;
    each_row_block(
        n_cols,
        parts,
        #[inline(always)]
        |first, parts| {
            for (i, part) in parts.chunks_exact_mut(n_cols).enumerate() {
                let start = (first + i) * PART_ROWS;
                let end = (start + PART_ROWS).min(forward.n_rows);
                part.fill(0.0);
                for row in start..end {
                    let (mean, inv_std) = (stats[2 * row], stats[2 * row + 1]);
                    let at = row * n_cols..(row + 1) * n_cols;
                    for ((sum, dy), x) in part.iter_mut().zip(&dy[at.clone()]).zip(&x[at]) {
                        *sum += dy * (x - mean) * inv_std;
                    }
                }
            }
        },
    );
    vectorised(
        #[inline(always)]
        || add_rows(parts, dweight),
    );
}
