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
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum SourceError {
    /// The file violates the rules of its format, or does not match the options. `part` is a header, a member of an archive or a
    /// record. `remedies` say what to do next, unless that is part of `expected`.
    #[error(
        "{part}: found {found}, expected {expected}",
        part = printable(.part), found = printable(.found), expected = printable(.expected)
    )]
    Unexpected { part: String, found: String, expected: String, remedies: &'static [Remedy] },
    /// The file ends within its data: `part` after `found` complete rows of the `expected` ones that the file claims.
    #[error("{part} ends after {found} rows of {expected}; the file is truncated, fetch it again", part = printable(.part))]
    Truncated { part: String, found: u64, expected: u64 },
    /// The file is valid, but `part` contains something, `found`, that no table can hold. `way_out` says what to do next.
    #[error("{part} {found}; {way_out}", part = printable(.part), found = printable(.found), way_out = printable(.way_out))]
    Unsupported { part: String, found: String, way_out: String },
    /// There are no rows. `found` is what was found instead.
    #[error("{found}, expected rows of numbers")]
    NoRows { found: &'static str },
    /// A value that is not valid in its column. `expected` says what to do next.
    #[error("row {row}, {column}: found {found}, expected {}", .expected.what, column = printable(.column), found = printable(.found))]
    Value { row: u64, column: String, found: String, expected: &'static Expected },
    /// A column of a type, `found` as the file names it, that is not supported for its role.
    #[error("column `{column}` is {found}, expected {}", .expected.what, column = printable(.column), found = printable(.found))]
    ColumnType { column: String, found: String, expected: &'static Expected },
    /// An option that was chosen explicitly and has no effect, for this `reason`.
    #[error("`{setting}` {reason}; leave it out")]
    UnusedSetting { setting: ImportSetting, reason: Unused },
    /// A column that was named in the options for a role, as `asked`, but is not in the file, which has `found`. `nearest` has
    /// the most similar name, if one is similar.
    #[error(
        "there is no column {asked} for the {role}{meant}; the columns are {found}",
        asked = printable(.asked), found = listed(.found),
        meant = .nearest.as_deref().map_or(String::new(), |name| format!(", did you mean `{}`?", printable(name)))
    )]
    NoColumn { role: &'static str, asked: String, nearest: Option<Box<str>>, found: Vec<String> },
    /// A word that is the name of column `named` and the index of the column called `indexed`.
    #[error(
        "`{word}` for the {role} is the name of column {named} and the index of column `{indexed}`, counted from 0; write `name:{word}` or `index:{word}`",
        word = printable(.word), indexed = printable(.indexed)
    )]
    AmbiguousColumn { role: &'static str, word: String, named: usize, indexed: String },
    /// The index of a data frame, column `index`, as the label, although it was not named as such.
    #[error("the label would be column {index}, `{name}`, which is the index of a data frame", name = printable(.name))]
    IndexAsLabel { index: usize, name: String },
    /// Columns that cannot have these names or roles, or no column left as a feature. `remedies` say what to do next, unless that
    /// is part of `problem`.
    #[error("{problem}", problem = printable(.problem))]
    ColumnRoles { problem: String, remedies: &'static [Remedy] },
    /// A cell that is not valid in its column. `found` is shortened if long.
    #[error("line {line}, column {col} (`{name}`): found {found:?}, expected {}", .expected.what, name = printable(.name))]
    Cell { line: u64, byte: u64, col: usize, name: String, found: Box<str>, expected: &'static Expected },
    /// A row with more or fewer cells, `found`, than the header or, without one, the first row: `expected`.
    #[error(
        "the {first} has {expected} columns, line {line} has {found}",
        first = if *.has_header { "header" } else { "first row" }
    )]
    Ragged { line: u64, byte: u64, has_header: bool, expected: usize, found: usize },
    /// A line that is no row and does not name columns. `remedies` say what to do next, unless that is part of `problem`.
    #[error("line {line}, byte {byte}: {problem}", problem = printable(.problem))]
    Line { line: u64, byte: u64, problem: String, remedies: &'static [Remedy] },
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
