use rayon::prelude::*;

use super::patches::{Patches, ResultRow, Walk};
use crate::core::half::{Element, Floats, in_f32};
use crate::core::room::with_room;
use crate::core::vectorised::vectorised;
use crate::product::gemm::{Onto, Operand, serial_product};
use crate::{Conv2dGradWeight, Images};

/// Elements of a block of sums that one task adds to: what a core's cache holds beside the patches.
const BLOCK_LEN: usize = 128 * 1024;
/// Elements of the patches that are added at a time.
const PATCHES_LEN: usize = 128 * 1024;

/// The sums of each part of the pixels are made by several tasks, each for some rows of taps; `parts` is `[part][block of taps][n_out, taps, n_channels]`.
pub(crate) fn run<T: Element, Y: Element>(
    kernel: &Conv2dGradWeight,
    grad_y: Floats<'_>,
    x: &[T],
    grad_weight: &mut [Y],
    parts: &mut [f32],
) {
    let shape = &kernel.shape;
    let (n_out, window) = (shape.n_out, &shape.window);
    let Images { n_images, height, width, .. } = shape.y();
    let walk = |axis: usize| Walk {
        n: [height, width][axis],
        n_taps: window.kernel[axis],
        start: -(window.padding[axis] as isize),
        step: window.stride[axis],
    };
    let patches = Patches { source: x, images: shape.x, walks: [walk(0), walk(1)] };
    let block_taps = (BLOCK_LEN / (patches.n_cols(1) * n_out)).clamp(1, window.kernel[0]);

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
    tasks.into_par_iter().with_max_len(1).for_each_init(Vec::new, |buffer, (rows, taps, sums)| {
        let n_cols = patches.n_cols(taps.len());
        let n_rows = (PATCHES_LEN / (n_cols * width)).max(1);
        for (i, start) in rows.clone().step_by(n_rows).enumerate() {
            let end = (start + n_rows).min(rows.end);
            let result_rows: Vec<ResultRow> = (start..end).map(|row| (row / height, row % height)).collect();
            let n_pixels = (end - start) * width;
            let packed = patches.pack(&result_rows, taps.clone(), buffer);
            let range = start * width * n_out..end * width * n_out;
            with_room(grad_y.n_room(range.len()), |room| {
                let a =
                    Operand { data: grad_y.get(range, room), n_rows: n_out, n_cols: n_pixels, row_stride: 1, col_stride: n_out };
                let b = Operand { data: packed, n_rows: n_pixels, n_cols, row_stride: n_cols, col_stride: 1 };
                serial_product(a, b, sums, if i == 0 { Onto::Nothing } else { Onto::Sum });
            });
        }
    });

    // Weight `[o, u, ..]` stands in the block of its tap row `u`.
    let (tap_len, n_parts) = (patches.n_cols(1), kernel.parts().n);
    grad_weight.par_chunks_mut(shape.n_patch()).enumerate().for_each(|(o, grad_weight)| {
        in_f32(grad_weight, |grad_weight| {
            vectorised(
                #[inline(always)]
                || {
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
                },
            )
        });
    });
}
