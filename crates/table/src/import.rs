//! What importers share: what columns are for, what becomes of their cells, and what an import reports.

mod columns;
mod dictionary;
mod features;
mod input;
mod like;
mod report;
mod roles;
mod rows;
mod sink;
#[cfg(feature = "zst")]
mod zstd_frames;

pub use columns::{BadRows, Categorical, Class, ColumnOptions, ColumnRef, FeatureDType, Indicators, LabelKind, Missing};
pub(crate) use features::{FeatureRules, MISSING, OnMissing, is_missing};
pub(crate) use input::{Input, read_error};
pub(crate) use like::Like;
pub use report::{ImportReport, Imported, Progress};
pub(crate) use roles::{Labels, Roles};
pub(crate) use rows::{ChunkLabels, RowChunk};
pub(crate) use sink::Sink;

/// How many bad rows are remembered; the others are only counted.
pub(crate) const MAX_REPORTS: usize = 10;
