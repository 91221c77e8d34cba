//! `y[pixel] = Σ_k window[pixel, k] weights[k]`, for tiles of pixels whose sums stay in registers.

use pulp::{Simd, WithSimd};

use super::Lines;
use super::channels::Channels;

/// The sums of `P` result pixels, which may be in several rows, starting at `first`.
struct Pixels<'a, 'b, C: Channels, const P: usize> {
    channels: C,
    lines: Lines<'a>,
    weights: &'a [C::Stored],
    first: usize,
    y: &'b mut [C::Stored],
}

impl<C: Channels, const P: usize> WithSimd for Pixels<'_, '_, C, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { channels, lines, weights, first, y } = self;
        let k = lines.tap_row_len;
        let windows = lines.windows::<P>(first);
        let mut sums = [channels.zero(); P];
        for (tap_row, weights) in weights.chunks_exact(k).take(lines.n_tap_rows).enumerate() {
            let mut x = [&lines.values[..0]; P];
            for p in 0..P {
                x[p] = &lines.values[windows[p] + tap_row * lines.len..][..k];
            }
            for (i, weights) in weights.iter().enumerate() {
                let weights = channels.load(weights);
                for p in 0..P {
                    sums[p] = channels.add(sums[p], channels.splat(x[p][i]), weights);
                }
            }
        }
        for (y, sums) in y.iter_mut().zip(sums) {
            channels.store(sums, y);
        }
    }
}

/// The sums of result pixels of one row whose windows are `TAPS` pixels wide, two or three, and start one pixel after each other.
/// `Q` pixels of a line are in the windows, the first at `start`; each value is broadcast once for all its windows.
///
/// With a broadcast for each window, sums of one or two vectors would need about as many loads as multiplications.
struct SideBySide<'a, 'b, C: Channels, const Q: usize, const TAPS: usize> {
    channels: C,
    lines: Lines<'a>,
    weights: &'a [C::Stored],
    start: usize,
    y: &'b mut [C::Stored],
}

impl<C: Channels, const Q: usize, const TAPS: usize> WithSimd for SideBySide<'_, '_, C, Q, TAPS> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { channels, lines, weights, start, y } = self;
        let c = lines.step;
        // The last ones, whose windows end beyond these pixels, are not used.
        let mut sums = [channels.zero(); Q];
        for (tap_row, weights) in weights.chunks_exact(TAPS * c).take(lines.n_tap_rows).enumerate() {
            let line = &lines.values[start + tap_row * lines.len..];
            let mut x = [&line[..0]; Q];
            for q in 0..Q {
                x[q] = &line[q * c..][..c];
            }
            let mut of_taps = [&weights[..0]; TAPS];
            for tap in 0..TAPS {
                of_taps[tap] = &weights[tap * c..][..c];
            }
            for i in 0..c {
                let mut weights = [channels.zero(); TAPS];
                for tap in 0..TAPS {
                    weights[tap] = channels.load(&of_taps[tap][i]);
                }
                // A loop over so many pixels would not be unrolled, and then the sums are not in registers.
                macro_rules! add {
                    ($($q:literal)*) => {
                        $(if $q < Q {
                            let x = channels.splat(x[$q][i]);
                            for tap in 0..TAPS {
                                if tap <= $q && $q - tap + TAPS <= Q {
                                    sums[$q - tap] = channels.add(sums[$q - tap], x, weights[tap]);
                                }
                            }
                        })*
                    };
                }
                add!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17);
            }
        }
        for (y, sums) in y.iter_mut().zip(sums) {
            channels.store(sums, y);
        }
    }
}

impl Lines<'_> {
    /// All result pixels, in tiles of `P` pixels.
    #[inline(always)]
    pub(super) fn in_tiles<C: Channels, const P: usize>(self, channels: C, weights: &[C::Stored], y: &mut [C::Stored]) {
        let n_pixels = y.len();
        let in_tiles = n_pixels - n_pixels % P;
        for (i, y) in y[..in_tiles].chunks_exact_mut(P).enumerate() {
            channels.simd().vectorize(Pixels::<_, P> { channels, lines: self, weights, first: i * P, y });
        }
        // The last pixels are computed together with some earlier ones: a tile takes little longer than a pixel.
        if in_tiles < n_pixels && in_tiles > 0 {
            let first = n_pixels - P;
            channels.simd().vectorize(Pixels::<_, P> { channels, lines: self, weights, first, y: &mut y[first..] });
        } else {
            for (first, y) in y[in_tiles..].chunks_exact_mut(1).enumerate() {
                channels.simd().vectorize(Pixels::<_, 1> { channels, lines: self, weights, first, y });
            }
        }
    }

    /// All result pixels, if windows are two or three pixels wide and start one pixel after each other, and a row has at least as
    /// many as `Q` pixels of a line have windows; otherwise it returns `false`.
    #[inline(always)]
    pub(super) fn side_by_side<C: Channels, const Q: usize>(
        self,
        channels: C,
        weights: &[C::Stored],
        y: &mut [C::Stored],
    ) -> bool {
        if self.tap_row_len == 2 * self.step && self.n_pixels >= Q - 1 {
            self.rows_side_by_side::<C, Q, 2>(channels, weights, y);
        } else if self.tap_row_len == 3 * self.step && self.n_pixels >= Q - 2 {
            self.rows_side_by_side::<C, Q, 3>(channels, weights, y);
        } else {
            return false;
        }
        true
    }

    #[inline(always)]
    fn rows_side_by_side<C: Channels, const Q: usize, const TAPS: usize>(
        self,
        channels: C,
        weights: &[C::Stored],
        y: &mut [C::Stored],
    ) {
        let tile = Q + 1 - TAPS;
        for (start, y) in self.starts.iter().zip(y.chunks_exact_mut(self.n_pixels)) {
            for first in (0..self.n_pixels).step_by(tile) {
                // The last tile of a row computes some pixels again.
                let first = first.min(self.n_pixels - tile);
                let (start, y) = (start + first * self.step, &mut y[first..first + tile]);
                channels.simd().vectorize(SideBySide::<_, Q, TAPS> { channels, lines: self, weights, start, y });
            }
        }
    }

    /// The starts of the windows of `P` result pixels, in the first of their lines.
    #[inline(always)]
    fn windows<const P: usize>(&self, first: usize) -> [usize; P] {
        let (mut row, mut pixel) = (first / self.n_pixels, first % self.n_pixels);
        let mut windows = [0; P];
        for window in &mut windows {
            *window = self.starts[row] + pixel * self.step;
            pixel += 1;
            if pixel == self.n_pixels {
                (row, pixel) = (row + 1, 0);
            }
        }
        windows
    }
}
