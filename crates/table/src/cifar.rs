mod batches;
mod import;
mod options;

pub(crate) use batches::is_single_file;
pub use import::{import_cifar, import_cifar_if_changed, import_cifar_with_progress};
pub use options::{CifarLabels, CifarOptions, CifarSet};
