//! Embedding tables and their gradients.
//!
//! Gradients are summed without float atomics, always in the same order: in runs of rows for small tables, along a chain of each
//! entry's rows for large ones.

#[expect(clippy::module_inception, reason = "the kernel that gives the family its name")]
pub(crate) mod embedding;
pub(crate) mod embedding_cpu;
pub(crate) mod gather;
pub(crate) mod gather_cpu;
