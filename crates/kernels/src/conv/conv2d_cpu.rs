use rayon::prelude::*;

use super::over_images::Operands;
use super::patches::{Patches, ResultRow, Walk, with_weights};
use crate::conv::conv_shape::ConvShape;
use crate::conv::window::Images;
use crate::cpu::room::in_f32;
use crate::cpu::team::OnTeam;
use crate::half::Element;
use crate::product::matmul_stored_cpu::Ending;

/// Result pixels per task, unless a row is longer.
pub(crate) const TASK_PIXELS: usize = 256;

pub(super) fn run<T: Element, Y: Element>(shape: &ConvShape, operands: Operands<'_, T, Y>) {
    let Operands { images: x, weight, finish, operand, result: y, sorted: weight_transposed } = operands;
    let (n_out, window) = (shape.n_out, &shape.window);
    weight.transpose_to(n_out, shape.n_patch(), weight_transposed);
    let Images { height, width, .. } = shape.y();
    let sizes = [(height, shape.x.height), (width, shape.x.width)];
    let walk = |axis: usize| Walk {
        n: sizes[axis].0,
        n_taps: window.kernel[axis],
        start: -(window.padding[axis] as isize),
        step: window.stride[axis],
    };
    let patches = Patches { source: x, images: shape.x, walks: [walk(0), walk(1)] };
    let task_rows = TASK_PIXELS.div_ceil(width);
    let ending = Ending { finish: &finish, first_row: 0, n: n_out, operand };
    let weights = &*weight_transposed;
    let is_packed = !patches.is_narrow(n_out);
    with_weights(weights, n_out, is_packed, |weights| {
        let task = |buffer: &mut Vec<f32>, (i, y): (usize, &mut [Y])| {
            let first = i * task_rows;
            let rows: Vec<ResultRow> =
                (first..first + y.len() / (width * n_out)).map(|row| (row / height, row % height)).collect();
            in_f32(y, |y| {
                patches.times(&rows, weights, y, buffer);
                ending.apply(first * width, y);
            });
        };
        y.par_chunks_mut(task_rows * width * n_out).enumerate().for_each_init_on_team(Vec::new, task);
    });
}
