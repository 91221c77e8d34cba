#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(any(doc, doctest))]
pub mod guide;

pub use brisk_program::Device;

pub use brisk_atomic_file as atomic_file;
pub use brisk_kernels as kernels;
#[cfg(feature = "train")]
pub use brisk_loader as loader;
#[cfg(feature = "train")]
pub use brisk_metrics as metrics;
pub use brisk_nn as nn;
pub use brisk_program as program;
#[cfg(feature = "train")]
pub use brisk_replicate as replicate;
#[cfg(feature = "train")]
pub use brisk_report as report;
#[cfg(feature = "table")]
pub use brisk_table as table;
#[cfg(feature = "tabular")]
pub use brisk_tabular as tabular;
pub use brisk_tensor as tensor;
#[cfg(feature = "train")]
pub use brisk_train as train;
#[cfg(feature = "vision")]
pub use brisk_vision as vision;

/// Compiles the programs in the repository's README.
#[cfg(all(doctest, feature = "table", feature = "train"))]
#[doc = include_str!("../../../README.md")]
#[derive(Debug)]
pub struct RepositoryReadme;
