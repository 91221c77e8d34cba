use rayon::prelude::*;

use super::conv2d_cpu::TASK_PIXELS;
use super::patches::{Patches, result_rows};
use crate::conv::conv2d_grad_weight::Conv2dGradWeight;
use crate::conv::window::Images;
use crate::cpu::room::with_room;
use crate::cpu::team::OnTeam;
use crate::gemm::gemm::{Onto, Operand, serial_product};
use crate::kernel::floats::Floats;
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

/// Elements of a block of sums that one task adds to: as many as fit in a core's cache next to the patches.
const BLOCK_LEN: usize = 128 * 1024;
/// The number of parts from which each is a single task.
const MIN_TASKS: usize = 8;
/// Elements of the patches that are added at a time.
const PATCHES_LEN: usize = 128 * 1024;

/// Several tasks compute the sums of each part of the pixels, each for some rows of taps; `parts` is
/// `[part][block of taps][n_out, taps, n_channels]`, or for few channels `[part][taps, n_channels, n_out]`.
pub(super) fn run<T: Element>(
    kernel: &Conv2dGradWeight,
    grad_y: Floats<'_>,
    x: &[T],
    grad_weight: &mut [f32],
    parts: &mut [f32],
) {
    let shape = &kernel.shape;
    let (n_out, window) = (shape.n_out, &shape.window);
    let Images { n_images, height, width, .. } = shape.y();
    let patches = Patches::of_windows(x, shape);
    let by_pairs = patches.by_pairs(&grad_y);
    if by_pairs.is_none() && patches.is_narrow(n_out) {
        let n_rows = kernel.parts().n_rows;
        add_products(&patches, grad_y, n_out, n_rows, parts);
        return add_parts(shape.n_patch(), grad_weight, parts);
    }
    let sum_rows = by_pairs.as_ref().and_then(|(instructions, patches)| patches.sum_rows(*instructions, n_out));
    let block_taps = match sum_rows {
        // Each task would copy the lines.
        Some(_) if kernel.parts().n >= MIN_TASKS => window.kernel[0],
        _ => (BLOCK_LEN / (patches.n_cols(1) * n_out)).clamp(1, window.kernel[0]),
    };

    let mut tasks = Vec::new();
    let mut rest = &mut *parts;
    for first_row in (0..n_images * height).step_by(kernel.parts().n_rows) {
        let rows = first_row..(first_row + kernel.parts().n_rows).min(n_images * height);
        for first_tap in (0..window.kernel[0]).step_by(block_taps) {
            let taps = first_tap..(first_tap + block_taps).min(window.kernel[0]);
            let (sums, others) = rest.split_at_mut(n_out * patches.n_cols(taps.len()));
            rest = others;
            tasks.push((rows.clone(), taps, sums));
        }
    }
    tasks.into_par_iter().with_max_len(1).for_each_init_on_team(Vec::new, |buffer, (rows, taps, sums)| {
        let n_cols = patches.n_cols(taps.len());
        let n_rows = sum_rows.unwrap_or_else(|| (PATCHES_LEN / (n_cols * width)).max(1));
        for (i, start) in rows.clone().step_by(n_rows).enumerate() {
            let end = (start + n_rows).min(rows.end);
            let result_rows = result_rows(start..end, height);
            let n_pixels = (end - start) * width;
            let onto = if i == 0 { Onto::Nothing } else { Onto::Sum };
            if let (&Some((instructions, patches)), Floats::Bf16(grad_y)) = (&by_pairs, grad_y) {
                let grad_y = &grad_y[start * width * n_out..end * width * n_out];
                patches.add_pairs(instructions, (grad_y, n_out), (&result_rows, taps.clone()), sums, onto);
                continue;
            }
            let packed = patches.pack(&result_rows, taps.clone(), buffer);
            let range = start * width * n_out..end * width * n_out;
            with_room(grad_y.n_room(range.len()), |room| {
                let a =
                    Operand { data: grad_y.get(range, room), n_rows: n_out, n_cols: n_pixels, row_stride: 1, col_stride: n_out };
                let b = Operand { data: packed, n_rows: n_pixels, n_cols, row_stride: n_cols, col_stride: 1 };
                serial_product(a, b, sums, onto);
            });
        }
    });

    // Weight `[o, u, ..]` is in the block of its tap row `u`.
    let (tap_len, n_parts) = (patches.n_cols(1), kernel.parts().n);
    grad_weight.par_chunks_mut(shape.n_patch()).enumerate().for_each_on_team(|(o, grad_weight)| {
        vectorised(inlined!(|| {
            for (i, grad_weight) in grad_weight.chunks_mut(block_taps * tap_len).enumerate() {
                let block = i * block_taps * tap_len * n_out + o * grad_weight.len();
                grad_weight.fill(0.0);
                for part in 0..n_parts {
                    let sums = &parts[part * n_out * tap_len * window.kernel[0] + block..][..grad_weight.len()];
                    for (grad_weight, sum) in grad_weight.iter_mut().zip(sums) {
                        *grad_weight += sum;
                    }
                }
            }
        }));
    });
}

/// The sums of each part, without patches: `parts` is `[part][taps, n_channels, n_out]`, each of `n_rows` rows of pixels.
fn add_products<T: Element>(patches: &Patches<'_, T>, grad_y: Floats<'_>, n_out: usize, n_rows: usize, parts: &mut [f32]) {
    let [along_y, along_x] = patches.walks;
    let (n_images, height, width) = (patches.images.n_images, along_y.n, along_x.n);
    let task_rows = TASK_PIXELS.div_ceil(width);
    let task = |buffer: &mut Vec<f32>, (part, sums): (usize, &mut [f32])| {
        sums.fill(0.0);
        let end = ((part + 1) * n_rows).min(n_images * height);
        for start in (part * n_rows..end).step_by(task_rows) {
            let rows = start..(start + task_rows).min(end);
            let range = rows.start * width * n_out..rows.end * width * n_out;
            let rows = result_rows(rows, height);
            with_room(grad_y.n_room(range.len()), |room| {
                let grad_y = grad_y.get(range, room);
                patches.with_lines(&rows, buffer, |lines| lines.add_products(grad_y, n_out, sums));
            });
        }
    };
    let n_weights = patches.n_cols(along_y.n_taps) * n_out;
    parts.par_chunks_mut(n_weights).with_max_len(1).enumerate().for_each_init_on_team(Vec::new, task);
}

/// `grad_weight: [n_out, taps, n_channels]` = the sum of the parts, each `[taps, n_channels, n_out]`.
fn add_parts(n_patch: usize, grad_weight: &mut [f32], parts: &mut [f32]) {
    let n_out = grad_weight.len() / n_patch;
    let (sums, others) = parts.split_at_mut(grad_weight.len());
    for part in others.chunks_exact(sums.len()) {
        vectorised(inlined!(|| sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part)));
    }
    for (o, grad_weight) in grad_weight.chunks_exact_mut(n_patch).enumerate() {
        let sums = sums[o..].iter().step_by(n_out);
        grad_weight.iter_mut().zip(sums).for_each(|(grad_weight, &sum)| *grad_weight = sum);
    }
}
