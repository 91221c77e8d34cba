use super::over_images::{Operands, OverImages};
use crate::conv::grouped_conv2d_grad_input::GroupedConv2dGradInput;
use crate::conv::grouped_shape::GroupedConvShape;
use crate::conv::window::Images;
use crate::cpu::blocks::each_row_in_f32;
use crate::half::Element;
use crate::product::matmul_stored_cpu::Ending;

impl OverImages for GroupedConv2dGradInput {
    /// `weight_by_tap` is `[n_taps, n_out, n_channels / n_groups]`.
    fn run<T: Element, Y: Element>(&self, operands: Operands<'_, T, Y>) {
        let Operands { images: grad_y, weight, finish, operand, result: grad_x, sorted: weight_by_tap } = operands;
        let shape = &self.shape;
        let (n_out, group_channels, [_, kernel_width]) = (shape.n_out, shape.group_channels(), shape.window.kernel);
        let n_taps = shape.window.n_taps();
        for (i, weights) in weight_by_tap.chunks_exact_mut(group_channels).enumerate() {
            let start = (i % n_out * n_taps + i / n_out) * group_channels;
            weight.widen_into(start..start + group_channels, weights);
        }
        let taps: Vec<&[f32]> = weight_by_tap.chunks_exact(n_out * group_channels).collect();
        let Images { height, width, n_channels, .. } = shape.x;
        let y = shape.y();
        let ending = Ending { finish: &finish, first_row: 0, n: n_channels, operand };
        each_row_in_f32(
            width * n_channels,
            grad_x,
            #[inline(always)]
            |row, grad_x| {
                let (image, h) = (row / height, row % height);
                grad_x.fill(0.0);
                for (tap, weight) in taps.iter().enumerate() {
                    let Some(i) = shape.window_at(0, h, tap / kernel_width, y.height) else { continue };
                    for (w, grad_x) in grad_x.chunks_exact_mut(n_channels).enumerate() {
                        let Some(j) = shape.window_at(1, w, tap % kernel_width, y.width) else { continue };
                        let pixel = (image * y.height + i) * y.width + j;
                        add_tap(shape, &grad_y[pixel * n_out..][..n_out], weight, grad_x);
                    }
                }
                ending.apply(row * width, grad_x);
            },
        );
    }
}

/// Adds the products of a window's gradient with the weights of a tap.
#[inline(always)]
fn add_tap<T: Element>(shape: &GroupedConvShape, grad_y: &[T], weight: &[f32], grad_x: &mut [f32]) {
    if shape.is_depthwise() {
        for ((grad_x, &grad_y), weight) in grad_x.iter_mut().zip(grad_y).zip(weight) {
            *grad_x += grad_y.widen() * weight;
        }
        return;
    }
    let (group_channels, group_out) = (shape.group_channels(), shape.group_out());
    let weights = weight.chunks_exact(group_out * group_channels);
    let groups = grad_y.chunks_exact(group_out).zip(weights).zip(grad_x.chunks_exact_mut(group_channels));
    for ((grad_y, weights), grad_x) in groups {
        for (&grad_y, weights) in grad_y.iter().zip(weights.chunks_exact(group_channels)) {
            let grad_y = grad_y.widen();
            for (grad_x, weight) in grad_x.iter_mut().zip(weights) {
                *grad_x += grad_y * weight;
            }
        }
    }
}
