//! The element types of slices, in f32 or 16 bits.

use bytemuck::Pod;
use half::{bf16, f16};

use super::halves::{bf16_of_f32, f16_of_f32, f32_of_bf16, f32_of_f16};
use super::{bf16_by_avx512, f16_by_avx512};

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

    /// `y = x` in f32.
    #[inline(always)]
    fn widen_all(x: &[Self], y: &mut [f32]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = x.widen();
        }
    }

    /// `y = x`, rounded.
    #[inline(always)]
    fn narrow_all(x: &[f32], y: &mut [Self]) {
        for (y, &x) in y.iter_mut().zip(x) {
            *y = Self::narrow(x);
        }
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
    fn widen_all(x: &[Self], y: &mut [f32]) {
        y.copy_from_slice(x);
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

    #[inline(always)]
    fn widen_all(x: &[Self], y: &mut [f32]) {
        f16_by_avx512::widen(x, y);
    }

    #[inline(always)]
    fn narrow_all(x: &[f32], y: &mut [Self]) {
        f16_by_avx512::narrow(x, y);
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
    fn narrow_all(x: &[f32], y: &mut [Self]) {
        bf16_by_avx512::narrow(x, y);
    }

    #[inline(always)]
    fn as_bf16(x: &[Self]) -> Option<&[bf16]> {
        Some(x)
    }
}

/// `y = x` in f32.
#[inline(always)]
pub(crate) fn widen<T: Element>(x: &[T], y: &mut [f32]) {
    T::widen_all(x, y);
}

/// `y = x`, rounded.
#[inline(always)]
pub(crate) fn narrow<T: Element>(x: &[f32], y: &mut [T]) {
    T::narrow_all(x, y);
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
