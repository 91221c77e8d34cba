//! The patches that windows cover, copied side by side: the rows of a matrix whose product with the weights is a convolution.

use std::ops::Range;

use bytemuck::Pod;

use super::window_sums::{self, max_channels};
use crate::conv::conv_shape::ConvShape;
use crate::conv::window::Images;
use crate::gemm::gemm::{Onto, Operand, Panels, with_panels};
use crate::gemm::transpose::Transpose;
use crate::storage::element::{Element, widen};
use crate::vectorised::{inlined, vectorised};

/// Which pixels result pixels read along one axis: result `i` reads `start + step * i + tap` at each of its taps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    /// Result pixels.
    pub(crate) n: usize,
    /// The number of pixels that each reads.
    pub(crate) n_taps: usize,
    /// The first pixel that result 0 reads; negative in the padding.
    pub(crate) start: isize,
    /// The distance from one result pixel to the next.
    pub(crate) step: usize,
}

/// The patches of `source` along two walks, `[rows and columns]`, converted to f32.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patches<'a, T> {
    pub(crate) source: &'a [T],
    pub(crate) images: Images,
    pub(crate) walks: [Walk; 2],
}

/// Weights `[n_cols, n]` of patches: rows from `first` on of a matrix that is packed, unless all sums are computed in registers.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) panels: Option<Panels<'a>>,
    pub(crate) first: usize,
    pub(crate) n: usize,
}

/// Calls `f` with all rows of `[n_rows, n]`, packed if some products need it.
pub(crate) fn with_weights<R>(data: &[f32], n: usize, is_packed: bool, f: impl FnOnce(Weights<'_>) -> R) -> R {
    let weights = Weights { data, panels: None, first: 0, n };
    if !is_packed {
        return f(weights);
    }
    let matrix = Operand::right(data, [data.len() / n, n], Transpose::None);
    with_panels(matrix, |panels| f(Weights { panels: Some(panels), ..weights }))
}

impl<'a> Weights<'a> {
    /// The rows after the first `n_rows`.
    pub(crate) fn after(self, n_rows: usize) -> Self {
        Self { first: self.first + n_rows, ..self }
    }

    fn rows(self, n_rows: usize) -> &'a [f32] {
        &self.data[self.first * self.n..][..n_rows * self.n]
    }

    /// `y = patches weights`, or `y += patches weights`, by the rows from `first` on.
    fn multiply(self, patches: Operand<'_>, first: usize, y: &mut [f32], onto: Onto) {
        let panels = self.panels.expect("weights of convolutions that are not narrow are packed");
        let first = self.first + first;
        panels.times(patches, first..first + patches.n_cols, y, onto);
    }
}

/// A row of result pixels: its image, and its position in the walk along the height.
pub(crate) type ResultRow = (usize, usize);

/// Those of images of `height` rows, which are numbered one image after the other.
pub(crate) fn result_rows(rows: Range<usize>, height: usize) -> Vec<ResultRow> {
    rows.map(|row| (row / height, row % height)).collect()
}

/// The lines that the windows of some result rows cover.
pub(crate) struct Covered {
    /// The image and the number of each line; in the padding, the number is outside of the image.
    pub(crate) lines: Vec<(usize, isize)>,
    /// The first of the lines of each result row.
    pub(crate) starts: Vec<usize>,
}

/// Elements of patches that are made at a time, so that they are still in cache when they are multiplied.
const BUFFER_LEN: usize = 96 * 1024;

/// The maximum number of weights for which sums are computed in registers: the weights are read again for every few pixels.
const NARROW_WEIGHTS: usize = 64 * 1024;

/// Conditions for multiplying a line in place: the minimum number of result pixels of a line, the minimum number of values of a
/// row of taps, and its maximum number of weights.
const LINE_PIXELS: usize = 16;
const LINE_DEPTH: usize = 64;
const LINE_WEIGHTS: usize = 64 * 1024;

impl<'a, T: Element> Patches<'a, T> {
    /// Those of the windows of a convolution.
    pub(crate) fn of_windows(source: &'a [T], shape: &ConvShape) -> Self {
        let Images { height, width, .. } = shape.y();
        let window = &shape.window;
        let walk = |axis: usize| Walk {
            n: [height, width][axis],
            n_taps: window.kernel[axis],
            start: -(window.padding[axis] as isize),
            step: window.stride[axis],
        };
        Patches { source, images: shape.x, walks: [walk(0), walk(1)] }
    }

    /// Elements of a patch of `n_tap_rows` rows of taps.
    pub(crate) fn n_cols(&self, n_tap_rows: usize) -> usize {
        n_tap_rows * self.walks[1].n_taps * self.images.n_channels
    }

