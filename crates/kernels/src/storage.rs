//! How floats are stored, in f32, f16 or bf16: the elements of slices in Rust ([`element`]), and the buffers of a module in WGSL
//! ([`stored_types`]).

pub(crate) mod element;
pub(crate) mod stored_types;
