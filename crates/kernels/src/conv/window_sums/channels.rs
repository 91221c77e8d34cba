//! The vectors in which the channels of a pixel are stored, and their arithmetic.

#[cfg(target_arch = "x86_64")]
mod full_and_half;

#[cfg(target_arch = "x86_64")]
pub(super) use full_and_half::{FullAndHalf, N_FULL_AND_HALF};
use pulp::Simd;

/// How the channels of a pixel are divided into vectors.
pub(super) trait Channels: Copy {
    type Simd: Simd;
    /// The channels of a pixel in memory.
    type Stored;
    /// The channels of a pixel in registers.
    type Vectors: Copy;
    /// A number in every lane of a vector.
    type Splat: Copy;

    fn simd(self) -> Self::Simd;
    fn zero(self) -> Self::Vectors;
    fn load(self, from: &Self::Stored) -> Self::Vectors;
    fn store(self, sums: Self::Vectors, to: &mut Self::Stored);
    fn splat(self, x: f32) -> Self::Splat;
    /// `sums + x weights`.
    fn add(self, sums: Self::Vectors, x: Self::Splat, weights: Self::Vectors) -> Self::Vectors;
}

/// `N` vectors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole<S, const N: usize>(pub(super) S);

impl<S: Simd, const N: usize> Channels for Whole<S, N> {
    type Simd = S;
    type Stored = [S::f32s; N];
    type Vectors = [S::f32s; N];
    type Splat = S::f32s;

    #[inline(always)]
    fn simd(self) -> S {
        self.0
    }

    #[inline(always)]
    fn zero(self) -> Self::Vectors {
        [self.0.splat_f32s(0.0); N]
    }

    #[inline(always)]
    fn load(self, from: &Self::Stored) -> Self::Vectors {
        *from
    }

    #[inline(always)]
    fn store(self, sums: Self::Vectors, to: &mut Self::Stored) {
        *to = sums;
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::Splat {
        self.0.splat_f32s(x)
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Vectors, x: Self::Splat, weights: Self::Vectors) -> Self::Vectors {
        for i in 0..N {
            sums[i] = self.0.mul_add_f32s(x, weights[i], sums[i]);
        }
        sums
    }
}
