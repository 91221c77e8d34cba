mod header;
mod import;
mod options;
mod source;
mod transposed;

pub use options::{ArrayRef, NpyLabels, NpyOptions};
