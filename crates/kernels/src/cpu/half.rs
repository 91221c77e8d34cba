//! Numbers of 16 bits to and from f32, without branches, so that loops over them vectorise. To 16 bits they are rounded to nearest, ties to even.

use std::ops::Range;

use bytemuck::Pod;
use half::{bf16, f16};

use super::vectorised::vectorised;
use crate::{DType, TwinArgs};

/// Exact; a NaN comes out quiet.
#[inline(always)]
fn f32_of_f16(h: u16) -> f32 {
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
fn f16_of_f32(x: f32) -> u16 {
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
fn f32_of_bf16(h: u16) -> f32 {
    let b = u32::from(h) << 16;
    let is_nan = b & 0x7FFF_FFFF > 0x7F80_0000;
    f32::from_bits(b | if is_nan { 0x40_0000 } else { 0 })
}

#[inline(always)]
fn bf16_of_f32(x: f32) -> u16 {
    let b = x.to_bits();
    let is_nan = b & 0x7FFF_FFFF > 0x7F80_0000;
    let rounded = b.wrapping_add(0x7FFF + (b >> 16 & 1)) >> 16;
    (if is_nan { b >> 16 | 0x40 } else { rounded }) as u16
}

/// A float as it is stored.
pub(crate) trait Element: Pod + Send + Sync {
    /// In f32.
    fn widen(self) -> f32;

    /// Rounded to it.
    fn narrow(v: f32) -> Self;
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[inline(always)]
    fn narrow(v: f32) -> Self {
        v
    }
}

impl Element for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32_of_f16(self.to_bits())
    }

    #[inline(always)]
    fn narrow(v: f32) -> Self {
        Self::from_bits(f16_of_f32(v))
    }
}

impl Element for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32_of_bf16(self.to_bits())
    }

    #[inline(always)]
    fn narrow(v: f32) -> Self {
        Self::from_bits(bf16_of_f32(v))
    }
}

/// `y = x` in f32.
#[inline(always)]
pub(crate) fn widen<T: Element>(x: &[T], y: &mut [f32]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = x.widen();
    }
}

/// `y = x`, rounded.
#[inline(always)]
pub(crate) fn narrow<T: Element>(x: &[f32], y: &mut [T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = T::narrow(x);
    }
}

/// An argument that is read, stored one way or another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Floats<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
}

impl<'a> Floats<'a> {
    /// Argument `index`, which is stored as `dtype`.
    pub(crate) fn of(args: &TwinArgs<'a>, index: usize, dtype: DType) -> Self {
        match dtype {
            DType::F16 => Self::F16(args.read(index)),
            DType::Bf16 => Self::Bf16(args.read(index)),
            _ => Self::F32(args.read(index)),
        }
    }

    /// The elements of `range` in f32: where they lie, or in `buffer`, which is as long.
    pub(crate) fn get<'b>(&self, range: Range<usize>, buffer: &'b mut [f32]) -> &'b [f32]
    where
        'a: 'b,
    {
        match self {
            Self::F32(x) => return &x[range],
            Self::F16(x) => vectorised(
                #[inline(always)]
                || widen(&x[range.clone()], buffer),
            ),
            Self::Bf16(x) => vectorised(
                #[inline(always)]
                || widen(&x[range.clone()], buffer),
            ),
        }
        buffer
    }
}
