#![doc = include_str!("../README.md")]

#[cfg(target_endian = "big")]
compile_error!("tables are little-endian and are borrowed as they lie on disk; this machine is big-endian");

pub mod format;

mod checksum;
mod description;
mod dictionary;
mod dtype;
mod error;
mod map;
mod parts;
mod row_store;
mod schema;
mod shards;
mod source_identity;
mod statistics;
mod streamed;
mod table;
mod tensor_names;
mod typed;
mod verify;
mod writer;

#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "import")]
#[cfg_attr(not(feature = "csv"), allow(dead_code, unused_imports, reason = "each importer uses its own part of it"))]
mod import;
#[cfg(feature = "loader")]
mod row_source;

#[cfg(feature = "csv")]
pub use csv::{CsvOptions, Decimal, Delimiter, Header, import_csv, import_csv_if_changed, import_csv_with_progress};
pub use dictionary::Dictionary;
pub use dtype::{DType, Element};
pub use error::Error;
#[cfg(feature = "import")]
pub use import::{
    BadRows, Categorical, Class, ColumnOptions, ColumnRef, FeatureDType, ImportReport, Imported, Indicators, LabelKind, Missing,
    Progress,
};
pub use map::Access;
pub use schema::{Schema, Weights};
pub use shards::{ShardMismatch, ShardSize, ShardedTable, ShardedWriter};
pub use source_identity::SourceIdentity;
pub use statistics::ColumnStatistics;
pub use streamed::{ReadAhead, ReadAheadReport, StreamedTable};
pub use table::Table;
pub use tensor_names::{LabelsFrom, TensorNames};
pub use typed::Typed;
pub use verify::Verified;
pub use writer::{RowBatch, TableWriter};
