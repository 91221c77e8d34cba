use rayon::prelude::*;

use super::over_images::Operands;
use super::patches::{Patches, ResultRow, result_rows, with_weights};
use crate::conv::conv_shape::ConvShape;
use crate::conv::window::Images;
use crate::cpu::blocks::Threads;
use crate::cpu::room::in_f32;
use crate::cpu::team::OnTeam;
use crate::gemm::pairs::{Stored, with_each};
use crate::kernel::floats::Floats;
use crate::product::matmul_stored_cpu::Ending;
use crate::storage::element::Element;

/// Result pixels per task, unless a row is longer.
pub(crate) const TASK_PIXELS: usize = 256;

/// Computes the sums of some rows of result pixels; the buffer is memory of the thread.
type Times<'a> = dyn Fn(&[ResultRow], &mut [f32], &mut Vec<f32>) + Sync + 'a;

pub(super) fn run<T: Element, Y: Element>(shape: &ConvShape, operands: Operands<'_, T, Y>) {
    let Operands { images: x, weight, finish, operand, result: y, sorted: weight_transposed } = operands;
    let n_out = shape.n_out;
    let Images { height, width, .. } = shape.y();
    let patches = Patches::of_windows(x, shape);
    let task_rows = TASK_PIXELS.div_ceil(width);
    let ending = Ending { finish: &finish, first_row: 0, n: n_out, operand };
    let each_task = |y: &mut [Y], times: &Times<'_>| {
        let task = |buffer: &mut Vec<f32>, (i, y): (usize, &mut [Y])| {
            let first = i * task_rows;
            let rows = result_rows(first..first + y.len() / (width * n_out), height);
            in_f32(y, |y| {
                times(&rows, y, buffer);
                ending.apply(first * width, y);
            });
        };
        y.par_chunks_mut(task_rows * width * n_out).enumerate().for_each_init_on_team(Vec::new, task);
    };
    if let (Some((instructions, patches)), Floats::Bf16(weight)) = (patches.by_pairs(&weight), weight) {
        let weights = Stored { data: weight, n: n_out, stride: shape.n_patch(), k_is_outer: false };
        return with_each(&[patches.side(weights)], Threads::All, |panels| {
            each_task(y, &|rows, y, _| patches.times_pairs(rows, (instructions, panels[0]), y));
        });
    }
    weight.transpose_to(n_out, shape.n_patch(), weight_transposed);
    let is_packed = !patches.is_narrow(n_out);
    with_weights(weight_transposed, n_out, is_packed, |weights| {
        each_task(y, &|rows, y, buffer| patches.times(rows, weights, y, buffer));
    });
}
