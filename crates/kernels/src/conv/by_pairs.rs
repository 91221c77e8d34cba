//! Convolutions of images in bf16 by matrix instructions.
//!
//! If windows are adjacent, no patches are made. Each line is copied once, with its padding. The values under one row of taps are
//! contiguous in it, and windows are one pixel apart, so the instructions can read the lines as a matrix whose rows overlap and
//! which has a segment for each row of taps. For AMX, some of its rows reach from the end of one line into the next one: their
//! results are dropped. Segments are padded up to the depth of a tile with whatever follows them, which is multiplied by weights
//! of 0; lines that contain infinities or NaN are therefore copied into patches.

use std::ops::Range;

use bytemuck::{Zeroable as _, cast_slice_mut};
use half::bf16;

use super::patches::{Covered, Patches, ResultRow};
use crate::cpu::blocks::Threads;
use crate::gemm::bf16::{Bf16Instructions, HEIGHT, LANES, Lines, STEP, Step, WIDTH};
use crate::gemm::gemm::Onto;
use crate::gemm::pairs::{DEPTH, Panels, Side, Stored, with_each, with_lines, with_panels, with_rows};
use crate::kernel::floats::Floats;
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

/// The minimum number of values of a patch for which matrix instructions pay, since smaller ones are mostly copying.
const MIN_DEPTH: usize = 64;
/// Pixels of lines whose products are added at a time, for gradients of weights: no more than are multiplied at a time.
const SUM_PIXELS: usize = DEPTH;

impl<'a, T: Element> Patches<'a, T> {
    /// These patches, and the instructions that multiply them with `other`, if there are any for their types and this shape.
    pub(crate) fn by_pairs(&self, other: &Floats<'_>) -> Option<(Bf16Instructions, Patches<'a, bf16>)> {
        let &Self { source, images, walks } = self;
        let source = T::as_bf16(source).filter(|_| matches!(other, Floats::Bf16(_)))?;
        let instructions = Bf16Instructions::detect().filter(|_| self.n_cols(walks[0].n_taps) >= MIN_DEPTH)?;
        Some((instructions, Patches { source, images, walks }))
    }
}

