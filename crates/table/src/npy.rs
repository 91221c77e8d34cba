mod header;
mod import;
mod literal;
mod options;
mod source;
mod transposed;

pub use import::{import_npy, import_npy_with_progress};
pub use options::{ArrayRef, NpyLabels, NpyOptions};
