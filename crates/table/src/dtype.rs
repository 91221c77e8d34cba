use std::fmt;

/// Each with its name in safetensors and its size in bytes.
macro_rules! dtypes {
    ($($dtype:ident $name:literal $n_bytes:literal,)*) => {
        /// The type of the values of a tensor, under the name that safetensors gives it.
        ///
        /// A file may have any of these; [`Element`] lists the ones that this crate returns as slices.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each variant is its own description")]
        pub enum DType {
            $($dtype,)*
        }

        impl DType {
            const ALL: &[(Self, &'static str, usize)] = &[$((Self::$dtype, $name, $n_bytes),)*];
        }
    };
}

dtypes! {
    Bool "BOOL" 1, U8 "U8" 1, I8 "I8" 1,
    U16 "U16" 2, I16 "I16" 2, F16 "F16" 2, BF16 "BF16" 2,
    U32 "U32" 4, I32 "I32" 4, F32 "F32" 4,
    U64 "U64" 8, I64 "I64" 8, F64 "F64" 8,
}

impl DType {
    /// The name in a safetensors header, such as `F32`.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The size of one value in bytes.
    pub fn n_bytes(self) -> usize {
        Self::ALL[self as usize].2
    }

    /// The dtype of that name, if it is known.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|entry| entry.1 == name).map(|entry| entry.0)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type whose slices can be borrowed from a table or written to one: `f32`, `f64`, `u8`, `u32`, `i32`, `i64`; with the
/// feature `half` also `half::f16` and `half::bf16`.
///
/// This trait is sealed, because this crate must guarantee that every implementor can be reinterpreted from the bytes of a file.
pub trait Element: bytemuck::Pod + PartialOrd + sealed::Sealed {
    /// The dtype in the file.
    const DTYPE: DType;

    /// The value as used for statistics. `i64` beyond 2⁵³ is rounded.
    fn to_f64(self) -> f64;

    /// The value as stored in a batch, rounded to the nearest `f32`.
    fn to_f32(self) -> f32;
}

mod sealed {
    pub trait Sealed {}
}

/// Each with its dtype, and how a value is converted to `f64` and `f32`.
macro_rules! elements {
    ($($(#[$cfg:meta])* $type:ty, $dtype:ident, $value:ident => $to_f64:expr, $to_f32:expr;)*) => {
        $($(#[$cfg])*
        impl sealed::Sealed for $type {}
        $(#[$cfg])*
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            #[inline]
            fn to_f64(self) -> f64 {
                let $value = self;
                $to_f64
            }
            #[inline]
            fn to_f32(self) -> f32 {
                let $value = self;
                $to_f32
            }
        })*
    };
}
elements! {
    f32, F32, value => value.into(), value;
    f64, F64, value => value, value as f32;
    u8, U8, value => value.into(), value.into();
    u32, U32, value => value.into(), value as f32;
    i32, I32, value => value.into(), value as f32;
    i64, I64, value => value as f64, value as f32;
    #[cfg(feature = "half")]
    half::f16, F16, value => half::f16::to_f64(value), half::f16::to_f32(value);
    #[cfg(feature = "half")]
    half::bf16, BF16, value => half::bf16::to_f64(value), half::bf16::to_f32(value);
}
