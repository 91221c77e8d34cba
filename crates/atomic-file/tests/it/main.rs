//! The guarantees of the crate, one module per topic.

mod atomic_file;
mod same_file;
mod write;
