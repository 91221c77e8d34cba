#![doc = include_str!("../README.md")]

#[cfg(target_endian = "big")]
compile_error!("tables are little-endian and are borrowed without conversion; this machine is big-endian");

pub mod format;
#[cfg(any(doc, doctest))]
pub mod guide;

mod checksum;
mod date_format;
mod description;
mod destination;
mod dictionary;
mod dtype;
mod error;
mod iso_time;
#[cfg(feature = "remote")]
mod local_copy;
mod lock;
mod map;
mod mapped;
mod parts;
mod remedy;
#[cfg(feature = "remote")]
mod remote;
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

#[cfg(feature = "import")]
mod any_format;
#[cfg(feature = "arrow")]
mod arrow;
#[cfg(feature = "cifar")]
mod cifar;
#[cfg(feature = "csv")]
mod csv;
#[cfg(feature = "idx")]
mod idx;
#[cfg(feature = "images")]
mod images;
#[cfg(feature = "import")]
#[cfg_attr(not(feature = "csv"), allow(dead_code, unused_imports, reason = "each importer uses its own part of it"))]
mod import;
#[cfg(feature = "import")]
mod import_format;
#[cfg(feature = "npy")]
mod npy;
#[cfg(feature = "loader")]
mod row_source;
#[cfg(feature = "csv")]
mod svmlight;

#[cfg(feature = "import")]
pub use any_format::ImportOptions;
#[cfg(feature = "arrow")]
pub use arrow::ArrowOptions;
pub use brisk_atomic_file::{AtomicFile, Printable, PublishError, is_same_file, open_regular_file, printable, read_regular_file};
#[cfg(feature = "cifar")]
pub use cifar::{CifarLabels, CifarOptions, CifarSet};
#[cfg(feature = "csv")]
pub use csv::{
    ColumnKind, ColumnSurvey, CsvOptions, Decimal, Delimiter, FoundNumbers, Header, OddCell, Survey, find_numbers, read_cells,
    survey_csv, survey_csv_with_progress,
};
pub use date_format::DateFormat;
pub use destination::{Destination, Progress, copy_table};
pub use dictionary::Dictionary;
pub use dtype::{DType, Element};
#[cfg(feature = "remote")]
pub use error::RemoteError;
#[cfg(feature = "import")]
pub use error::SourceError;
pub use error::{Error, ShardMismatch};
#[cfg(feature = "idx")]
pub use idx::IdxOptions;
#[cfg(feature = "images")]
pub use images::{Channels, DecodedImage, ImagesOptions, Orientation};
#[cfg(feature = "images")]
pub use import::ArchiveEnd;
#[cfg(feature = "arrays")]
pub use import::NotFinite;
#[cfg(feature = "import")]
pub use import::{
    BadRows, Categorical, Class, ColumnOptions, ColumnRef, ColumnRole, Digits, FeatureDType, ImportReport, ImportWarning,
    Imported, Importer, Indicators, LabelKind, Missing, import, import_if_changed, import_with_progress, predicts_label,
};
#[cfg(feature = "import")]
pub use import_format::{Format, ImportSetting, Unused};
pub use iso_time::IsoTime;
#[cfg(feature = "remote")]
pub use local_copy::LocalCopy;
pub use map::Advice;
#[cfg(feature = "npy")]
pub use npy::{ArrayRef, NpyLabels, NpyOptions};
pub use remedy::{Expected, Remedy};
#[cfg(feature = "remote")]
pub use remote::{CacheFolder, Remote, RemoteFolder, RemoteOptions, RemoteReport, Retry};
pub use row_store::Verified;
pub use schema::{Schema, Weights};
pub use shards::{ShardSize, ShardedTable, ShardedWriter};
pub use source_identity::SourceIdentity;
pub use statistics::ColumnStatistics;
pub use streamed::{ReadAhead, ReadAheadReport, StreamedTable};
#[cfg(feature = "csv")]
pub use svmlight::{FirstIndex, SvmlightOptions};
pub use table::Table;
pub use tensor_names::{LabelsFrom, TensorNames};
pub use typed::Typed;
pub use writer::{RowBatch, TableWriter, Written};
