use std::fmt;

/// The type of the values of a tensor, under the name that safetensors gives it.
///
/// A file may have any of these; [`Element`] lists the ones that this crate returns as slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is its own description")]
pub enum DType {
    Bool,
    U8,
    I8,
    U16,
    I16,
    F16,
    BF16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl DType {
    const ALL: [(DType, &'static str, usize); 13] = [
        (DType::Bool, "BOOL", 1),
        (DType::U8, "U8", 1),
        (DType::I8, "I8", 1),
        (DType::U16, "U16", 2),
        (DType::I16, "I16", 2),
        (DType::F16, "F16", 2),
        (DType::BF16, "BF16", 2),
        (DType::U32, "U32", 4),
        (DType::I32, "I32", 4),
        (DType::F32, "F32", 4),
        (DType::U64, "U64", 8),
        (DType::I64, "I64", 8),
        (DType::F64, "F64", 8),
    ];

    const IN_ORDER: () = {
        let mut i = 0;
        while i < Self::ALL.len() {
            assert!(Self::ALL[i].0 as usize == i, "the table lists the variants in order");
            i += 1;
        }
    };

    /// The name in a safetensors header, such as `F32`.
    pub fn name(self) -> &'static str {
        const { Self::IN_ORDER };
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

macro_rules! elements {
    ($($type:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            #[inline]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline]
            fn to_f32(self) -> f32 {
                self as f32
            }
        }
    )*};
}
elements!(f32 => F32, f64 => F64, u8 => U8, u32 => U32, i32 => I32, i64 => I64);

#[cfg(feature = "half")]
macro_rules! half_elements {
    ($($type:ident => $dtype:ident),*) => {$(
        impl sealed::Sealed for half::$type {}
        impl Element for half::$type {
            const DTYPE: DType = DType::$dtype;
            #[inline]
            fn to_f64(self) -> f64 {
                half::$type::to_f64(self)
            }
            #[inline]
            fn to_f32(self) -> f32 {
                half::$type::to_f32(self)
            }
        }
    )*};
}
#[cfg(feature = "half")]
half_elements!(f16 => F16, bf16 => BF16);
