//! Conversions of f16 and bf16 to and from f32, without branches, so that loops over them are vectorised. To 16 bits they round
//! to nearest, ties to even.

use half::{bf16, f16};

#[inline(always)]
pub(crate) fn from_f16(value: f16) -> f32 {
    let bits = u32::from(value.to_bits());
    let magnitude = bits & 0x7fff;
    // The exponent bias is 15 in f16 and 127 in f32; infinity and NaN have the largest exponent in both.
    let rebias = if magnitude >= 0x7c00 { 224 << 23 } else { 112 << 23 };
    let normal = (magnitude << 13) + rebias;
    // Below 2⁻¹⁴ the bits are a multiple of 2⁻²⁴.
    let subnormal = (magnitude as f32 * f32::from_bits(103 << 23)).to_bits();
    f32::from_bits(if magnitude < 0x400 { subnormal } else { normal } | (bits & 0x8000) << 16)
}

#[inline(always)]
pub(crate) fn to_f16(value: f32) -> f16 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Rounding may carry into the exponent, and past the largest number to infinity.
    let normal = nearest(magnitude, 13).wrapping_sub(112 << 10);
    // The last bit of 0.5 in f32 is 2⁻²⁴: the sum is rounded there, and its low bits are the result.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(126 << 23);
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    let bounded = if magnitude >= 143 << 23 { 0x7c00 } else { finite };
    let nan = 0x7e00 | magnitude >> 13 & 0x3ff;
    f16::from_bits((if magnitude > 255 << 23 { nan } else { bounded } | bits >> 16 & 0x8000) as u16)
}

#[inline(always)]
pub(crate) fn from_bf16(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

#[inline(always)]
pub(crate) fn to_bf16(value: f32) -> bf16 {
    let bits = value.to_bits();
    let quiet = bits >> 16 | 0x40;
    bf16::from_bits(if value.is_nan() { quiet } else { nearest(bits, 16) } as u16)
}

/// Drops the last `n` bits, rounding to nearest, ties to even.
#[inline(always)]
fn nearest(bits: u32, n: u32) -> u32 {
    bits.wrapping_add((1 << (n - 1)) - 1 + (bits >> n & 1)) >> n
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that lie on, next to and halfway between 16-bit numbers, and their negatives.
    fn around(numbers: impl Iterator<Item = f32>) -> impl Iterator<Item = f32> {
        let near = |x: f32| [-1, 0, 1].map(|by| f32::from_bits(x.to_bits().wrapping_add_signed(by)));
        let numbers: Vec<f32> = numbers.filter(|x| x.is_finite()).collect();
        let halves: Vec<f32> = numbers.windows(2).map(|pair| pair[0] / 2.0 + pair[1] / 2.0).collect();
        numbers.into_iter().chain(halves).flat_map(near).chain([f32::INFINITY, f32::MAX, 0.0]).flat_map(|x| [x, -x])
    }

    #[test]
    fn every_half_is_widened_and_comes_back() {
        for bits in 0..=u16::MAX {
            let (x, y) = (f16::from_bits(bits), bf16::from_bits(bits));
            if x.is_nan() {
                assert!(from_f16(x).is_nan() && to_f16(from_f16(x)).is_nan(), "{bits:x}");
            } else {
                assert_eq!(from_f16(x).to_bits(), x.to_f32().to_bits(), "{bits:x}");
                assert_eq!(to_f16(from_f16(x)).to_bits(), bits);
            }
            if y.is_nan() {
                assert!(from_bf16(y).is_nan() && to_bf16(from_bf16(y)).is_nan(), "{bits:x}");
            } else {
                assert_eq!(from_bf16(y).to_bits(), y.to_f32().to_bits(), "{bits:x}");
                assert_eq!(to_bf16(from_bf16(y)).to_bits(), bits);
            }
        }
    }

    #[test]
    fn values_are_rounded_as_by_the_half_crate() {
        for x in around((0..0x7c00).map(|bits| f16::from_bits(bits).to_f32())) {
            assert_eq!(to_f16(x).to_bits(), f16::from_f32(x).to_bits(), "{x:e}");
        }
        for x in around((0..0x7f80).map(|bits| bf16::from_bits(bits).to_f32())) {
            assert_eq!(to_bf16(x).to_bits(), bf16::from_f32(x).to_bits(), "{x:e}");
        }
    }
}
