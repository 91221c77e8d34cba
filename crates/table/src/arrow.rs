mod batch;
mod columns;
mod import;
mod ipc;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod values;

pub use ipc::{import_arrow, import_arrow_with_progress};
pub use options::ArrowOptions;
#[cfg(feature = "parquet")]
pub use parquet::{import_parquet, import_parquet_with_progress};
