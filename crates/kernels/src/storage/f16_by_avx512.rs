//! Conversion of slices of f16 by the instructions of AVX-512, of which one takes the place of ten or twenty. They give the same
//! bits as the conversion of single elements, by which other processors convert.

use half::f16;

use super::halves::{f16_of_f32, f32_of_f16};

/// `y = x` in f32.
#[inline(always)]
pub(super) fn widen(x: &[f16], y: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(done) = avx512::widen(x, y) {
        return done;
    }
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f32_of_f16(x.to_bits());
    }
}

/// `y = x`, rounded.
#[inline(always)]
pub(super) fn narrow(x: &[f32], y: &mut [f16]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(done) = avx512::narrow(x, y) {
        return done;
    }
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f16::from_bits(f16_of_f32(x));
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{__m256i, __m512, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT};

    use half::f16;
    use half::slice::HalfFloatSliceExt as _;
    use pulp::x86::V4;
    use pulp::{NullaryFnOnce, cast};

    use crate::storage::halves::{f16_of_f32, f32_of_f16};

    /// Elements of a vector.
    const N: usize = 16;

    /// `None` if the processor does not have the instructions, or if the slice is too short for them.
    pub(super) fn widen(x: &[f16], y: &mut [f32]) -> Option<()> {
        if x.len() < N {
            return None;
        }
        let v4 = V4::try_new()?;
        v4.vectorize(Widen { v4, x: x.reinterpret_cast(), y });
        Some(())
    }

    /// Likewise.
    pub(super) fn narrow(x: &[f32], y: &mut [f16]) -> Option<()> {
        if x.len() < N {
            return None;
        }
        let v4 = V4::try_new()?;
        v4.vectorize(Narrow { v4, x, y: y.reinterpret_cast_mut() });
        Some(())
    }

    struct Widen<'a> {
        v4: V4,
        x: &'a [u16],
        y: &'a mut [f32],
    }

    impl NullaryFnOnce for Widen<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            let Self { v4, x, y } = self;
            let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<N>(), y.as_chunks_mut::<N>());
            for (y, x) in y.iter_mut().zip(x) {
                *y = cast(v4.avx512f._mm512_cvtph_ps(cast::<[u16; N], __m256i>(*x)));
            }
            for (y, &x) in y_rest.iter_mut().zip(x_rest) {
                *y = f32_of_f16(x);
            }
        }
    }

    struct Narrow<'a> {
        v4: V4,
        x: &'a [f32],
        y: &'a mut [u16],
    }

    impl NullaryFnOnce for Narrow<'_> {
        type Output = ();

        #[inline(always)]
        fn call(self) {
            const ROUNDING: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
            let Self { v4, x, y } = self;
            let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<N>(), y.as_chunks_mut::<N>());
            for (y, x) in y.iter_mut().zip(x) {
                *y = cast(v4.avx512f._mm512_cvtps_ph::<ROUNDING>(cast::<[f32; N], __m512>(*x)));
            }
            for (y, &x) in y_rest.iter_mut().zip(x_rest) {
                *y = f16_of_f32(x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_converted_as_single_elements() {
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let mut wide = vec![0.0; halves.len()];
        widen(&halves, &mut wide);
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&wide), bits(&halves.iter().map(|x| f32_of_f16(x.to_bits())).collect::<Vec<_>>()));
        // Each half, numbers next to it, and those between two halves.
        let mut x: Vec<f32> =
            wide.iter().flat_map(|x| [-1, 0, 1].map(|d| f32::from_bits(x.to_bits().wrapping_add_signed(d)))).collect();
        x.extend(wide.iter().flat_map(|x| [0xFFF, 0x1000, 0x1001].map(|d| f32::from_bits(x.to_bits().wrapping_add(d)))));
        x.extend((0..1 << 16).map(|i: u32| f32::from_bits(i.wrapping_mul(0x9E37_79B9))));
        x.push(65520.0);
        let mut y = vec![f16::ZERO; x.len()];
        narrow(&x, &mut y);
        for (x, y) in x.iter().zip(y) {
            assert_eq!(y.to_bits(), f16_of_f32(*x), "{x}");
        }
    }
}
