//! Training batches at memcpy speed, from anything that can copy rows.
#![forbid(unsafe_code)]

mod conformance;
mod error;
mod rows;
mod source;

pub use conformance::row_source_conformance;
pub use error::Error;
pub use rows::{Rows, check_gather};
pub use source::RowSource;