impl Patches<'_, bf16> {
    /// Weights `[n_cols, n]`, to be packed for [`times_pairs`](Self::times_pairs).
    pub(crate) fn side<'b>(&self, b: Stored<'b>) -> Side<'b> {
        let n_taps = self.walks[0].n_taps;
        Side { b, depth: 0..self.n_cols(n_taps), n_segments: if self.is_by_lines() { n_taps } else { 1 } }
    }

    /// Whether products read lines instead of patches: if windows are adjacent, and little is computed that is then dropped.
    fn is_by_lines(&self) -> bool {
        let [along_y, along_x] = self.walks;
        let (n_taps, len) = (along_y.n_taps, self.n_cols(1));
        let padded = n_taps * len.next_multiple_of(STEP);
        [along_y.step, along_x.step] == [1, 1]
            && len > 0
            && n_taps > 0
            && 2 * self.line_pixels() <= 3 * along_x.n
            && 2 * padded <= 3 * (n_taps * len).next_multiple_of(STEP)
    }

    /// The same for sums over pixels, whose results are padded, for `n_out` gradients of each pixel.
    fn sums_by_lines(&self, instructions: Bf16Instructions, n_out: usize) -> bool {
        let [along_y, along_x] = self.walks;
        let panels = |n_cols: usize| n_cols.div_ceil(WIDTH);
        let (of_taps, of_patch) = (panels(self.images.n_channels), panels(self.n_cols(along_y.n_taps)));
        if !self.is_by_lines() || along_y.n_taps * along_x.n_taps * of_taps > 2 * of_patch {
            return false;
        }
        // Lines are added with their padding, patches are copied: by AVX512_BF16 (Zen 4, one thread, 4 to 32 pixels a side),
        // copying took as long as adding another 12 / n_out of the pixels. By AMX, adding is cheaper.
        let (n_pixels, n_in_lines) = (along_y.n * along_x.n, (along_y.n + along_y.n_taps - 1) * self.line_pixels());
        instructions == Bf16Instructions::Amx || n_in_lines.saturating_sub(n_pixels) * n_out <= 12 * n_pixels
    }

    /// `y = patches weights` for the result pixels of `rows`.
    pub(crate) fn times_pairs(&self, rows: &[ResultRow], (instructions, weights): (Bf16Instructions, Panels<'_>), y: &mut [f32]) {
        let n_taps = self.walks[0].n_taps;
        let done = self.is_by_lines()
            && self.with_finite_lines(rows, |covered, lines| self.lines_times_pairs(covered, lines, (instructions, weights), y));
        if done {
            return;
        }
        let n_segments = if self.is_by_lines() { n_taps } else { 1 };
        let (n_pixels, len) = (rows.len() * self.walks[1].n, self.n_cols(n_taps) / n_segments);
        let padded = len.next_multiple_of(STEP);
        let stride = n_segments * padded;
        let tap_stride = if n_segments == 1 { self.n_cols(1) } else { padded };
        with_lines(n_pixels * stride / STEP, |steps: &mut [Step]| {
            let patches: &mut [bf16] = cast_slice_mut(steps);
            if padded > len {
                patches.chunks_exact_mut(padded).for_each(|segment| segment[len..].fill(bf16::ZERO));
            }
            self.pack_stored(rows, 0..n_taps, (stride, tap_stride), patches);
            weights.times(instructions, Lines::new(patches, stride, n_pixels, stride), y, Onto::Nothing);
        });
    }

    /// Calls `f` with the lines that the windows of `rows` cover, and zeros after them, if all of their values are finite, and
    /// returns whether they are.
    fn with_finite_lines(&self, rows: &[ResultRow], f: impl FnOnce(&Covered, &[bf16])) -> bool {
        let covered = self.covered(rows);
        let len = covered.lines.len() * self.line_pixels() * self.images.n_channels;
        // A block that starts at the last pixel, and its last segment.
        let padding = (HEIGHT + STEP) * self.images.n_channels + STEP;
        with_lines((len + padding).div_ceil(STEP), |steps: &mut [Step]| {
            let (lines, padding) = cast_slice_mut(steps).split_at_mut(len);
            self.copy_lines(&covered, lines, |from, to| to.copy_from_slice(from));
            padding.fill(bf16::zeroed());
            let is_finite = are_finite(lines);
            if is_finite {
                f(&covered, cast_slice_mut(steps));
            }
            is_finite
        })
    }

    fn lines_times_pairs(
        &self,
        covered: &Covered,
        lines: &[bf16],
        (instructions, weights): (Bf16Instructions, Panels<'_>),
        y: &mut [f32],
    ) {
        let (line_pixels, c) = (self.line_pixels(), self.images.n_channels);
        let ([along_y, along_x], depth) = (self.walks, self.n_cols(1).next_multiple_of(STEP));
        let n = y.len() / (covered.starts.len() * along_x.n);
        let mut rest = y;
        // Result rows of one image share lines.
        for starts in covered.starts.chunk_by(|row, next| row + 1 == *next) {
            let (y, others) = rest.split_at_mut(starts.len() * along_x.n * n);
            rest = others;
            let a = Lines {
                data: &lines[starts[0] * line_pixels * c..],
                first_row: 0,
                stride: c,
                pair_stride: 2,
                n_rows: (starts.len() - 1) * line_pixels + along_x.n,
                depth,
                n_segments: along_y.n_taps,
                segment_stride: line_pixels * c,
                band_rows: HEIGHT,
                band_stride: HEIGHT * c,
            };
            if instructions == Bf16Instructions::Avx512 {
                let n_rows = starts.len() * along_x.n;
                let windows = Lines { n_rows, band_rows: along_x.n, band_stride: line_pixels * c, ..a };
                weights.times_into(instructions, windows, n_rows, (y, n), Onto::Nothing);
                continue;
            }
            weights.each_block(instructions, a, |first, col, block| {
                let (n_cols, end) = (WIDTH.min(n - col), (first + HEIGHT).min(a.n_rows));
                let mut window = first;
                while window < end {
                    let (row, pixel) = (window / line_pixels, window % line_pixels);
                    let next = (window - pixel + line_pixels).min(end);
                    let n_pixels = along_x.n.saturating_sub(pixel).min(next - window);
                    if n_pixels > 0 {
                        let y = &mut y[(row * along_x.n + pixel) * n + col..];
                        copy_rows(&block[window - first..][..n_pixels], n_cols, y, n);
                    }
                    window = next;
                }
            });
        }
    }

    /// Result rows whose products are added at a time, if by lines: some images, or a part of one.
    pub(crate) fn sum_rows(&self, instructions: Bf16Instructions, n_out: usize) -> Option<usize> {
        self.sums_by_lines(instructions, n_out).then(|| {
            let along_y = self.walks[0];
            let n_lines = SUM_PIXELS / self.line_pixels();
            let n_images = n_lines / (along_y.n + along_y.n_taps - 1);
            if n_images > 0 { n_images * along_y.n } else { (n_lines + 1).saturating_sub(along_y.n_taps).max(1) }
        })
    }

    /// `sums = grad_yᵀ patches`, or `sums += grad_yᵀ patches`, for the pixels of some rows; `grad_y: [n_pixels, n_out]`,
    /// `sums: [n_out, n_cols]`.
    pub(crate) fn add_pairs(
        &self,
        instructions: Bf16Instructions,
        (grad_y, n_out): (&[bf16], usize),
        (rows, taps): (&[ResultRow], Range<usize>),
        sums: &mut [f32],
        onto: Onto,
    ) {
        let done = self.sums_by_lines(instructions, n_out)
            && self.with_finite_lines(rows, |covered, lines| {
                self.add_lines(instructions, (grad_y, n_out), (covered, lines, taps.clone()), sums, onto);
            });
        if done {
            return;
        }
        let grad_y = Stored { data: grad_y, n: n_out, stride: n_out, k_is_outer: true };
        let (n_pixels, n_cols) = (rows.len() * self.walks[1].n, self.n_cols(taps.len()));
        with_lines((n_pixels * n_cols).div_ceil(STEP), |steps: &mut [Step]| {
            let packed: &mut [bf16] = &mut cast_slice_mut(steps)[..n_pixels * n_cols];
            self.pack_stored(rows, taps, (n_cols, self.n_cols(1)), packed);
            let right = Stored { data: packed, n: n_cols, stride: n_cols, k_is_outer: true };
            with_panels(right, &(0..n_pixels), Threads::One, |right| {
                with_rows(instructions, grad_y, &(0..n_pixels), Threads::One, |left| {
                    right.times(instructions, left, sums, onto);
                });
            });
        });
    }

    /// The same by lines: under each tap, the pixels are those of the lines from some pixel on, and the gradient of what lies
    /// between lines is 0.
    fn add_lines(
        &self,
        instructions: Bf16Instructions,
        (grad_y, n_out): (&[bf16], usize),
        (covered, lines, taps): (&Covered, &[bf16], Range<usize>),
        sums: &mut [f32],
        onto: Onto,
    ) {
        let (line_pixels, c, along_x) = (self.line_pixels(), self.images.n_channels, self.walks[1]);
        let n_pixels = covered.lines.len() * line_pixels;
        let n_cols = self.n_cols(taps.len());
        // Pairs of pixels start at an even pixel, or at an odd one.
        let side = |first: usize| Side {
            b: Stored { data: &lines[first * c..], n: c, stride: c, k_is_outer: true },
            depth: 0..n_pixels + STEP,
            n_segments: 1,
        };
        let padded = n_out.next_multiple_of(LANES);
        let n_windows = covered.starts.last().map_or(0, |line| line * line_pixels + along_x.n);
        with_lines((n_windows * padded).div_ceil(STEP), |steps: &mut [Step]| {
            let spread: &mut [bf16] = &mut cast_slice_mut(steps)[..n_windows * padded];
            spread.fill(bf16::ZERO);
            for (line, grad_y) in covered.starts.iter().zip(grad_y.chunks_exact(along_x.n * n_out)) {
                let spread = &mut spread[line * line_pixels * padded..][..along_x.n * padded];
                if padded == n_out {
                    spread.copy_from_slice(grad_y);
                    continue;
                }
                let spread = spread.chunks_exact_mut(padded);
                spread.zip(grad_y.chunks_exact(n_out)).for_each(|(spread, grad_y)| spread[..n_out].copy_from_slice(grad_y));
            }
            let left = Stored { data: spread, n: padded, stride: padded, k_is_outer: true };
            with_rows(instructions, left, &(0..n_windows), Threads::One, |left| {
                with_each(&[side(0), side(1)], Threads::One, |pixels| {
                    // Some rows of the left side stay in the first-level cache.
                    for row in (0..n_out).step_by(HEIGHT) {
                        let (left, n_rows) = (left.rows(row, HEIGHT), HEIGHT.min(n_out - row));
                        for (i, tap) in taps.clone().enumerate() {
                            for v in 0..along_x.n_taps {
                                let at = tap * line_pixels + v;
                                let first = row * n_cols + (i * along_x.n_taps + v) * c;
                                let y = (&mut sums[first..], n_cols);
                                pixels[at % 2].after(at / 2).times_into(instructions, left, n_rows, y, onto);
                            }
                        }
                    }
                });
            });
        });
    }
}

/// Copies the first `n_cols` of the sums of each row, to rows that are `stride` apart.
fn copy_rows(sums: &[[f32; WIDTH]], n_cols: usize, y: &mut [f32], stride: usize) {
    let rows = || sums.iter().enumerate();
    match n_cols {
        WIDTH => rows().for_each(|(i, sums)| *y[i * stride..].first_chunk_mut().expect("a row") = *sums),
        16 => rows()
            .for_each(|(i, sums)| *y[i * stride..].first_chunk_mut::<16>().expect("a row") = *sums.first_chunk().expect("half")),
        _ => rows().for_each(|(i, sums)| y[i * stride..][..n_cols].copy_from_slice(&sums[..n_cols])),
    }
}

fn are_finite(values: &[bf16]) -> bool {
    const EXPONENT: u16 = 0x7f80;
    let mut has_other = false;
    vectorised(inlined!(
        || has_other = values.iter().fold(false, |other, value| other | (value.to_bits() & EXPONENT == EXPONENT))
    ));
    !has_other
}

#[cfg(test)]
mod tests;
