use bytemuck::Pod;
use half::{bf16, f16};

use crate::halves::{from_bf16, from_f16, to_bf16, to_f16};

/// The type of the elements of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ElementType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16; summed in f32, rounded once.
    F16,
    /// bfloat16; summed in f32, rounded once.
    Bf16,
    /// Bytes, for control messages; sums wrap around.
    U8,
    /// Integers, for control messages; sums wrap around.
    U32,
}

impl ElementType {
    /// Bytes of one element.
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::F32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 => 1,
        }
    }

    /// Whether it is a floating-point type, so that a mean makes sense.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }
}

/// A number that replicas exchange: `f32`, [`half::f16`], [`half::bf16`], `u8`, `u32`. Sealed.
pub trait Element: Pod + Accumulate {
    /// Its type, as a value.
    const TYPE: ElementType;
}

/// The arithmetic in which elements are reduced.
pub trait Accumulate: Copy + Send + Sync + 'static {
    /// The accumulator: `f32` for floats, `u32` for integers.
    type Sum: Copy + Default + Send + 'static;
    /// Converts an element to the accumulator type.
    fn widen(self) -> Self::Sum;
    /// Converts back, rounding to nearest, ties to even.
    fn narrow(sum: Self::Sum) -> Self;
    /// The sum of two values.
    fn add(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// The larger of two values; NaN wins.
    fn max(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    /// `sum * by`; integers are returned unchanged.
    fn scale(sum: Self::Sum, by: f32) -> Self::Sum;
}

macro_rules! float {
    ($float:ty, $type:ident, $widen:expr, $narrow:expr) => {
        impl Element for $float {
            const TYPE: ElementType = ElementType::$type;
        }

        impl Accumulate for $float {
            type Sum = f32;
            #[inline(always)]
            fn widen(self) -> f32 {
                $widen(self)
            }
            #[inline(always)]
            fn narrow(sum: f32) -> Self {
                $narrow(sum)
            }
            #[inline(always)]
            fn add(a: f32, b: f32) -> f32 {
                a + b
            }
            #[inline(always)]
            fn max(a: f32, b: f32) -> f32 {
                if a >= b || a.is_nan() { a } else { b }
            }
            #[inline(always)]
            fn scale(sum: f32, by: f32) -> f32 {
                sum * by
            }
        }
    };
}

macro_rules! whole {
    ($whole:ty, $type:ident) => {
        impl Element for $whole {
            const TYPE: ElementType = ElementType::$type;
        }

        impl Accumulate for $whole {
            type Sum = u32;
            #[inline(always)]
            fn widen(self) -> u32 {
                u32::from(self)
            }
            #[inline(always)]
            fn narrow(sum: u32) -> Self {
                sum as $whole
            }
            #[inline(always)]
            fn add(a: u32, b: u32) -> u32 {
                a.wrapping_add(b)
            }
            #[inline(always)]
            fn max(a: u32, b: u32) -> u32 {
                if a >= b { a } else { b }
            }
            #[inline(always)]
            fn scale(sum: u32, _: f32) -> u32 {
                sum
            }
        }
    };
}

float!(f32, F32, std::convert::identity, std::convert::identity);
float!(f16, F16, from_f16, to_f16);
float!(bf16, Bf16, from_bf16, to_bf16);
whole!(u8, U8);
whole!(u32, U32);

/// Evaluates `$body` with `$T` as the Rust type of `$element`.
macro_rules! with_element {
    ($element:expr, $T:ident => $body:expr) => {
        match $element {
            $crate::ElementType::F32 => {
                type $T = f32;
                $body
            }
            $crate::ElementType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::ElementType::Bf16 => {
                type $T = half::bf16;
                $body
            }
            $crate::ElementType::U8 => {
                type $T = u8;
                $body
            }
            $crate::ElementType::U32 => {
                type $T = u32;
                $body
            }
        }
    };
}

pub(crate) use with_element;
