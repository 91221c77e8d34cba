use rayon::prelude::*;

use crate::conv::grouped_conv2d_grad_weight::GroupedConv2dGradWeight;
use crate::conv::grouped_shape::GroupedConvShape;
use crate::conv::window::Images;
use crate::cpu::room::with_room;
use crate::cpu::team::OnTeam;
use crate::cpu::vectorised::vectorised;
use crate::half::Element;
use crate::kernel::floats::Floats;

/// `parts` is `[part][n_taps, n_out, n_channels / n_groups]`.
pub(crate) fn run<T: Element>(
    kernel: &GroupedConv2dGradWeight,
    grad_y: Floats<'_>,
    x: &[T],
    grad_weight: &mut [f32],
    parts: &mut [f32],
) {
    let shape = &kernel.shape;
    let Images { n_images, height, width, n_channels: n_out } = shape.y();
    let n_rows = n_images * height;
    parts.par_chunks_mut(shape.n_weights()).enumerate().for_each_on_team(|(part, sums)| {
        sums.fill(0.0);
        let first_row = part * kernel.parts().n_rows;
        for row in first_row..(first_row + kernel.parts().n_rows).min(n_rows) {
            let range = row * width * n_out..(row + 1) * width * n_out;
            with_room(grad_y.n_room(range.len()), |room| {
                let grad_y = grad_y.get(range, room);
                vectorised(
                    #[inline(always)]
                    || add_row(shape, row, grad_y, x, sums),
                );
            });
        }
    });

    let (n_taps, group_channels) = (shape.window.n_taps(), shape.group_channels());
    for (i, grad_weight) in grad_weight.chunks_exact_mut(group_channels).enumerate() {
        let start = (i % n_taps * n_out + i / n_taps) * group_channels;
        grad_weight.fill(0.0);
        for sums in parts.chunks_exact(shape.n_weights()) {
            for (grad_weight, sum) in grad_weight.iter_mut().zip(&sums[start..]) {
                *grad_weight += sum;
            }
        }
    }
}

/// Adds the products of a row of result pixels.
#[inline(always)]
fn add_row<T: Element>(shape: &GroupedConvShape, row: usize, grad_y: &[f32], x: &[T], sums: &mut [f32]) {
    let (y, n_channels, [_, kernel_width]) = (shape.y(), shape.x.n_channels, shape.window.kernel);
    let tap_len = shape.n_out * shape.group_channels();
    for (tap, sums) in sums.chunks_exact_mut(tap_len).enumerate() {
        let Some(h) = shape.source(0, row % y.height, tap / kernel_width) else { continue };
        for (j, grad_y) in grad_y.chunks_exact(shape.n_out).enumerate() {
            let Some(w) = shape.source(1, j, tap % kernel_width) else { continue };
            let pixel = (row / y.height * shape.x.height + h) * shape.x.width + w;
            add_tap(shape, grad_y, &x[pixel * n_channels..][..n_channels], sums);
        }
    }
}

/// Adds the products of a window's gradient with the source pixel of a tap.
#[inline(always)]
fn add_tap<T: Element>(shape: &GroupedConvShape, grad_y: &[f32], x: &[T], sums: &mut [f32]) {
    if shape.is_depthwise() {
        for ((sum, grad_y), &x) in sums.iter_mut().zip(grad_y).zip(x) {
            *sum += grad_y * x.widen();
        }
        return;
    }
    let (group_channels, group_out) = (shape.group_channels(), shape.group_out());
    let groups =
        sums.chunks_exact_mut(group_out * group_channels).zip(grad_y.chunks_exact(group_out)).zip(x.chunks_exact(group_channels));
    for ((sums, grad_y), x) in groups {
        for (sums, grad_y) in sums.chunks_exact_mut(group_channels).zip(grad_y) {
            for (sum, &x) in sums.iter_mut().zip(x) {
                *sum += grad_y * x.widen();
            }
        }
    }
}
