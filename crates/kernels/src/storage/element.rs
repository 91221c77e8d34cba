//! Conversion between 16-bit floats and f32, without branches, so that loops over it vectorise. Conversion to 16 bits rounds to
//! nearest, ties to even.
#![expect(clippy::cast_possible_truncation, reason = "a half is the lower 16 bits of what is computed in 32")]

use bytemuck::Pod;
use half::{bf16, f16};

/// Exact; NaN becomes quiet.
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

/// Infinite for 65520 and above.
#[inline(always)]
fn f16_of_f32(x: f32) -> u16 {
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

/// Exact; NaN becomes quiet.
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

/// The storage type of a float.
pub(crate) trait Element: Pod + Send + Sync {
    /// The value in f32.
    fn widen(self) -> f32;

    /// The value rounded to this type.
    fn narrow(v: f32) -> Self;

    /// `x` itself, if the type is f32.
    #[inline(always)]
    fn as_f32(_x: &[Self]) -> Option<&[f32]> {
        None
    }

    /// Likewise.
    #[inline(always)]
    fn as_f32_mut(_x: &mut [Self]) -> Option<&mut [f32]> {
        None
    }

    /// `x` itself, if the type is bf16.
    #[inline(always)]
    fn as_bf16(_x: &[Self]) -> Option<&[bf16]> {
        None
    }
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

    #[inline(always)]
    fn as_f32(x: &[Self]) -> Option<&[f32]> {
        Some(x)
    }

    #[inline(always)]
    fn as_f32_mut(x: &mut [Self]) -> Option<&mut [f32]> {
        Some(x)
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

    #[inline(always)]
    fn as_bf16(x: &[Self]) -> Option<&[bf16]> {
        Some(x)
    }
}

/// `y = x` in f32.
#[inline(always)]
pub(crate) fn widen<T: Element>(x: &[T], y: &mut [f32]) {
    match T::as_f32(x) {
        Some(x) => y.copy_from_slice(x),
        None => {
            for (y, &x) in y.iter_mut().zip(x) {
                *y = x.widen();
            }
        }
    }
}

/// `y = x`, rounded.
#[inline(always)]
pub(crate) fn narrow<T: Element>(x: &[f32], y: &mut [T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = T::narrow(x);
    }
}

/// Evaluates `$body` with `$T` as the [`Element`] type of `$dtype`.
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::DType::Bf16 => {
                type $T = half::bf16;
                $body
            }
            _ => {
                type $T = f32;
                $body
            }
        }
    };
}
pub(crate) use with_element;
