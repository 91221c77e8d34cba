use std::fmt;

/// The element type of a buffer.
///
/// Kernels compute in `F32`; `F16` and `Bf16` are storage types (arithmetic is in `f32`); `U8` and `U32` hold
/// pixels, labels, indices and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of an `f32`.
    Bf16,
    /// Unsigned byte.
    U8,
    /// Unsigned 32-bit integer.
    U32,
}

impl DType {
    /// Bytes of one element.
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::F32 | Self::U32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::U8 => 1,
        }
    }

    /// Whether it holds real numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// Whether it is a 16-bit float, which is only a storage type.
    pub const fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16)
    }

    /// The number that stands for it in the WGSL.
    pub(crate) const fn code(self) -> u32 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::Bf16 => 2,
            Self::U8 => 3,
            Self::U32 => 4,
        }
    }
}

/// Its short name: `f32`, `bf16`.
impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::U8 => "u8",
            Self::U32 => "u32",
        })
    }
}
