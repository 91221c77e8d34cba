//! Matrix products: dense, batched, on tensor cores.

pub(crate) mod coop_tiles;
pub(crate) mod cut;
pub(crate) mod epilogue;
pub(crate) mod epilogue_cpu;
pub(crate) mod form;
pub(crate) mod matmul;
pub(crate) mod matmul_batch_cpu;
pub(crate) mod matmul_cpu;
pub(crate) mod matmul_gpu;
pub(crate) mod matmul_stored_cpu;
pub(crate) mod matmul_vector_cpu;
pub(crate) mod modules;
mod prepared;
pub(crate) mod tile_form;
