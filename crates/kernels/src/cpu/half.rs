//! Numbers of 16 bits to and from f32, without branches, so that loops over them vectorise. To 16 bits they are rounded to nearest, ties to even.

/// Exact; a NaN comes out quiet.
#[inline(always)]
pub(crate) fn f32_of_f16(h: u16) -> f32 {
    let (h, fraction, exponent) = (u32::from(h), u32::from(h & 0x3FF), h & 0x7C00);
    let shifted = (h & 0x7FFF) << 13;
    let subnormal = (fraction as f32 * f32::from_bits(0x3380_0000)).to_bits();
    let quiet = if fraction != 0 { 0x40_0000 } else { 0 };
    let finite = if exponent == 0 { subnormal } else { shifted + 0x3800_0000 };
    let magnitude = if exponent == 0x7C00 { (shifted + 0x7000_0000) | quiet } else { finite };
    f32::from_bits(magnitude | (h & 0x8000) << 16)
}

/// Infinite from 65520 on.
#[inline(always)]
pub(crate) fn f16_of_f32(x: f32) -> u16 {
    let b = x.to_bits();
    let a = b & 0x7FFF_FFFF;
    // The carry goes on into the exponent, and makes infinity of what is past the largest number.
    let normal = a.wrapping_sub(0x3800_0000).wrapping_add(0xFFF + (a >> 13 & 1)) >> 13;
    // The sum is rounded to a multiple of 2⁻²⁴, which its low bits count.
    let subnormal = (f32::from_bits(a) + 0.5).to_bits().wrapping_sub(0x3F00_0000);
    let finite = if a < 0x3880_0000 { subnormal } else { normal };
    let bounded = if a >= 0x4780_0000 { 0x7C00 } else { finite };
    let magnitude = if a > 0x7F80_0000 { 0x7E00 | (a >> 13 & 0x3FF) } else { bounded };
    (magnitude | (b >> 16 & 0x8000)) as u16
}

/// Exact; a NaN comes out quiet.
#[inline(always)]
pub(crate) fn f32_of_bf16(h: u16) -> f32 {
    let b = u32::from(h) << 16;
    let is_nan = b & 0x7FFF_FFFF > 0x7F80_0000;
    f32::from_bits(b | if is_nan { 0x40_0000 } else { 0 })
}

#[inline(always)]
pub(crate) fn bf16_of_f32(x: f32) -> u16 {
    let b = x.to_bits();
    let is_nan = b & 0x7FFF_FFFF > 0x7F80_0000;
    let rounded = b.wrapping_add(0x7FFF + (b >> 16 & 1)) >> 16;
    (if is_nan { b >> 16 | 0x40 } else { rounded }) as u16
}
