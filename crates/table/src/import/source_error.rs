use std::path::Path;

use crate::remedy::Choice;
use crate::{Error, Expected, Remedy, printable};

/// Why a source makes no table: what of it was found, what was expected, and what to do next.
///
/// Rows are counted from 0, as slices count them.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file breaks the rules of its format.
    #[error(
        "{part}: found {found}, expected {expected}",
        part = printable(.part), found = printable(.found), expected = printable(.expected)
    )]
    Malformed {
        /// Where: a header, a member of an archive, a record.
        part: String,
        /// What was found.
        found: String,
        /// What should be.
        expected: String,
    },
    /// The file is not what the options say, or needs options to be read.
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
        /// What ends.
        part: String,
        /// How many rows are whole.
        found: u64,
        /// How many it promises.
        expected: u64,
    },
    /// The file follows the rules, and holds what no table can.
    #[error("{part} {found}; {way_out}", part = printable(.part), found = printable(.found), way_out = printable(.way_out))]
    Unsupported {
        /// What part of the file.
        part: String,
        /// What it holds.
        found: String,
        /// What to do next.
        way_out: String,
    },
    /// Features and labels are not equally many.
    #[error(
        "`{features}` has {n_features} rows, `{labels}` has {n_labels}; each row needs one label",
        features = printable(.features), labels = printable(.labels)
    )]
    RowCounts {
        /// Where the features are.
        features: String,
        /// How many rows they have.
        n_features: u64,
        /// Where the labels, or weights, are.
        labels: String,
        /// How many there are.
        n_labels: u64,
    },
    /// A value that is not what its column holds.
    #[error("row {row}, {column}: found {found}, expected {expected}", column = printable(.column), found = printable(.found))]
    Value {
        /// Which row.
        row: u64,
        /// Which column of it.
        column: String,
        /// What was found.
        found: String,
        /// What was expected, and what to do next.
        expected: &'static Expected,
    },
    /// A column of a type that makes no numbers.
    #[error("column `{column}` is {found}, expected {expected}", column = printable(.column), found = printable(.found))]
    ColumnType {
        /// Which column.
        column: String,
        /// Its type, as the file names it.
        found: String,
        /// What was expected, and what to do next.
        expected: &'static Expected,
    },
    /// Images of two sizes, or of other channels.
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
    /// A file of which no importer knows what it is.
    #[error(
        "is of none of the formats that are imported, its first bytes are {found}{}",
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

    /// The error for the source at `path`.
    pub(crate) fn at(self, path: &Path) -> Error {
        Error::Source { path: path.to_owned(), reason: Box::new(self) }
    }
}