    /// `y = patches weights` for the result pixels of `rows`, `y: [n_pixels, n]`. The content of `buffer` does not matter.
    pub(crate) fn times(&self, rows: &[ResultRow], weights: Weights<'_>, y: &mut [f32], buffer: &mut Vec<f32>) {
        let (k, n) = (self.n_cols(1), weights.n);
        if self.is_narrow(n) {
            self.with_lines(rows, buffer, |lines| lines.times(weights.rows(self.n_cols(self.walks[0].n_taps)), n, y));
        // The product of one line must be large enough to be worth a call, and its weights are read again for each line.
        } else if self.walks[1].n >= LINE_PIXELS && k >= LINE_DEPTH && k * n <= LINE_WEIGHTS {
            self.lines_times(rows, weights, y, buffer);
        } else {
            self.packed_times(rows, weights, y, buffer);
        }
    }

    /// Whether sums of `n` channels are best computed [in registers](window_sums::Lines): if there are few, and windows leave no
    /// gaps that would be copied with the lines.
    pub(crate) fn is_narrow(&self, n: usize) -> bool {
        let Walk { step, n_taps, .. } = self.walks[1];
        n <= max_channels() && step <= n_taps && self.n_cols(self.walks[0].n_taps) * n <= NARROW_WEIGHTS
    }

