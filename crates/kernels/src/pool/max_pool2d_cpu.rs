use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::conv::window::Images;
use crate::cpu::blocks::each_row_in_f32;
use crate::cpu::room::{in_f32, read_in_f32};
use crate::cpu::team::OnTeam;
use crate::pool::pool_shape::PoolShape;
use crate::sizes::in_u32;
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

pub(crate) fn run<T: Element>(shape: &PoolShape, x: &[T], y: &mut [T], taps: &mut [u32]) {
    let Images { height, width, n_channels, .. } = shape.y();
    let row_len = width * n_channels;
    let task_rows = (16 * 1024 / row_len).max(1);
    let task = |(i, (y, taps)): (usize, (&mut [T], &mut [u32]))| {
        vectorised(inlined!(|| {
            in_f32(
                y,
                inlined!(|y| {
                    for (j, (y, taps)) in y.chunks_exact_mut(row_len).zip(taps.chunks_exact_mut(row_len)).enumerate() {
                        let row = i * task_rows + j;
                        let (image, i) = (row / height, row % height);
                        let line_len = shape.x.width * n_channels;
                        let lines = shape.covered(0, i).0;
                        let first_line = image * shape.x.height;
                        let x = &x[(first_line + lines.start) * line_len..(first_line + lines.end) * line_len];
                        read_in_f32(x, inlined!(|x| Arch::new().dispatch(PoolRow { shape, x, i, y, taps })));
                    }
                }),
            );
        }));
    };
    let tasks = y.par_chunks_mut(task_rows * row_len).zip(taps.par_chunks_mut(task_rows * row_len));
    tasks.enumerate().for_each_on_team(task);
}

/// [`pool_row`], whose maxima and taps stay in registers if there are enough channels.
struct PoolRow<'a, 'b> {
    shape: &'a PoolShape,
    /// The lines of an image that the windows of row `i` cover.
    x: &'a [f32],
    i: usize,
    y: &'b mut [f32],
    taps: &'b mut [u32],
}

impl WithSimd for PoolRow<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { shape, x, i, y, taps } = self;
        let n_channels = shape.x.n_channels;
        if !n_channels.is_multiple_of(S::F32_LANES) {
            return pool_row(shape, x, i, y, taps);
        }
        let n_vectors = n_channels / S::F32_LANES;
        let (vectors, y, all_taps) = (S::as_simd_f32s(x).0, S::as_mut_simd_f32s(y).0, S::as_mut_simd_u32s(taps).0);
        let (lines, first_line) = shape.covered(0, i);
        for (j, (y, taps)) in y.chunks_exact_mut(n_vectors).zip(all_taps.chunks_exact_mut(n_vectors)).enumerate() {
            let (pixels, first_pixel) = shape.covered(1, j);
            for (v, (y, taps)) in y.iter_mut().zip(taps).enumerate() {
                let (mut best, mut best_tap) = (simd.splat_f32s(f32::NEG_INFINITY), simd.splat_u32s(0));
                let mut is_first = true;
                for h in lines.clone() {
                    let first_tap = (h as isize - first_line) as usize * shape.window.kernel[1];
                    for w in pixels.clone() {
                        let tap = simd.splat_u32s(in_u32(first_tap + (w as isize - first_pixel) as usize));
                        let x = vectors[((h - lines.start) * shape.x.width + w) * n_vectors + v];
                        let wins = simd.or_m32s(simd.greater_than_f32s(x, best), simd.not_m32s(simd.equal_f32s(x, x)));
                        best = if is_first { x } else { simd.select_f32s(wins, x, best) };
                        best_tap = if is_first { tap } else { simd.select_u32s(wins, tap, best_tap) };
                        is_first = false;
                    }
                }
                (*y, *taps) = (best, best_tap);
            }
        }
    }
}

#[inline(always)]
fn pool_row(shape: &PoolShape, x: &[f32], i: usize, y: &mut [f32], taps: &mut [u32]) {
    let n_channels = shape.x.n_channels;
    let (lines, first_line) = shape.covered(0, i);
    for (j, (y, taps)) in y.chunks_exact_mut(n_channels).zip(taps.chunks_exact_mut(n_channels)).enumerate() {
        let (pixels, first_pixel) = shape.covered(1, j);
        let mut is_first = true;
        for h in lines.clone() {
            for w in pixels.clone() {
                let tap = (h as isize - first_line) as usize * shape.window.kernel[1] + (w as isize - first_pixel) as usize;
                let x = &x[((h - lines.start) * shape.x.width + w) * n_channels..][..n_channels];
                if is_first {
                    y.copy_from_slice(x);
                    taps.fill(in_u32(tap));
                    is_first = false;
                    continue;
                }
                for ((y, best), &x) in y.iter_mut().zip(taps.iter_mut()).zip(x) {
                    let wins = x > *y || x.is_nan();
                    *y = if wins { x } else { *y };
                    *best = if wins { in_u32(tap) } else { *best };
                }
            }
        }
    }
}

pub(crate) fn grad<T: Element>(shape: &PoolShape, grad_y: &[T], taps: &[u32], grad_x: &mut [T]) {
    let Images { height, width, n_channels, .. } = shape.x;
    let y = shape.y();
    let [stride, padding] = [shape.window.stride, shape.window.padding];
    each_row_in_f32(
        width * n_channels,
        grad_x,
        inlined!(|row, grad_x| {
            let (image, h) = (row / height, row % height);
            grad_x.fill(0.0);
            // Window by window: each pixel still adds the gradients of its windows in their order.
            for i in shape.covering(0, h) {
                let u = h + padding[0] - i * stride[0];
                let at = (image * y.height + i) * y.width * n_channels;
                let taps = &taps[at..];
                read_in_f32(
                    &grad_y[at..at + y.width * n_channels],
                    inlined!(|grad_y| {
                        for (j, (grad_y, taps)) in grad_y.chunks_exact(n_channels).zip(taps.chunks_exact(n_channels)).enumerate()
                        {
                            let (pixels, first_pixel) = shape.covered(1, j);
                            for w in pixels {
                                let tap = in_u32(u * shape.window.kernel[1] + (w as isize - first_pixel) as usize);
                                let grad_x = &mut grad_x[w * n_channels..][..n_channels];
                                for ((grad_x, &grad_y), &best) in grad_x.iter_mut().zip(grad_y).zip(taps) {
                                    *grad_x += if best == tap { grad_y } else { 0.0 };
                                }
                            }
                        }
                    }),
                );
            }
        }),
    );
}
