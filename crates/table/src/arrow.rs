mod batch;
mod columns;
mod import;
mod ipc;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod plan;
mod values;

pub use options::ArrowOptions;
