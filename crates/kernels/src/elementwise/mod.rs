//! Kernels that compute each element from the elements at the same index.

pub(crate) mod activation;
pub(crate) mod activation_cpu;
pub(crate) mod activation_parts;
pub(crate) mod add;
pub(crate) mod add_cpu;
pub(crate) mod add_to;
pub(crate) mod add_to_cpu;
pub(crate) mod cast;
pub(crate) mod cast_cpu;
pub(crate) mod dropout;
pub(crate) mod dropout_cpu;
#[expect(clippy::module_inception, reason = "the kernel that gives the family its name")]
pub(crate) mod elementwise;
pub(crate) mod elementwise_cpu;
pub(crate) mod multiply;
pub(crate) mod multiply_cpu;
pub(crate) mod share;
pub(crate) mod share_cpu;
