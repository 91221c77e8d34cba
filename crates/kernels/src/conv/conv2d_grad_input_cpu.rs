use std::ops::Range;

use bytemuck::cast_slice_mut;
use half::bf16;
use rayon::prelude::*;

use super::conv2d_cpu::TASK_PIXELS;
use super::over_images::Operands;
use super::patches::{Patches, ResultRow, Walk, result_rows, with_weights};
use crate::conv::conv_shape::ConvShape;
use crate::conv::window::Images;
use crate::cpu::blocks::Threads;
use crate::cpu::room::in_f32;
use crate::cpu::team::OnTeam;
use crate::gemm::pairs::{Stored, with_each};
use crate::kernel::floats::Floats;
use crate::product::matmul_stored_cpu::Ending;
use crate::storage::element::Element;

/// Computes the sums of some rows of pixels of a phase; the buffer is memory of the thread.
type Times<'a> = dyn Fn(usize, &[ResultRow], &mut [f32], &mut Vec<f32>) + Sync + 'a;

pub(super) fn run<T: Element, Y: Element>(shape: &ConvShape, operands: Operands<'_, T, Y>) {
    let Operands { images: grad_y, weight, finish, operand, result: grad_x, sorted: weight_sorted } = operands;
    let Images { height, width, n_channels, .. } = shape.x;
    let [stride_y, stride_x] = shape.window.stride;
    let phases = phases(shape);
    let of_phase = |phase: &Phase| Patches { source: grad_y, images: shape.y(), walks: phase.walks };
    // A task has enough rows that each phase has a task's number of pixels.
    let task_rows = TASK_PIXELS.div_ceil(width.div_ceil(stride_x)).saturating_mul(stride_y).min(shape.x.n_images * height);
    let ending = Ending { finish: &finish, first_row: 0, n: n_channels, operand };
    let each_task = |grad_x: &mut [Y], times: &Times<'_>| {
        let task = |(buffer, sums): &mut (Vec<f32>, Vec<f32>), (i, grad_x): (usize, &mut [Y])| {
            let first = i * task_rows;
            let all_rows = first..first + grad_x.len() / (width * n_channels);
            in_f32(grad_x, |grad_x| {
                if let ([_], [1, 1]) = (&phases[..], shape.window.stride) {
                    let rows = result_rows(all_rows, height);
                    times(0, &rows, grad_x, buffer);
                    return ending.apply(first * width, grad_x);
                }
                for (p, phase) in phases.iter().enumerate() {
                    let is_of_phase = |row: &usize| row % height % stride_y == phase.at[0];
                    let rows: Vec<ResultRow> =
                        all_rows.clone().filter(is_of_phase).map(|row| (row / height, row % height / stride_y)).collect();
                    let n = phase.walks[1].n;
                    sums.clear();
                    sums.resize(rows.len() * n * n_channels, 0.0);
                    if !sums.is_empty() && phase.n_weights > 0 {
                        times(p, &rows, sums, buffer);
                    }
                    for (row, sums) in all_rows.clone().filter(is_of_phase).zip(sums.chunks_exact(n * n_channels)) {
                        let line = &mut grad_x[(row - first) * width * n_channels..][..width * n_channels];
                        let pixels = line.chunks_exact_mut(n_channels).skip(phase.at[1]).step_by(stride_x);
                        pixels.zip(sums.chunks_exact(n_channels)).for_each(|(grad_x, sum)| grad_x.copy_from_slice(sum));
                    }
                }
                ending.apply(first * width, grad_x);
            });
        };
        grad_x.par_chunks_mut(task_rows * width * n_channels).enumerate().for_each_init_on_team(Default::default, task);
    };
    let instructions = phases.first().and_then(|phase| of_phase(phase).by_pairs(&weight));
    if let (Some((instructions, patches)), Floats::Bf16(weight)) = (instructions, weight) {
        let sorted: &mut [bf16] = &mut cast_slice_mut(weight_sorted)[..weight.len()];
        sort_weights(shape, &phases, sorted, |range, sorted| sorted.copy_from_slice(&weight[range]));
        let of_phase = |phase: &Phase| Patches { walks: phase.walks, ..patches };
        let side = |phase: &Phase| {
            let data = &sorted[phase.first_weight..][..phase.n_weights];
            of_phase(phase).side(Stored { data, n: n_channels, stride: n_channels, k_is_outer: true })
        };
        let sides: Vec<_> = phases.iter().map(side).collect();
        return with_each(&sides, Threads::All, |weights| {
            each_task(grad_x, &|p, rows, sums, _| of_phase(&phases[p]).times_pairs(rows, (instructions, weights[p]), sums));
        });
    }
    sort_weights(shape, &phases, weight_sorted, |range, sorted| weight.widen_into(range, sorted));
    let is_packed = phases.iter().any(|phase| phase.n_weights > 0 && !of_phase(phase).is_narrow(n_channels));
    with_weights(weight_sorted, n_channels, is_packed, |weights| {
        each_task(grad_x, &|p, rows, sums, buffer| {
            let phase = &phases[p];
            of_phase(phase).times(rows, weights.after(phase.first_weight / n_channels), sums, buffer);
        });
    });
}

