use crate::float::{exp, rounded};
use crate::loss::cross_entropy::CrossEntropy;
use crate::loss::weighted_mean::Reduction;
use crate::reduce::rows_cpu::{each_row_block, each_row_block_of_two, max, sum, sum_of_two};
use crate::vectorised::inlined;

pub(crate) struct Inputs<'a> {
    pub(crate) logits: &'a [f32],
    pub(crate) target: &'a [u32],
    pub(crate) weight: &'a [f32],
    pub(crate) class_weight: Option<&'a [f32]>,
}

impl Inputs<'_> {
    #[inline(always)]
    fn class_weight(&self, class: usize) -> f32 {
        self.class_weight.map_or(1.0, |weights| weights[class])
    }
}

pub(crate) fn loss(kernel: &CrossEntropy, inputs: &Inputs<'_>, loss: &mut [f32], rows: &mut [f32], losses: &mut [f32]) {
    let n_classes = kernel.n_classes;
    let total_class_weight = inputs.class_weight.map_or(n_classes as f32, |weights| weights.iter().sum());
    each_row_block_of_two(
        n_classes,
        [4, 1],
        rows,
        losses,
        inlined!(|first, rows, losses| {
            let mut exps = inputs.logits[first * n_classes..][..losses.len() * n_classes].to_vec();
            for (row, x) in rows.chunks_exact_mut(4).zip(exps.chunks_exact_mut(n_classes)) {
                row[0] = max(x);
                for x in x {
                    *x = exp(*x - row[0]);
                }
            }
            let of_rows = rows.chunks_exact_mut(4).zip(losses).zip(exps.chunks_exact(n_classes)).enumerate();
            for (i, ((row, loss), exps)) in of_rows {
                row[1] = sum(exps, inlined!(|x| x)).ln();
                [row[2], row[3], *loss] = one_row(kernel, inputs, first + i, [row[0], row[1]], total_class_weight);
            }
        }),
    );
    let (mut total, mut weights) = (0.0_f64, 0.0_f64);
    for (loss, row) in losses.iter().zip(rows.chunks_exact(4)) {
        total += f64::from(*loss);
        weights += f64::from(row[3]);
    }
    let divisor = match kernel.reduction {
        Reduction::Mean => weights,
        Reduction::Sum => 1.0,
    };
    loss[0] = rounded(total / divisor);
    loss[1] = rounded(divisor);
}

/// The target's contribution, the row's part of the divisor, and its weighted loss.
#[inline(always)]
fn one_row(kernel: &CrossEntropy, inputs: &Inputs<'_>, row: usize, [m, log_sum]: [f32; 2], total_class_weight: f32) -> [f32; 3] {
    let target = inputs.target[row];
    let (class, weight, smoothing) = (target as usize, inputs.weight[row], kernel.label_smoothing);
    if kernel.ignored == Some(target) {
        return [0.0; 3];
    }
    if class >= kernel.n_classes {
        return [f32::NAN, weight, f32::NAN];
    }
    let x = &inputs.logits[row * kernel.n_classes..][..kernel.n_classes];
    let v = (1.0 - smoothing) * inputs.class_weight(class);
    let (mut loss, mut total) = (v * (m - x[class] + log_sum), v);
    if smoothing > 0.0 {
        let share = smoothing / kernel.n_classes as f32;
        let gaps = match inputs.class_weight {
            None => sum(x, inlined!(|x| m - x)),
            Some(weights) => sum_of_two(x, weights, inlined!(|x, v| v * (m - x))),
        };
        loss += share * (gaps + total_class_weight * log_sum);
        total += share * total_class_weight;
    }
    [total, weight * inputs.class_weight(class), weight * loss]
}

pub(crate) fn grad(
    kernel: &CrossEntropy,
    grad_loss: f32,
    inputs: &Inputs<'_>,
    loss: &[f32],
    rows: &[f32],
    grad_logits: &mut [f32],
) {
    let (n_classes, smoothing) = (kernel.n_classes, kernel.label_smoothing);
    let scale = grad_loss / loss[1];
    let share = smoothing / n_classes as f32;
    each_row_block(
        [n_classes; 2],
        grad_logits,
        inlined!(|first, grad_logits| {
            for (i, grad_x) in grad_logits.chunks_exact_mut(n_classes).enumerate() {
                let row = first + i;
                let target = inputs.target[row];
                if kernel.ignored == Some(target) {
                    grad_x.fill(0.0);
                    continue;
                }
                let (m, log_sum, total) = (rows[4 * row], rows[4 * row + 1], rows[4 * row + 2]);
                let scale = scale * inputs.weight[row];
                let x = &inputs.logits[row * n_classes..][..n_classes];
                for (grad_x, x) in grad_x.iter_mut().zip(x) {
                    *grad_x = scale * (total * exp(x - m - log_sum) - share);
                }
                if let Some(weights) = inputs.class_weight {
                    for (grad_x, v) in grad_x.iter_mut().zip(weights) {
                        *grad_x -= scale * share * (v - 1.0);
                    }
                }
                if let Some(grad_x) = grad_x.get_mut(target as usize) {
                    *grad_x -= scale * (1.0 - smoothing) * inputs.class_weight(target as usize);
                }
            }
        }),
    );
}
