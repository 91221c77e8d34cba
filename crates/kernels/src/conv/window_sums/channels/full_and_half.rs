//! 24 channels.

use pulp::x86::V4;
use pulp::{cast, f32x8, f32x16};

use super::Channels;

/// The number of channels in [`FullAndHalf`].
pub(in super::super) const N_FULL_AND_HALF: usize = FULL + HALF;
const FULL: usize = 16;
const HALF: usize = 8;

/// 24 channels in one vector of 64 bytes and one of 32: two vectors of 64 bytes would be a quarter empty, and weights and
/// results would have to be copied to pad them.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct FullAndHalf(pub(in super::super) V4);

impl Channels for FullAndHalf {
    type Simd = V4;
    type Stored = [f32; N_FULL_AND_HALF];
    type Vectors = (f32x16, f32x8);
    type Splat = f32x16;

    #[inline(always)]
    fn simd(self) -> V4 {
        self.0
    }

    #[inline(always)]
    fn zero(self) -> Self::Vectors {
        (self.0.splat_f32x16(0.0), self.0.splat_f32x8(0.0))
    }

    #[inline(always)]
    fn load(self, from: &Self::Stored) -> Self::Vectors {
        let (full, half) = from.split_at(FULL);
        let full: &[f32; FULL] = full.first_chunk().expect("the first channels");
        let half: &[f32; HALF] = half.first_chunk().expect("the last channels");
        (cast(*full), cast(*half))
    }

    #[inline(always)]
    fn store(self, (sums, sums_of_half): Self::Vectors, to: &mut Self::Stored) {
        let (full, half) = to.split_at_mut(FULL);
        full.copy_from_slice(&cast::<_, [f32; FULL]>(sums));
        half.copy_from_slice(&cast::<_, [f32; HALF]>(sums_of_half));
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Splat {
        self.0.splat_f32x16(x)
    }

    #[inline(always)]
    fn add(self, (full, half): Self::Vectors, x: Self::Splat, weights: Self::Vectors) -> Self::Vectors {
        let [x_of_half, _] = cast::<_, [f32x8; 2]>(x);
        (self.0.mul_add_f32x16(x, weights.0, full), self.0.mul_add_f32x8(x_of_half, weights.1, half))
    }
}