/// One phase: the input pixels `at + stride * i`, which correspond to the same taps of their windows.
struct Phase {
    at: [usize; 2],
    walks: [Walk; 2],
    /// The first tap of a window that is among them, along each axis.
    first_tap: [usize; 2],
    /// The start of its weights among the sorted ones, `[taps, n_out, n_channels]`, and their number.
    first_weight: usize,
    n_weights: usize,
}

/// The phases, and where their weights are among the sorted ones.
fn phases(shape: &ConvShape) -> Vec<Phase> {
    let ConvShape { x, n_out, window, .. } = *shape;
    let sizes = [x.height, x.width];
    let walk = |axis: usize, at: usize| {
        let (kernel, stride, padding) = (window.kernel[axis], window.stride[axis], window.padding[axis]);
        let first_tap = (at + padding) % stride;
        let n_taps = kernel.saturating_sub(first_tap).div_ceil(stride);
        let start = ((at + padding) / stride) as isize - (n_taps as isize - 1);
        (Walk { n: sizes[axis].saturating_sub(at).div_ceil(stride), n_taps, start, step: 1 }, first_tap)
    };
    let mut phases = Vec::new();
    let mut first_weight = 0;
    for at_y in 0..window.stride[0].min(x.height) {
        for at_x in 0..window.stride[1].min(x.width) {
            let ((along_y, first_y), (along_x, first_x)) = (walk(0, at_y), walk(1, at_x));
            let n_weights = along_y.n_taps * along_x.n_taps * n_out * x.n_channels;
            let (at, walks, first_tap) = ([at_y, at_x], [along_y, along_x], [first_y, first_x]);
            phases.push(Phase { at, walks, first_tap, first_weight, n_weights });
            first_weight += n_weights;
        }
    }
    phases
}

/// Sorts the weights by phase, with `copy` for a range of them; within each phase, the taps from the last to the first; within
/// each tap `[n_out, n_channels]`.
///
/// The last tap comes first because the pixel under tap `u` of window `i` is under tap `u - stride` of window `i + 1`, so this
/// order visits windows by increasing index.
fn sort_weights<D>(shape: &ConvShape, phases: &[Phase], sorted: &mut [D], copy: impl Fn(Range<usize>, &mut [D])) {
    let ConvShape { x, n_out, window, .. } = *shape;
    for Phase { walks: [along_y, along_x], first_tap, first_weight, n_weights, .. } in phases {
        let mut rows = sorted[*first_weight..][..*n_weights].chunks_exact_mut(x.n_channels);
        for u in (0..along_y.n_taps).rev().map(|tap| first_tap[0] + tap * window.stride[0]) {
            for v in (0..along_x.n_taps).rev().map(|tap| first_tap[1] + tap * window.stride[1]) {
                for (o, row) in (0..n_out).zip(&mut rows) {
                    let from = ((o * window.kernel[0] + u) * window.kernel[1] + v) * x.n_channels;
                    copy(from..from + x.n_channels, row);
                }
            }
        }
    }
}
