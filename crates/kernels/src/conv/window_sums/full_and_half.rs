//! Sums of 24 channels in one vector of 64 bytes and one of 32: two vectors of 64 bytes would be a quarter empty, and weights and results would have to be copied to
//! pad them.

use pulp::x86::V4;
use pulp::{Simd, WithSimd, cast};

use super::Lines;

/// Channels of a result pixel.
pub(super) const N: usize = 24;
/// Channels in the vector of 64 bytes.
const FULL: usize = 16;
/// Result pixels of a tile, whose sums stay in registers.
const TILE: usize = 12;

/// `y[pixel] = Σ_k window[pixel, k] weights[k]`.
pub(super) struct Forward<'a, 'b> {
    pub(super) v4: V4,
    pub(super) lines: Lines<'a>,
    pub(super) weights: &'a [[f32; N]],
    pub(super) y: &'b mut [[f32; N]],
}

impl WithSimd for Forward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { v4, lines, weights, y } = self;
        let n_pixels = y.len();
        let (tiles, rest) = y.as_chunks_mut::<TILE>();
        let n_rest = rest.len();
        for (i, y) in tiles.iter_mut().enumerate() {
            simd.vectorize(Pixels { v4, lines, weights, first: i * TILE, y });
        }
        // The last pixels are computed together with some earlier ones: a tile takes little longer than a pixel.
        if n_rest > 0
            && let Some(y) = y.last_chunk_mut::<TILE>()
        {
            return simd.vectorize(Pixels { v4, lines, weights, first: n_pixels - TILE, y });
        }
        for (first, y) in y[n_pixels - n_rest..].as_chunks_mut::<1>().0.iter_mut().enumerate() {
            simd.vectorize(Pixels { v4, lines, weights, first, y });
        }
    }
}

/// The sums of `P` result pixels, starting at `first`.
struct Pixels<'a, 'b, const P: usize> {
    v4: V4,
    lines: Lines<'a>,
    weights: &'a [[f32; N]],
    first: usize,
    y: &'b mut [[f32; N]; P],
}

impl<const P: usize> WithSimd for Pixels<'_, '_, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { v4, lines, weights, first, y } = self;
        let k = lines.tap_row_len;
        let windows = lines.windows::<P>(first);
        let (mut full, mut half) = ([v4.splat_f32x16(0.0); P], [v4.splat_f32x8(0.0); P]);
        for (tap_row, weights) in weights.chunks_exact(k).take(lines.n_tap_rows).enumerate() {
            let mut x = [&lines.values[..0]; P];
            for p in 0..P {
                x[p] = &lines.values[windows[p] + tap_row * lines.len..][..k];
            }
            for (i, weights) in weights.iter().enumerate() {
                let (weights, weights_of_half) = split(weights);
                for p in 0..P {
                    full[p] = v4.mul_add_f32x16(v4.splat_f32x16(x[p][i]), cast(*weights), full[p]);
                    half[p] = v4.mul_add_f32x8(v4.splat_f32x8(x[p][i]), cast(*weights_of_half), half[p]);
                }
            }
        }
        for p in 0..P {
            let (sums, sums_of_half) = y[p].split_at_mut(FULL);
            sums.copy_from_slice(&cast::<_, [f32; FULL]>(full[p]));
            sums_of_half.copy_from_slice(&cast::<_, [f32; N - FULL]>(half[p]));
        }
    }
}

#[inline(always)]
fn split(row: &[f32; N]) -> (&[f32; FULL], &[f32; N - FULL]) {
    let (full, half) = row.split_at(FULL);
    (full.first_chunk().expect("16 channels"), half.first_chunk().expect("8 channels"))
}
