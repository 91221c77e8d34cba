use rayon::prelude::*;

use super::matmul::{apply, transpose_into};
use super::patches::{Patches, ResultRow, Walk};
use super::vectorised::vectorised;
use crate::{Conv2d, Images};

/// Result pixels that a task has, if a row is not longer.
pub(crate) const TASK_PIXELS: usize = 256;

pub(crate) fn run(kernel: &Conv2d, x: &[f32], weight: &[f32], bias: &[f32], y: &mut [f32], weight_turned: &mut [f32]) {
    let shape = &kernel.shape;
    let (n_out, window) = (shape.n_out, &shape.window);
    transpose_into(weight, n_out, shape.n_patch(), weight_turned);
    let weights = &*weight_turned;
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
    let task = |buffer: &mut Vec<f32>, (i, y): (usize, &mut [f32])| {
        let first = i * task_rows;
        let rows: Vec<ResultRow> = (first..first + y.len() / (width * n_out)).map(|row| (row / height, row % height)).collect();
        patches.times(&rows, weights, n_out, y, buffer);
        vectorised(
            #[inline(always)]
            || {
                for (pixel, y) in y.chunks_exact_mut(n_out).enumerate() {
                    apply(kernel.epilogue, bias, n_out, first * width + pixel, 0..n_out, y);
                }
            },
        );
    };
    y.par_chunks_mut(task_rows * width * n_out).enumerate().for_each_init(Vec::new, task);
}
