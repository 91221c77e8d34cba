//! Tests of the crate's public interface, one module per file.

mod batches;
mod functions;
mod values;
