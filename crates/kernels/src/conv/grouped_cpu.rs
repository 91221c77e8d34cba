//! The twins of convolutions with groups or dilation and of their gradients.

use rayon::prelude::*;

use super::over_images::Operands;
use crate::conv::conv_shape::ConvShape;
use crate::conv::window::Images;
use crate::cpu::blocks::each_row_in_f32;
use crate::cpu::room::with_room;
use crate::cpu::team::OnTeam;
use crate::kernel::floats::Floats;
use crate::product::matmul_stored_cpu::Ending;
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

/// The weights are sorted as `[n_taps, n_channels / n_groups, n_out]`.
pub(super) fn forward<T: Element, Y: Element>(shape: &ConvShape, operands: Operands<'_, T, Y>) {
    let Operands { images: x, weight, finish, operand, result: y, sorted } = operands;
    let (n_out, n_channels, [_, kernel_width]) = (shape.n_out, shape.x.n_channels, shape.window.kernel);
    weight.transpose_to(n_out, shape.n_patch(), sorted);
    let taps: Vec<&[f32]> = sorted.chunks_exact(shape.group_channels() * n_out).collect();
    let ending = Ending { finish: &finish, first_row: 0, n: n_out, operand };
    let Images { height, width, .. } = shape.y();
    each_row_in_f32(
        width * n_out,
        y,
        inlined!(|row, y| {
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
        }),
    );
}

/// The weights are sorted as `[n_taps, n_out, n_channels / n_groups]`.
pub(super) fn grad_input<T: Element, Y: Element>(shape: &ConvShape, operands: Operands<'_, T, Y>) {
    let Operands { images: grad_y, weight, finish, operand, result: grad_x, sorted } = operands;
    let (n_out, group_channels, [_, kernel_width]) = (shape.n_out, shape.group_channels(), shape.window.kernel);
    let n_taps = shape.window.n_taps();
    for (i, weights) in sorted.chunks_exact_mut(group_channels).enumerate() {
        let start = (i % n_out * n_taps + i / n_out) * group_channels;
        weight.widen_into(start..start + group_channels, weights);
    }
    let taps: Vec<&[f32]> = sorted.chunks_exact(n_out * group_channels).collect();
    let Images { height, width, n_channels, .. } = shape.x;
    let y = shape.y();
    let ending = Ending { finish: &finish, first_row: 0, n: n_channels, operand };
    each_row_in_f32(
        width * n_channels,
        grad_x,
        inlined!(|row, grad_x| {
            let (image, h) = (row / height, row % height);
            grad_x.fill(0.0);
            for (tap, weight) in taps.iter().enumerate() {
                let Some(i) = shape.window_at(0, h, tap / kernel_width, y.height) else { continue };
                for (w, grad_x) in grad_x.chunks_exact_mut(n_channels).enumerate() {
                    let Some(j) = shape.window_at(1, w, tap % kernel_width, y.width) else { continue };
                    let pixel = (image * y.height + i) * y.width + j;
                    add_window(shape, &grad_y[pixel * n_out..][..n_out], weight, grad_x);
                }
            }
            ending.apply(row * width, grad_x);
        }),
    );
}

/// The gradient of the weights, by parts of `n_part_rows` rows of pixels; `parts` is `[part][n_taps, n_out, n_channels /
/// n_groups]`.
pub(super) fn grad_weight<T: Element>(
    shape: &ConvShape,
    n_part_rows: usize,
    grad_y: Floats<'_>,
    x: &[T],
    grad_weight: &mut [f32],
    parts: &mut [f32],
) {
    let Images { n_images, height, width, n_channels: n_out } = shape.y();
    let n_rows = n_images * height;
    parts.par_chunks_mut(shape.n_weights()).enumerate().for_each_on_team(|(part, sums)| {
        sums.fill(0.0);
        let first_row = part * n_part_rows;
        for row in first_row..(first_row + n_part_rows).min(n_rows) {
            let range = row * width * n_out..(row + 1) * width * n_out;
            with_room(grad_y.n_room(range.len()), |room| {
                let grad_y = grad_y.get(range, room);
                vectorised(inlined!(|| add_row(shape, row, grad_y, x, sums)));
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
fn add_row<T: Element>(shape: &ConvShape, row: usize, grad_y: &[f32], x: &[T], sums: &mut [f32]) {
    let (y, n_channels, [_, kernel_width]) = (shape.y(), shape.x.n_channels, shape.window.kernel);
    let tap_len = shape.n_out * shape.group_channels();
    for (tap, sums) in sums.chunks_exact_mut(tap_len).enumerate() {
        let Some(h) = shape.source(0, row % y.height, tap / kernel_width) else { continue };
        for (j, grad_y) in grad_y.chunks_exact(shape.n_out).enumerate() {
            let Some(w) = shape.source(1, j, tap % kernel_width) else { continue };
            let pixel = (row / y.height * shape.x.height + h) * shape.x.width + w;
            add_outer(shape, grad_y, &x[pixel * n_channels..][..n_channels], sums);
        }
    }
}

/// `sums[i] += x[i] y[i]`.
#[inline(always)]
fn add_products<T: Element>(sums: &mut [f32], x: &[T], y: &[f32]) {
    for ((sum, &x), y) in sums.iter_mut().zip(x).zip(y) {
        *sum += x.widen() * y;
    }
}

/// `sums[i] += x y[i]`.
#[inline(always)]
fn add_multiple(sums: &mut [f32], x: f32, y: &[f32]) {
    for (sum, y) in sums.iter_mut().zip(y) {
        *sum += x * y;
    }
}

/// Adds the products of a source pixel with the weights of a tap.
#[inline(always)]
fn add_tap<T: Element>(shape: &ConvShape, x: &[T], weight: &[f32], y: &mut [f32]) {
    if shape.is_depthwise() {
        return add_products(y, x, weight);
    }
    let (n_out, group_out) = (shape.n_out, shape.group_out());
    let groups = x.chunks_exact(shape.group_channels()).zip(y.chunks_exact_mut(group_out));
    for (group, (x, y)) in groups.enumerate() {
        for (&x, weight) in x.iter().zip(weight.chunks_exact(n_out)) {
            add_multiple(y, x.widen(), &weight[group * group_out..]);
        }
    }
}

/// Adds the products of a window's gradient with the weights of a tap.
#[inline(always)]
fn add_window<T: Element>(shape: &ConvShape, grad_y: &[T], weight: &[f32], grad_x: &mut [f32]) {
    if shape.is_depthwise() {
        return add_products(grad_x, grad_y, weight);
    }
    let (group_channels, group_out) = (shape.group_channels(), shape.group_out());
    let weights = weight.chunks_exact(group_out * group_channels);
    let groups = grad_y.chunks_exact(group_out).zip(weights).zip(grad_x.chunks_exact_mut(group_channels));
    for ((grad_y, weights), grad_x) in groups {
        for (&grad_y, weights) in grad_y.iter().zip(weights.chunks_exact(group_channels)) {
            add_multiple(grad_x, grad_y.widen(), weights);
        }
    }
}

/// Adds the products of a window's gradient with the source pixel of a tap.
#[inline(always)]
fn add_outer<T: Element>(shape: &ConvShape, grad_y: &[f32], x: &[T], sums: &mut [f32]) {
    if shape.is_depthwise() {
        return add_products(sums, x, grad_y);
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
