use super::weighted_sums::weighted_sums;
use crate::core::blocks::each_block;
use crate::core::float::{sigmoid, softplus};
use crate::{BceWithLogits, Reduction};

pub(crate) fn loss(kernel: &BceWithLogits, logits: &[f32], target: &[f32], weight: &[f32], loss: &mut [f32]) {
    let [sum, weights] = weighted_sums(
        weight,
        #[inline(always)]
        |at, losses| {
            let rows = logits[at..at + losses.len()].iter().zip(&target[at..]);
            for (l, (&x, &t)) in losses.iter_mut().zip(rows) {
                *l = (1.0 - t) * x + (1.0 + (kernel.pos_weight - 1.0) * t) * softplus(-x);
            }
        },
    );
    let divisor = match kernel.reduction {
        Reduction::Mean => weights,
        Reduction::Sum => 1.0,
    };
    loss[0] = (sum / divisor) as f32;
    loss[1] = divisor as f32;
}

pub(crate) fn grad(
    kernel: &BceWithLogits,
    grad_loss: f32,
    logits: &[f32],
    target: &[f32],
    weight: &[f32],
    loss: &[f32],
    grad_logits: &mut [f32],
) {
    let scale = grad_loss / loss[1];
    each_block(
        grad_logits,
        #[inline(always)]
        |at, grad_logits| {
            let run = at..at + grad_logits.len();
            let rows = logits[run.clone()].iter().zip(&target[run.clone()]).zip(&weight[run]);
            for (grad_x, ((&x, &t), &w)) in grad_logits.iter_mut().zip(rows) {
                *grad_x = scale * w * ((1.0 - t) - (1.0 + (kernel.pos_weight - 1.0) * t) * sigmoid(-x));
            }
        },
    );
}
