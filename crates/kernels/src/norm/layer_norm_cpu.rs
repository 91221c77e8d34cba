use crate::norm::layer_norm::LayerNorm;
use crate::reduce::rows_cpu::{each_row_block, each_row_block_of_two, sum, sum_of_two};
use crate::vectorised::inlined;

pub(crate) fn run(kernel: &LayerNorm, x: &[f32], weight: Option<&[f32]>, bias: Option<&[f32]>, y: &mut [f32], stats: &mut [f32]) {
    let n_cols = kernel.n_cols;
    each_row_block_of_two(
        n_cols,
        [n_cols, 2],
        y,
        stats,
        inlined!(|first, y, stats| {
            let x = &x[first * n_cols..][..y.len()];
            for ((y, x), stats) in y.chunks_exact_mut(n_cols).zip(x.chunks_exact(n_cols)).zip(stats.chunks_exact_mut(2)) {
                // Differences from the first element, which are exact for a row of large numbers that are close to each other.
                let first = x[0];
                let mean = first + sum(x, inlined!(|x| x - first)) / n_cols as f32;
                let variance = sum(x, inlined!(|x| (x - mean) * (x - mean))) / n_cols as f32;
                let inv_std = 1.0 / (variance + kernel.eps).sqrt();
                (stats[0], stats[1]) = (mean, inv_std);
                normalise(x, mean, inv_std, weight, bias, y);
            }
        }),
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

pub(crate) fn grad(forward: &LayerNorm, grad_y: &[f32], x: &[f32], weight: Option<&[f32]>, stats: &[f32], grad_x: &mut [f32]) {
    let n_cols = forward.n_cols;
    each_row_block(
        [n_cols; 2],
        grad_x,
        inlined!(|first, grad_x| {
            let block = first * n_cols..first * n_cols + grad_x.len();
            let rows = grad_y[block.clone()].chunks_exact(n_cols).zip(x[block].chunks_exact(n_cols));
            let stats = stats[2 * first..].chunks_exact(2);
            for ((grad_x, (grad_y, x)), stats) in grad_x.chunks_exact_mut(n_cols).zip(rows).zip(stats) {
                row_grad(grad_y, x, weight, [stats[0], stats[1]], grad_x);
            }
        }),
    );
}

#[inline(always)]
fn row_grad(grad_y: &[f32], x: &[f32], weight: Option<&[f32]>, [mean, inv_std]: [f32; 2], grad_x: &mut [f32]) {
    // grad_x holds g = grad_y weight until the sums are known.
    match weight {
        None => grad_x.copy_from_slice(grad_y),
        Some(weight) => {
            for ((g, grad_y), weight) in grad_x.iter_mut().zip(grad_y).zip(weight) {
                *g = grad_y * weight;
            }
        }
    }
    let n = grad_x.len() as f32;
    let mean_g = sum(grad_x, inlined!(|g| g)) / n;
    let mean_gx = sum_of_two(grad_x, x, inlined!(|g, x| g * ((x - mean) * inv_std))) / n;
    for (grad_x, x) in grad_x.iter_mut().zip(x) {
        *grad_x = inv_std * (*grad_x - mean_g - (x - mean) * inv_std * mean_gx);
    }
}
