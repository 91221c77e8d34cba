use std::path::Path;

use brisk_atomic_file::printable;

use super::Error;
use crate::remedy::{Choice, Expected, Remedy};

/// Why a source cannot be made into a table: what was found, what was expected, and what to do next.
///
/// Rows are counted from 0, as slices count them.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file violates the rules of its format.
    #[error(
        "{part}: found {found}, expected {expected}",
        part = printable(.part), found = printable(.found), expected = printable(.expected)
    )]
    Malformed {
        /// Where: a header, a member of an archive, a record.
        part: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// The file does not match the options, or needs options to be read.
    #[error(
        "{part}: found {found}, expected {expected}{}",
        Choice(.remedies), part = printable(.part), found = printable(.found), expected = printable(.expected)
    )]
    Unexpected {
        /// Where: a header, a member of an archive, a record.
        part: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
        /// What to do next.
        remedies: &'static [Remedy],
    },
    /// The file ends within its data.
    #[error("{part} ends after {found} rows of {expected}; the file is truncated, fetch it again", part = printable(.part))]
    Truncated {
        /// The part that ends.
        part: String,
        /// The number of complete rows.
        found: u64,
        /// The number of rows that the file claims.
        expected: u64,
    },
    /// The file is valid, but contains something that no table can hold.
    #[error("{part} {found}; {way_out}", part = printable(.part), found = printable(.found), way_out = printable(.way_out))]
    Unsupported {
        /// The part of the file.
        part: String,
        /// What it holds.
        found: String,
        /// What to do next.
        way_out: String,
    },
    /// The numbers of features and labels differ.
    #[error(
        "`{features}` has {n_features} rows, `{labels}` has {n_labels}; each row needs one label",
        features = printable(.features), labels = printable(.labels)
    )]
    RowCounts {
        /// The name of the features.
        features: String,
        /// The number of their rows.
        n_features: u64,
        /// The name of the labels, or weights.
        labels: String,
        /// The number of labels or weights.
        n_labels: u64,
    },
    /// A value that is not valid in its column.
    #[error("row {row}, {column}: found {found}, expected {expected}", column = printable(.column), found = printable(.found))]
    Value {
        /// The row.
        row: u64,
        /// The column.
        column: String,
        /// What was found.
        found: String,
        /// What was expected, and what to do next.
        expected: &'static Expected,
    },
    /// A column of a type that is not supported for its role.
    #[error("column `{column}` is {found}, expected {expected}", column = printable(.column), found = printable(.found))]
    ColumnType {
        /// The column.
        column: String,
        /// Its type, as the file names it.
        found: String,
        /// What was expected, and what to do next.
        expected: &'static Expected,
    },
    /// Images of different sizes, or with different channels.
    #[error(
        "`{first}` is {first_shape}, `{other}` is {other_shape}{}",
        Choice(.remedies), first = printable(.first), first_shape = printable(.first_shape), other = printable(.other),
        other_shape = printable(.other_shape)
    )]
    UnequalImages {
        /// The first image.
        first: String,
        /// Its height, width and channels.
        first_shape: String,
        /// The first that differs.
        other: String,
        /// Its height, width and channels.
        other_shape: String,
        /// What to do next.
        remedies: &'static [Remedy],
    },
    /// A file of an unknown format.
    #[error(
        "has an unknown format, its first bytes are {found}{}",
        Choice(NO_FORMAT), found = printable(.found)
    )]
    UnknownFormat {
        /// Its first bytes, in hexadecimal.
        found: String,
    },
}

const NO_FORMAT: &[Remedy] = &[Remedy::NameFormat];

impl SourceError {
    /// What the caller can do.
    pub(crate) fn remedies(&self) -> &'static [Remedy] {
        match self {
            Self::Unexpected { remedies, .. } | Self::UnequalImages { remedies, .. } => remedies,
            Self::Value { expected, .. } | Self::ColumnType { expected, .. } => expected.remedies,
            Self::UnknownFormat { .. } => NO_FORMAT,
            Self::Malformed { .. } | Self::Truncated { .. } | Self::Unsupported { .. } | Self::RowCounts { .. } => &[],
        }
    }

    /// Adds the path of the source.
    pub(crate) fn at(self, path: &Path) -> Error {
        Error::Source { path: path.to_owned(), reason: Box::new(self) }
    }
}
