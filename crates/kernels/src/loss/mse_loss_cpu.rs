use super::weighted_sums::weighted_sums;
use crate::core::rows_cpu::{each_row_block, sum_of_two};
use crate::{MseLoss, Reduction};

pub(crate) fn loss(kernel: &MseLoss, x: &[f32], target: &[f32], weight: &[f32], loss: &mut [f32]) {
    let n_cols = kernel.n_cols;
    let [sum, weights] = weighted_sums(
        weight,
        #[inline(always)]
        |first, losses| {
            let rows = x[first * n_cols..].chunks_exact(n_cols).zip(target[first * n_cols..].chunks_exact(n_cols));
            for (l, (x, target)) in losses.iter_mut().zip(rows) {
                *l = sum_of_two(
                    x,
                    target,
                    #[inline(always)]
                    |x, t| (x - t) * (x - t),
                );
            }
        },
    );
    let divisor = match kernel.reduction {
        Reduction::Mean => weights * n_cols as f64,
        Reduction::Sum => 1.0,
    };
    loss[0] = (sum / divisor) as f32;
    loss[1] = divisor as f32;
}

pub(crate) fn grad(
    kernel: &MseLoss,
    grad_loss: f32,
    x: &[f32],
    target: &[f32],
    weight: &[f32],
    loss: &[f32],
    grad_x: &mut [f32],
) {
    let n_cols = kernel.n_cols;
    let scale = 2.0 * grad_loss / loss[1];
    each_row_block(
        n_cols,
        grad_x,
        #[inline(always)]
        |first, grad_x| {
            let block = first * n_cols..first * n_cols + grad_x.len();
            let rows = x[block.clone()].chunks_exact(n_cols).zip(target[block].chunks_exact(n_cols));
            for ((grad_x, (x, target)), w) in grad_x.chunks_exact_mut(n_cols).zip(rows).zip(&weight[first..]) {
                for ((grad_x, x), t) in grad_x.iter_mut().zip(x).zip(target) {
                    *grad_x = scale * w * (x - t);
                }
            }
        },
    );
}