    /// Calls `f` with the lines that the windows of `rows` cover, each copied once.
    pub(crate) fn with_lines(&self, rows: &[ResultRow], buffer: &mut Vec<f32>, f: impl FnOnce(window_sums::Lines<'_>)) {
        let ([along_y, along_x], c) = (self.walks, self.images.n_channels);
        let len = self.line_pixels() * c;
        let covered = self.covered(rows);
        let n_values = covered.lines.len() * len;
        if buffer.len() < n_values {
            buffer.resize(n_values, 0.0);
        }
        let values = &mut buffer[..n_values];
        self.copy_lines(&covered, values, widen);
        let starts: Vec<usize> = covered.starts.iter().map(|line| line * len).collect();
        let (n_tap_rows, tap_row_len) = (along_y.n_taps, self.n_cols(1));
        f(window_sums::Lines {
            values,
            len,
            starts: &starts,
            n_pixels: along_x.n,
            step: along_x.step * c,
            n_tap_rows,
            tap_row_len,
        });
    }

    /// The pixels of a line that the windows of a row of results cover, padding included.
    pub(crate) fn line_pixels(&self) -> usize {
        let Walk { n, step, n_taps, .. } = self.walks[1];
        (n - 1) * step + n_taps
    }

    /// The lines that the windows of `rows` cover.
    pub(crate) fn covered(&self, rows: &[ResultRow]) -> Covered {
        let along_y = self.walks[0];
        let mut covered = Covered { lines: Vec::new(), starts: Vec::with_capacity(rows.len()) };
        // The image and the line after the last.
        let mut next = (usize::MAX, 0);
        for &(image, j) in rows {
            let first = along_y.start + (along_y.step * j) as isize;
            let end = first + along_y.n_taps as isize;
            let held = if next.0 == image { (next.1 - first).max(0) } else { 0 };
            covered.starts.push(covered.lines.len() - held as usize);
            covered.lines.extend((first + held..end).map(|at| (image, at)));
            next = (image, end);
        }
        covered
    }

    /// Copies lines into `padded`, one after the other, with 0 in the padding.
    #[inline(always)]
    pub(crate) fn copy_lines<D: Pod>(&self, covered: &Covered, padded: &mut [D], copy: impl Fn(&[T], &mut [D])) {
        let (n_pixels, c) = (self.line_pixels(), self.images.n_channels);
        let whole = Walk { n: 1, n_taps: n_pixels, ..self.walks[1] };
        for (&(image, at), padded) in covered.lines.iter().zip(padded.chunks_exact_mut(n_pixels * c)) {
            let line = (0..self.images.height as isize).contains(&at).then(|| self.line(image, at as usize));
            vectorised(inlined!(|| pack_pixel(&whole, c, line, 0, padded, &copy)));
        }
    }

    /// Without patches: the values of one row of taps are contiguous in the source line, each window starts one pixel after the
    /// previous one, and they overlap. Only lines that reach into the padding, or are not f32, are copied, and kept for the
    /// result rows that share them.
    fn lines_times(&self, rows: &[ResultRow], weights: Weights<'_>, y: &mut [f32], buffer: &mut Vec<f32>) {
        let ([along_y, along_x], c, k) = (self.walks, self.images.n_channels, self.n_cols(1));
        let n_pixels = (along_x.n - 1) * along_x.step + along_x.n_taps;
        let is_inside = along_x.start >= 0 && along_x.start as usize + n_pixels <= self.images.width;
        let whole = Walk { n: 1, n_taps: n_pixels, ..along_x };
        if buffer.len() < along_y.n_taps * n_pixels * c {
            buffer.resize(along_y.n_taps * n_pixels * c, 0.0);
        }
        let mut held = vec![None; along_y.n_taps];
        for (&(image, j), y) in rows.iter().zip(y.chunks_exact_mut(along_x.n * weights.n)) {
            let mut onto = Onto::Nothing;
            for tap in 0..along_y.n_taps {
                let at = along_y.start + (along_y.step * j + tap) as isize;
                if !(0..self.images.height as isize).contains(&at) {
                    continue;
                }
                let line = self.line(image, at as usize);
                let data = if let Some(line) = T::as_f32(line).filter(|_| is_inside) {
                    &line[along_x.start as usize * c..][..n_pixels * c]
                } else {
                    let slot = at as usize % along_y.n_taps;
                    let padded = &mut buffer[slot * n_pixels * c..][..n_pixels * c];
                    if held[slot] != Some((image, at)) {
                        held[slot] = Some((image, at));
                        vectorised(inlined!(|| pack_pixel(&whole, c, Some(line), 0, padded, &widen)));
                    }
                    padded
                };
                let a = Operand { data, n_rows: along_x.n, n_cols: k, row_stride: along_x.step * c, col_stride: 1 };
                weights.multiply(a, tap * k, y, onto);
                onto = Onto::Sum;
            }
            if onto == Onto::Nothing {
                y.fill(0.0);
            }
        }
    }

    /// With patches, for a few rows of taps at a time: as many as the buffer may hold, which depends only on the shape.
    fn packed_times(&self, rows: &[ResultRow], weights: Weights<'_>, y: &mut [f32], buffer: &mut Vec<f32>) {
        let n_pixels = rows.len() * self.walks[1].n;
        let n_taps = self.walks[0].n_taps;
        let n_tap_rows = (BUFFER_LEN / (n_pixels * self.n_cols(1))).clamp(1, n_taps);
        for first in (0..n_taps).step_by(n_tap_rows) {
            let taps = first..(first + n_tap_rows).min(n_taps);
            let k = self.n_cols(taps.len());
            let patches = self.pack(rows, taps.clone(), buffer);
            let a = Operand { data: patches, n_rows: n_pixels, n_cols: k, row_stride: k, col_stride: 1 };
            weights.multiply(a, self.n_cols(first), y, if first == 0 { Onto::Nothing } else { Onto::Sum });
        }
    }

    /// The patches of all pixels of `rows`, one after the other, each `[taps, taps of a row, n_channels]`; 0 in the padding.
    pub(crate) fn pack<'b>(&self, rows: &[ResultRow], taps: Range<usize>, buffer: &'b mut Vec<f32>) -> &'b [f32] {
        let n_cols = self.n_cols(taps.len());
        let len = rows.len() * self.walks[1].n * n_cols;
        if buffer.len() < len {
            buffer.resize(len, 0.0);
        }
        self.pack_by(widen, rows, taps, (n_cols, self.n_cols(1)), &mut buffer[..len]);
        &buffer[..len]
    }

    /// The same in `patches`, `stride` apart, and the rows of taps of each, `tap_stride` apart, with `copy` for adjacent values.
    #[inline(always)]
    fn pack_by<D: Pod>(
        &self,
        copy: impl Fn(&[T], &mut [D]),
        rows: &[ResultRow],
        taps: Range<usize>,
        (stride, tap_stride): (usize, usize),
        patches: &mut [D],
    ) {
        let ([along_y, along_x], n_cols) = (self.walks, self.n_cols(1));
        for (&(image, j), patches) in rows.iter().zip(patches.chunks_exact_mut(along_x.n * stride)) {
            vectorised(inlined!(|| {
                // One row of taps of all these pixels, from one line of the source.
                for (i, tap) in taps.clone().enumerate() {
                    let y = along_y.start + (along_y.step * j + tap) as isize;
                    let line = (0..self.images.height as isize).contains(&y).then(|| self.line(image, y as usize));
                    for (pixel, patch) in patches.chunks_exact_mut(stride).enumerate() {
                        let patch = &mut patch[i * tap_stride..][..n_cols];
                        pack_pixel(&along_x, self.images.n_channels, line, pixel, patch, &copy);
                    }
                }
            }));
        }
    }

    /// The patches of all pixels of `rows`, `stride` apart, and the rows of taps of each, `tap_stride` apart, as they are stored.
    pub(crate) fn pack_stored(
        &self,
        rows: &[ResultRow],
        taps: Range<usize>,
        (stride, tap_stride): (usize, usize),
        patches: &mut [T],
    ) {
        self.pack_by(|from, to| to.copy_from_slice(from), rows, taps, (stride, tap_stride), patches);
    }

    fn line(&self, image: usize, y: usize) -> &[T] {
        let len = self.images.width * self.images.n_channels;
        &self.source[(image * self.images.height + y) * len..][..len]
    }
}

