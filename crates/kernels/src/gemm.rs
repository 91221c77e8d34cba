//! Matrix multiplication on the processor: packed operands and register tiles.

pub(crate) mod bf16;
#[expect(clippy::module_inception, reason = "the function that the folder is about")]
pub(crate) mod gemm;
pub(crate) mod packing;
pub(crate) mod pairs;
pub(crate) mod split;
pub(crate) mod transpose;
