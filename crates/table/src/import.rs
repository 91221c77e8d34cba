//! What importers share: roles of columns, reading of sources, conversion of cells, and reports.

#[cfg(any(feature = "images", feature = "cifar"))]
mod archive;
#[cfg(feature = "arrays")]
mod arrays;
mod audit;
mod columns;
mod counted;
mod detect;
mod dictionary;
mod digits;
pub(crate) mod expected;
mod features;
#[cfg(any(feature = "images", feature = "arrow"))]
mod guarded;
mod gzip_members;
mod importer;
#[cfg(any(feature = "images", feature = "arrow", feature = "csv"))]
mod in_order;
mod input;
mod inputs;
#[cfg(feature = "arrays")]
mod label_map;
mod leakage;
mod like;
#[cfg(feature = "arrays")]
mod numbers;
mod rejected;
mod report;
mod roles;
mod rows;
mod similar;
mod sink;
mod threads;
mod warning;
mod writer;
#[cfg(feature = "zst")]
mod zstd_frames;

#[cfg(feature = "images")]
pub use archive::ArchiveEnd;
#[cfg(all(feature = "cifar", not(feature = "images")))]
pub(crate) use archive::ArchiveEnd;
#[cfg(any(feature = "images", feature = "cifar"))]
pub(crate) use archive::{Member, for_each_member};
#[cfg(feature = "arrays")]
pub(crate) use arrays::{Array, Arrays, Failure, LabelArray};
pub use columns::{BadRows, Categorical, Class, ColumnOptions, ColumnRef, FeatureDType, Indicators, LabelKind, Missing};
#[cfg(any(feature = "arrow", feature = "npy"))]
pub(crate) use counted::Counted;
#[cfg(feature = "cifar")]
pub(crate) use detect::{refuse_python_archive, refuse_python_folder};
pub use digits::Digits;
pub(crate) use digits::{EXACT_LIMIT, EXACT_LIMIT_F64, exact, has_leading_zero, minus_offset};
pub(crate) use features::{FeatureRules, OnMissing, is_missing};
#[cfg(any(feature = "images", feature = "arrow"))]
pub(crate) use guarded::guarded;
pub use importer::{Importer, import, import_if_changed, import_with_progress};
pub(crate) use importer::{Origin, ReadSource, run};
#[cfg(any(feature = "images", feature = "arrow", feature = "csv"))]
pub(crate) use in_order::{NobodyWaits, Outlet, in_order};
pub(crate) use input::Input;
#[cfg(feature = "npy")]
pub(crate) use input::Packing;
#[cfg(feature = "arrays")]
pub(crate) use label_map::LabelMap;
pub use leakage::predicts_label;
pub(crate) use like::Like;
#[cfg(feature = "arrays")]
pub use numbers::NotFinite;
#[cfg(feature = "arrays")]
pub(crate) use numbers::{ByteOrder, Numbers};
pub(crate) use rejected::Rejected;
pub use report::{ImportReport, Imported};
pub(crate) use roles::{Labels, Roles};
pub(crate) use rows::{ChunkLabels, RowChunk};
#[cfg(feature = "images")]
pub(crate) use similar::similar;
pub(crate) use sink::Sink;
pub(crate) use threads::n_threads;
pub use warning::{ColumnRole, ImportWarning};
pub(crate) use writer::{Dest, Found, ImportWriter, Names};

/// How many bad rows are remembered; the others are only counted.
pub(crate) const MAX_REPORTS: usize = 10;
