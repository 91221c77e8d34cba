//! What kernels know of a device: its features and limits, its cooperative matrices, and the sizes of tiles that fit it.

#[expect(clippy::module_inception, reason = "the type that the folder is about")]
pub(crate) mod adapter;
pub(crate) mod coop_shape;
pub(crate) mod matmul_family;
pub(crate) mod tiles;
