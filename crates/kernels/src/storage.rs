//! How floats are stored, in f32, f16 or bf16: the elements of slices in Rust ([`element`]), and the buffers of a module in WGSL
//! ([`stored_types`]).

mod bf16_by_avx512;
pub(crate) mod element;
mod f16_by_avx512;
mod halves;
pub(crate) mod stored_types;
