use super::over_images::{Operands, OverImages};
use crate::conv::grouped_conv2d::GroupedConv2d;
use crate::conv::grouped_shape::GroupedConvShape;
use crate::conv::window::Images;
use crate::cpu::blocks::each_row_in_f32;
use crate::half::Element;
use crate::product::matmul_stored_cpu::Ending;

impl OverImages for GroupedConv2d {
    /// `weight_by_tap` is `[n_taps, n_channels / n_groups, n_out]`.
    fn run<T: Element, Y: Element>(&self, operands: Operands<'_, T, Y>) {
        let Operands { images: x, weight, finish, operand, result: y, sorted: weight_by_tap } = operands;
        let shape = &self.shape;
        let (n_out, n_channels, [_, kernel_width]) = (shape.n_out, shape.x.n_channels, shape.window.kernel);
        weight.transpose_to(n_out, shape.n_patch(), weight_by_tap);
        let taps: Vec<&[f32]> = weight_by_tap.chunks_exact(shape.group_channels() * n_out).collect();
        let ending = Ending { finish: &finish, first_row: 0, n: n_out, operand };
        let Images { height, width, .. } = shape.y();
        each_row_in_f32(
            width * n_out,
            y,
            #[inline(always)]
            |row, y| {
                let (image, i) = (row / height, row % height);
                y.fill(0.0);
                for (tap, weight) in taps.iter().enumerate() {
                    let Some(h) = shape.source(0, i, tap / kernel_width) else { continue };
                    for (j, y) in y.chunks_exact_mut(n_out).enumerate() {
                        let Some(w) = shape.source(1, j, tap % kernel_width) else { continue };
                        let pixel = (image * shape.x.height + h) * shape.x.width + w;
                        add_tap(shape, &x[pixel * n_channels..][..n_channels], weight, y);
                    }
                }
                ending.apply(row * width, y);
            },
        );
    }
}

/// Adds the products of a source pixel with the weights of a tap.
#[inline(always)]
fn add_tap<T: Element>(shape: &GroupedConvShape, x: &[T], weight: &[f32], y: &mut [f32]) {
    if shape.is_depthwise() {
        for ((y, &x), weight) in y.iter_mut().zip(x).zip(weight) {
            *y += x.widen() * weight;
        }
        return;
    }
    let (n_out, group_out) = (shape.n_out, shape.group_out());
    let groups = x.chunks_exact(shape.group_channels()).zip(y.chunks_exact_mut(group_out));
    for (group, (x, y)) in groups.enumerate() {
        for (&x, weight) in x.iter().zip(weight.chunks_exact(n_out)) {
            let x = x.widen();
            for (y, weight) in y.iter_mut().zip(&weight[group * group_out..]) {
                *y += x * weight;
            }
        }
    }
}
