//! What importers share: what columns are for, and what an import reports.

mod columns;
mod input;
mod report;
mod roles;
#[cfg(feature = "zst")]
mod zstd_frames;

pub use columns::{BadRows, ColumnOptions, ColumnRef, LabelKind, Missing};
pub(crate) use input::{Input, read_error};
pub use report::{ImportReport, Imported, Progress};
pub(crate) use roles::Roles;
