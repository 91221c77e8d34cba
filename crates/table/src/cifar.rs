mod batches;
mod import;
mod options;

pub(crate) use batches::is_single_file;
pub use options::{CifarLabels, CifarOptions, CifarSet};
