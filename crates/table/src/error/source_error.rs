use std::path::Path;

use brisk_atomic_file::{listed, printable};

use super::Error;
use crate::import_format::{ImportSetting, Unused};
use crate::remedy::{Expected, Remedy};

/// Why a source cannot be made into a table: what was found, and what was expected. [`remedies`](Self::remedies) say what to do
/// next.
///
/// Lines and columns of a text file are counted from 1, as editors do; rows and other columns from 0, as slices do. Bytes are
/// those of the decompressed file, counted from 0.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file violates the rules of its format, or does not match the options.
    #[error(
        "{part}: found {found}, expected {expected}",
        part = printable(.part), found = printable(.found), expected = printable(.expected)
    )]
    Unexpected {
        /// Where: a header, a member of an archive, a record.
        part: String,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
        /// What to do next, unless that is part of `expected`.
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
    /// There are no rows.
    #[error("{found}, expected rows of numbers")]
    NoRows {
        /// What was found instead.
        found: &'static str,
    },
    /// A value that is not valid in its column.
    #[error("row {row}, {column}: found {found}, expected {}", .expected.what, column = printable(.column), found = printable(.found))]
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
    #[error("column `{column}` is {found}, expected {}", .expected.what, column = printable(.column), found = printable(.found))]
    ColumnType {
        /// The column.
        column: String,
        /// Its type, as the file names it.
        found: String,
        /// What was expected, and what to do next.
        expected: &'static Expected,
    },
    /// An option that was chosen explicitly and has no effect.
    #[error("`{setting}` {reason}; leave it out")]
    UnusedSetting {
        /// The option.
        setting: ImportSetting,
        /// Why it has no effect.
        reason: Unused,
    },
    /// A column that was named in the options but is not in the file.
    #[error(
        "there is no column {asked} for the {role}{meant}; the columns are {found}",
        asked = printable(.asked), found = listed(.found),
        meant = .nearest.as_deref().map_or(String::new(), |name| format!(", did you mean `{}`?", printable(name)))
    )]
    NoColumn {
        /// The role it was named for.
        role: &'static str,
        /// The name or index in the options.
        asked: String,
        /// The column with the most similar name, if one is similar.
        nearest: Option<Box<str>>,
        /// The columns of the file.
        found: Vec<String>,
    },
    /// A word that is the name of one column and the index of another.
    #[error(
        "`{word}` for the {role} is the name of column {named} and the index of column `{indexed}`, counted from 0; write `name:{word}` or `index:{word}`",
        word = printable(.word), indexed = printable(.indexed)
    )]
    AmbiguousColumn {
        /// The role it was named for.
        role: &'static str,
        /// The word in the options.
        word: String,
        /// The index of the column with this name.
        named: usize,
        /// The name of the column with this index.
        indexed: String,
    },
    /// The index of a data frame as the label, although it was not named as such.
    #[error("the label would be column {index}, `{name}`, which is the index of a data frame", name = printable(.name))]
    IndexAsLabel {
        /// The column, counted from 0.
        index: usize,
        /// Its name.
        name: String,
    },
    /// Columns that cannot have these names or roles, or no column left as a feature.
    #[error("{problem}", problem = printable(.problem))]
    ColumnRoles {
        /// The problem.
        problem: String,
        /// What to do next, unless that is part of `problem`.
        remedies: &'static [Remedy],
    },
    /// A cell that is not valid in its column.
    #[error("line {line}, column {col} (`{name}`): found {found:?}, expected {}", .expected.what, name = printable(.name))]
    Cell {
        /// The line.
        line: u64,
        /// The byte.
        byte: u64,
        /// The column.
        col: usize,
        /// The column's name.
        name: String,
        /// What was found there, shortened if long.
        found: Box<str>,
        /// What was expected, and what to do next.
        expected: &'static Expected,
    },
    /// A row with more or fewer cells than the header or, without one, the first row.
    #[error(
        "the {first} has {expected} columns, line {line} has {found}",
        first = if *.has_header { "header" } else { "first row" }
    )]
    Ragged {
        /// The line.
        line: u64,
        /// The byte.
        byte: u64,
        /// Whether the file has a header.
        has_header: bool,
        /// The number of cells in the header or the first row.
        expected: usize,
        /// The number of cells in this line.
        found: usize,
    },
    /// A line that is no row and does not name columns.
    #[error("line {line}, byte {byte}: {problem}", problem = printable(.problem))]
    Line {
        /// The line.
        line: u64,
        /// The byte.
        byte: u64,
        /// The problem.
        problem: String,
        /// What to do next, unless that is part of `problem`.
        remedies: &'static [Remedy],
    },
}

impl SourceError {
    /// What the caller can do, as the end of the message of [`Error::Source`] says in terms of this crate.
    pub fn remedies(&self) -> &'static [Remedy] {
        use Remedy::*;
        match self {
            Self::Unexpected { remedies, .. } | Self::ColumnRoles { remedies, .. } | Self::Line { remedies, .. } => remedies,
            Self::Value { expected, .. } | Self::ColumnType { expected, .. } | Self::Cell { expected, .. } => expected.remedies,
            Self::IndexAsLabel { .. } => &[OtherLabel, KeepIndex],
            Self::Ragged { .. } => &[Correct, SkipRows],
            _ => &[],
        }
    }

    /// Adds the path of the source.
    pub fn at(self, path: &Path) -> Error {
        Error::Source { path: path.to_owned(), reason: Box::new(self) }
    }

    /// What is between the path and the message.
    pub(super) fn joint(&self) -> &'static str {
        match self {
            Self::Cell { .. } | Self::Line { .. } => ", ",
            _ => ": ",
        }
    }

    /// For what violates the rules of its format, or does not match the options.
    pub(crate) fn unexpected(
        part: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedies: &'static [Remedy],
    ) -> Self {
        Self::Unexpected { part: part.into(), found: found.into(), expected: expected.into(), remedies }
    }

    /// For what no table can hold.
    pub(crate) fn unsupported(part: impl Into<String>, found: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self::Unsupported { part: part.into(), found: found.into(), way_out: way_out.into() }
    }

    /// For columns that cannot have these names or roles.
    pub(crate) fn roles(problem: impl Into<String>, remedies: &'static [Remedy]) -> Self {
        Self::ColumnRoles { problem: problem.into(), remedies }
    }
}
