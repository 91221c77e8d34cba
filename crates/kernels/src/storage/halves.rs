//! Conversion between 16-bit floats and f32, without branches, so that loops over it vectorise. Conversion to 16 bits rounds to
//! nearest, ties to even.
#![expect(clippy::cast_possible_truncation, reason = "a half is the lower 16 bits of what is computed in 32")]

/// Exact; NaN becomes quiet.
#[inline(always)]
pub(super) fn f32_of_f16(h: u16) -> f32 {
    let (h, fraction, exponent) = (u32::from(h), u32::from(h & 0x3FF), h & 0x7C00);
    let shifted = (h & 0x7FFF) << 13;
    let subnormal = (fraction as f32 * f32::from_bits(0x3380_0000)).to_bits();
    let quiet = if fraction != 0 { 0x40_0000 } else { 0 };
    let finite = if exponent == 0 { subnormal } else { shifted + 0x3800_0000 };
    let magnitude = if exponent == 0x7C00 { (shifted + 0x7000_0000) | quiet } else { finite };
    f32::from_bits(magnitude | (h & 0x8000) << 16)
}

/// Infinite for 65520 and above.
#[inline(always)]
pub(super) fn f16_of_f32(x: f32) -> u16 {
    let b = x.to_bits();
    let a = b & 0x7FFF_FFFF;
    // The carry propagates into the exponent, and turns values beyond the largest number into infinity.
    let normal = a.wrapping_sub(0x3800_0000).wrapping_add(0xFFF + (a >> 13 & 1)) >> 13;
    // The sum is rounded to a multiple of 2⁻²⁴; its low bits are that multiple.
    let subnormal = (f32::from_bits(a) + 0.5).to_bits().wrapping_sub(0x3F00_0000);
    let finite = if a < 0x3880_0000 { subnormal } else { normal };
    let bounded = if a >= 0x4780_0000 { 0x7C00 } else { finite };
    let magnitude = if a > 0x7F80_0000 { 0x7E00 | (a >> 13 & 0x3FF) } else { bounded };
    (magnitude | (b >> 16 & 0x8000)) as u16
}

/// Exact: a bf16 is the upper half of an f32.
#[inline(always)]
pub(super) fn f32_of_bf16(h: u16) -> f32 {
    f32::from_bits(u32::from(h) << 16)
}

#[inline(always)]
pub(super) fn bf16_of_f32(x: f32) -> u16 {
    let b = x.to_bits();
    let is_nan = b & 0x7FFF_FFFF > 0x7F80_0000;
    let rounded = b.wrapping_add(0x7FFF + (b >> 16 & 1)) >> 16;
    (if is_nan { b >> 16 | 0x40 } else { rounded }) as u16
}
