//! Parameters of a dispatch: the fields of the uniform struct `Params`, declared once for both the bytes and the WGSL.
//!
//! Parameters are uniforms, not immediates: a uniform is part of a bind group made beforehand, an immediate is one more call per
//! dispatch (1.2 µs instead of 1.1 µs on llvmpipe).

use std::fmt::Write as _;

/// The value of a field of the uniform struct: a `u32`, `i32` or `f32`, or a pair of `u32`.
///
/// Sizes are `usize` in Rust and `u32` in WGSL. A kernel's [`check`](crate::Kernel::check) refuses larger ones; here they would
/// become `u32::MAX`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Param {
    field_type: FieldType,
    words: [u32; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldType {
    U32,
    I32,
    F32,
    Vec2U,
}

impl FieldType {
    const fn name(self) -> &'static str {
        match self {
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::F32 => "f32",
            Self::Vec2U => "vec2u",
        }
    }

    /// The number of words of its size, which is also that of its alignment.
    const fn n_words(self) -> usize {
        match self {
            Self::U32 | Self::I32 | Self::F32 => 1,
            Self::Vec2U => 2,
        }
    }
}

impl From<u32> for Param {
    fn from(value: u32) -> Self {
        Self { field_type: FieldType::U32, words: [value, 0] }
    }
}

impl From<i32> for Param {
    fn from(value: i32) -> Self {
        Self { field_type: FieldType::I32, words: [value.cast_unsigned(), 0] }
    }
}

impl From<f32> for Param {
    fn from(value: f32) -> Self {
        Self { field_type: FieldType::F32, words: [value.to_bits(), 0] }
    }
}

impl From<usize> for Param {
    fn from(value: usize) -> Self {
        u32::try_from(value).unwrap_or(u32::MAX).into()
    }
}

/// A `vec2u`.
impl From<[usize; 2]> for Param {
    fn from(values: [usize; 2]) -> Self {
        let words = values.map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        Self { field_type: FieldType::Vec2U, words }
    }
}

/// The fields of the uniform struct, without their values: dispatches with different values share a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Fields(Vec<(&'static str, FieldType)>);

impl Fields {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn n_words(&self) -> usize {
        self.0.iter().fold(0, |n_words, (_, field)| n_words.next_multiple_of(field.n_words()) + field.n_words())
    }

    /// Appends a field, and its value to the bytes of the struct, which are padded to a multiple of 16.
    pub(crate) fn push(&mut self, name: &'static str, Param { field_type, words }: Param, bytes: &mut Vec<u8>) {
        bytes.truncate(4 * self.n_words());
        bytes.resize(bytes.len().next_multiple_of(4 * field_type.n_words()), 0);
        bytes.extend_from_slice(bytemuck::cast_slice(&words[..field_type.n_words()]));
        bytes.resize(bytes.len().next_multiple_of(16), 0);
        self.0.push((name, field_type));
    }

    /// Writes the struct, with its trailing padding as fields.
    pub(crate) fn declare(&self, text: &mut String) {
        text.push_str("struct Params {\n");
        for (name, field_type) in &self.0 {
            let _ = writeln!(text, "    {name}: {},", field_type.name());
        }
        for i in 0..self.n_words().next_multiple_of(4) - self.n_words() {
            let _ = writeln!(text, "    pad{i}: u32,");
        }
        text.push_str("}\n");
    }
}
