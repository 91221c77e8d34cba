mod batches;
mod import;
mod options;

pub use import::{import_cifar, import_cifar_with_progress};
pub use options::{CifarLabels, CifarOptions, CifarSet};
