//! What importers share: roles of columns, reading of sources, conversion of cells, and reports.

mod any;
#[cfg(feature = "arrays")]
mod arrays;
mod columns;
#[cfg(any(feature = "npy", feature = "arrow"))]
mod counted;
mod dictionary;
pub(crate) mod expected;
mod features;
mod format;
#[cfg(any(feature = "images", feature = "arrow"))]
mod guarded;
mod gzip_members;
#[cfg(any(feature = "images", feature = "arrow"))]
mod in_order;
mod input;
mod inputs;
mod like;
#[cfg(feature = "arrays")]
mod numbers;
mod report;
mod roles;
mod rows;
mod sink;
mod source_error;
mod threads;
#[cfg(feature = "zst")]
mod zstd_frames;

pub use any::{ImportOptions, import, import_with_progress};
#[cfg(feature = "arrays")]
pub(crate) use arrays::{Array, Arrays, LabelArray, Origin};
pub use columns::{BadRows, Categorical, Class, ColumnOptions, ColumnRef, FeatureDType, Indicators, LabelKind, Missing};
#[cfg(any(feature = "npy", feature = "arrow"))]
pub(crate) use counted::Counted;
pub(crate) use features::{FeatureRules, OnMissing, is_missing};
pub use format::Format;
#[cfg(any(feature = "images", feature = "arrow"))]
pub(crate) use guarded::guarded;
#[cfg(any(feature = "images", feature = "arrow"))]
pub(crate) use in_order::{NobodyWaits, Outlet, in_order};
pub(crate) use input::{Input, read_error};
pub(crate) use inputs::check_dest;
pub(crate) use like::Like;
#[cfg(feature = "arrays")]
pub use numbers::NotFinite;
#[cfg(feature = "arrays")]
pub(crate) use numbers::{ByteOrder, Numbers};
pub use report::{ImportReport, Imported, Progress};
pub(crate) use roles::{Labels, Roles};
pub(crate) use rows::{ChunkLabels, RowChunk};
pub(crate) use sink::Sink;
pub use source_error::SourceError;
pub(crate) use threads::n_threads;

/// How many bad rows are remembered; the others are only counted.
pub(crate) const MAX_REPORTS: usize = 10;