/// The values of one line that result pixel `i` reads, 0 beyond its ends.
#[inline(always)]
fn pack_pixel<T: Element, D: Pod>(
    walk: &Walk,
    n_channels: usize,
    line: Option<&[T]>,
    i: usize,
    patch: &mut [D],
    copy: &impl Fn(&[T], &mut [D]),
) {
    let Some(line) = line else { return patch.fill(D::zeroed()) };
    let width = (line.len() / n_channels) as isize;
    let first = walk.start + (walk.step * i) as isize;
    let inside = |tap: isize| tap.clamp(0, walk.n_taps as isize) as usize;
    let (begin, end) = (inside(-first), inside(width - first));
    if begin >= end {
        return patch.fill(D::zeroed());
    }
    let from = (first + begin as isize) as usize * n_channels;
    patch[..begin * n_channels].fill(D::zeroed());
    copy(&line[from..from + (end - begin) * n_channels], &mut patch[begin * n_channels..end * n_channels]);
    patch[end * n_channels..].fill(D::zeroed());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows that overlap or touch, with and without padding; channels that fill vectors or do not; fewer pixels than a tile
    /// and more.
    #[test]
    fn sums_in_registers_equal_those_of_patches() {
        let number = |i: usize| (i * 7919 % 1013) as f32 / 512.0 - 1.0;
        let mut n_checked = 0;
        for (height, width, c) in [(1, 1, 3), (5, 4, 1), (7, 9, 5), (6, 31, 24)] {
            for (n_taps, step, padding) in [(1, 1, 0), (2, 1, 0), (3, 1, 1), (3, 2, 1), (2, 2, 0), (5, 1, 2)] {
                let walk = |size: usize| Walk {
                    n: (size + 2 * padding).saturating_sub(n_taps) / step + 1,
                    n_taps,
                    start: -(padding as isize),
                    step,
                };
                if height.min(width) + 2 * padding < n_taps {
                    continue;
                }
                let images = Images { n_images: 2, height, width, n_channels: c };
                let source: Vec<f32> = (0..images.len()).map(number).collect();
                let patches = Patches { source: &source, images, walks: [walk(height), walk(width)] };
                // Starts in the middle of an image and ends in the next.
                let n_rows = patches.walks[0].n;
                let rows: Vec<ResultRow> = (n_rows / 2..2 * n_rows).map(|row| (row / n_rows, row % n_rows)).collect();
                let (n_pixels, k) = (rows.len() * patches.walks[1].n, patches.n_cols(n_taps));
                for n in [1, 3, 8, 16, 17, 24, 32, 48, 63, 64] {
                    if !patches.is_narrow(n) {
                        continue;
                    }
                    let place = format!("{images:?}, {n_taps} taps, step {step}, padding {padding}, {n} channels");
                    let (weights, grad_y): (Vec<f32>, Vec<f32>) =
                        ((0..k * n).map(number).collect(), (0..n_pixels * n).map(number).collect());
                    let mut expected = vec![0.0; n_pixels * n];
                    with_weights(&weights, n, true, |weights| {
                        patches.packed_times(&rows, weights, &mut expected, &mut Vec::new());
                    });
                    let mut found = vec![f32::NAN; n_pixels * n];
                    // The content of the buffer must not matter.
                    let mut buffer = vec![f32::NAN; 100_000];
                    patches.with_lines(&rows, &mut buffer, |lines| lines.times(&weights, n, &mut found));
                    assert_close(&place, &found, &expected);

                    let packed = patches.pack(&rows, 0..n_taps, &mut buffer).to_vec();
                    let expected: Vec<f32> = (0..k * n)
                        .map(|i| {
                            (0..n_pixels).map(|pixel| packed[pixel * k + i / n] * grad_y[pixel * n + i % n]).sum::<f32>() + 1.0
                        })
                        .collect();
                    let mut found = vec![1.0; k * n];
                    patches.with_lines(&rows, &mut buffer, |lines| lines.add_products(&grad_y, n, &mut found));
                    assert_close(&place, &found, &expected);
                    n_checked += 1;
                }
            }
        }
        assert!(n_checked > 50, "only {n_checked} sizes were narrow");
    }

    fn assert_close(place: &str, found: &[f32], expected: &[f32]) {
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!(
                (found - expected).abs() <= 1e-4 * (1.0 + expected.abs()),
                "{place}: element {i} is {found}, expected {expected}"
            );
        }
    }
}
