#![doc = include_str!("../README.md")]

#[cfg(target_endian = "big")]
compile_error!("tables are little-endian and are borrowed as they lie on disk; this machine is big-endian");

pub mod format;

mod checksum;
mod dtype;
mod error;
mod map;
mod schema;
mod source_identity;
mod statistics;
mod table;
mod writer;

#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "loader")]
mod row_source;

#[cfg(feature = "csv")]
pub use csv::{
    BadRows, ColumnRef, CsvOptions, Decimal, Delimiter, Header, ImportReport, Imported, LabelKind, Missing, Progress, import_csv,
    import_csv_if_changed, import_csv_with_progress,
};
pub use dtype::{DType, Element};
pub use error::Error;
pub use schema::{Schema, Weights};
pub use source_identity::SourceIdentity;
pub use statistics::ColumnStatistics;
pub use table::Table;
pub use writer::TableWriter;
