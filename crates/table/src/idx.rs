mod header;
mod import;

pub use import::{IdxOptions, import_idx, import_idx_with_progress};
