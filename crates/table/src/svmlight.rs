mod import;
mod line;
mod options;
mod rows;

pub use options::{FirstIndex, SvmlightOptions};

/// The largest index that is read: rows become dense, and with larger indices they would be nearly all zeros.
const MAX_INDEX: usize = 1 << 18;
