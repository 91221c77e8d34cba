//! Embedding tables and their gradients.

#[expect(clippy::module_inception, reason = "the kernel that gives the family its name")]
pub(crate) mod embedding;
pub(crate) mod embedding_cpu;
pub(crate) mod gather;
pub(crate) mod gather_cpu;
