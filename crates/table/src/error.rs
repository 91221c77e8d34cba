use std::io;
use std::path::PathBuf;

use crate::format::{FormatError, IndexError};
use crate::printable::listed;
use crate::remedy::Choice;
use crate::{DType, Expected, PublishError, Remedy, ShardMismatch, printable};

/// What can go wrong: where, what was found, what was expected, and what to do next.
///
/// Lines and columns of a text file are counted from 1, as editors do; rows of a table from 0, as slices do.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {cause}", path = printable(.path))]
    Io {
        /// Which file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        cause: io::Error,
    },
    /// A folder, pipe or device where a file is needed.
    #[error("{path}: is {found}, expected a file", path = printable(.path))]
    NotAFile {
        /// Which path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// An import onto a file that it reads.
    #[error(
        "{path}: is the same file as the input {input}, which the table would replace; choose another path",
        path = printable(.path), input = printable(.input)
    )]
    SameFile {
        /// Where the table was to be.
        path: PathBuf,
        /// The file that is read.
        input: PathBuf,
    },
    /// The table could not be written, a full disk among the reasons.
    #[error(
        "{path}: writing failed after {written_bytes} bytes: {cause}; nothing was left behind{}",
        hint(.cause), path = printable(.path)
    )]
    Write {
        /// The table to write.
        path: PathBuf,
        /// How many bytes of it were written.
        written_bytes: u64,
        /// What the system said.
        cause: io::Error,
    },
    /// The new table is complete, but the old one cannot be replaced: a program holds it, or permissions do not allow it.
    #[error(
        "{path}: cannot be replaced: {cause}; the new table is complete and was kept as {kept}: close the programs that use the old one, then rename it",
        path = printable(.path), kept = printable(.kept)
    )]
    NotReplaced {
        /// The old table.
        path: PathBuf,
        /// Where the new table is.
        kept: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The file is not a table, or is damaged.
    #[error("{path}: {reason}", path = printable(.path))]
    Format {
        /// Which file.
        path: PathBuf,
        /// Why not.
        reason: FormatError,
    },
    /// The file is not an index of shards.
    #[error("{path}: {reason}", path = printable(.path))]
    Index {
        /// Which file.
        path: PathBuf,
        /// Why not.
        reason: IndexError,
    },
    /// A shard is not the one that its index means.
    #[error(
        "{path}: shard of {index}: {reason}; put the shard back that was written with the index, or write the table again",
        path = printable(.path), index = printable(.index)
    )]
    Shard {
        /// The shard.
        path: PathBuf,
        /// The index.
        index: PathBuf,
        /// How it differs.
        reason: ShardMismatch,
    },
    /// Rows that cannot be borrowed in one piece.
    #[error(
        "{path}: rows {start}..{end} lie in several shards, the first of them ends before row {shard_end}; ask for rows of one shard, or gather them",
        path = printable(.path)
    )]
    AcrossShards {
        /// The index.
        path: PathBuf,
        /// The first requested row.
        start: usize,
        /// The row after the last.
        end: usize,
        /// The row after the last of the first row's shard.
        shard_end: usize,
    },
    /// Labels of a table that was opened without.
    #[error(
        "{path}: was opened without labels, so there are none to borrow; they gather as 0, or name their tensor in `TensorNames`",
        path = printable(.path)
    )]
    NoLabels {
        /// Which table.
        path: PathBuf,
    },
    /// Values were requested, or given, as a type other than the table's.
    #[error("{path}: `{tensor}` is {stored}, not {asked}; use the Rust type of {stored}", path = printable(.path))]
    WrongDType {
        /// Which table.
        path: PathBuf,
        /// Which tensor of it.
        tensor: &'static str,
        /// What the table has.
        stored: DType,
        /// The requested or given type.
        asked: DType,
    },
    /// Values of a dtype that cannot be made `f32`.
    #[error(
        "{path}: `{tensor}` is {stored}, which is not gathered as f32; read its bytes with `row_bytes`{}",
        half_hint(*.stored), path = printable(.path)
    )]
    NotGathered {
        /// Which table.
        path: PathBuf,
        /// Which tensor of it.
        tensor: &'static str,
        /// What the table has.
        stored: DType,
    },
    /// Rows beyond the table's.
    #[error("{path}: rows {start}..{end} were asked for, the table has {n_rows}; rows count from 0", path = printable(.path))]
    RowsOutOfRange {
        /// Which table.
        path: PathBuf,
        /// The first requested row.
        start: usize,
        /// The row after the last.
        end: usize,
        /// How many there are.
        n_rows: usize,
    },
    /// A slice of the wrong length.
    #[error("{op}: `{arg}` holds {found} values, expected {expected}")]
    Length {
        /// The call.
        op: &'static str,
        /// Which of its arguments.
        arg: &'static str,
        /// How many values it should hold.
        expected: usize,
        /// How many it holds.
        found: usize,
    },
    /// A schema that no table can have.
    #[error("schema: {problem}", problem = printable(.problem))]
    Schema {
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A column of which every value is missing.
    #[error(
        "{path}: every value of `{column}` is missing, so it has no mean{}",
        Choice(NO_MEAN), path = printable(.path), column = printable(.column)
    )]
    NoMean {
        /// The table to write.
        path: PathBuf,
        /// The column's name.
        column: String,
    },
    /// Dictionaries longer than a header can be.
    #[error(
        "{path}: the header would take {header_bytes} bytes, {limit} are allowed; `{column}` has the most distinct values, {n_values}: drop it, or read it as a number",
        path = printable(.path), column = printable(.column)
    )]
    TooManyValues {
        /// The table to write.
        path: PathBuf,
        /// The categorical column with the most values.
        column: String,
        /// How many it has.
        n_values: usize,
        /// How long the header would be.
        header_bytes: u64,
        /// How long it may be.
        limit: u64,
    },
    /// Bytes are not those that were written.
    #[error(
        "{path}: bytes {start}..{end} have checksum {found:08x}, {expected:08x} was written; the file is damaged, make it again",
        path = printable(.path)
    )]
    Checksum {
        /// Which table.
        path: PathBuf,
        /// Where the damaged block starts.
        start: u64,
        /// Where it ends.
        end: u64,
        /// The checksum as written.
        expected: u32,
        /// The checksum of the bytes in the file.
        found: u32,
    },
    /// A table that carries no checksums.
    #[error(
        "{path}: has no checksums, so there is nothing to verify; tables written by brisk have them",
        path = printable(.path)
    )]
    NoChecksums {
        /// Which table.
        path: PathBuf,
    },
    /// A source that this build of the crate does not read.
    #[error("{path}: is {found}, which needs the feature `{feature}`; enable it, or {instead}", path = printable(.path))]
    FeatureOff {
        /// Which file.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// The feature of this crate that reads it.
        feature: &'static str,
        /// What helps without it.
        instead: &'static str,
    },
    /// A source of which no table can be made.
    #[cfg(feature = "import")]
    #[error("{path}: {reason}", path = printable(.path))]
    Source {
        /// Which file or folder.
        path: PathBuf,
        /// Why not.
        reason: Box<crate::SourceError>,
    },
    /// A source without rows.
    #[error("{path}: {found}, expected rows of numbers", path = printable(.path))]
    NoRows {
        /// Which file.
        path: PathBuf,
        /// What was found instead.
        found: &'static str,
    },
    /// Text that is not UTF-8 where a column's name should be.
    #[error(
        "{path}, line {line}, column {col}: the name {found:?} is not UTF-8{}",
        Choice(NAME_NOT_UTF8), path = printable(.path), found = printable(.found)
    )]
    HeaderNotUtf8 {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: u64,
        /// Which column.
        col: usize,
        /// What was found there, as far as it can be shown.
        found: String,
    },
    /// A first line of which it cannot be told whether it names columns.
    #[error(
        "{path}, line {line}: {number:?} is a number and {text:?} is not, so this may be a header or a row{}",
        Choice(HEADER_OR_ROW), path = printable(.path), number = printable(.number), text = printable(.text)
    )]
    HeaderOrRow {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: u64,
        /// A cell that is a number.
        number: String,
        /// A cell that is none.
        text: String,
    },
    /// Two columns of one name.
    #[error(
        "{path}: columns {first} and {second} are both named `{name}`{}",
        Choice(SAME_NAME), path = printable(.path), name = printable(.name)
    )]
    DuplicateColumn {
        /// Which file.
        path: PathBuf,
        /// The name.
        name: String,
        /// The first column of that name.
        first: usize,
        /// The second.
        second: usize,
    },
    /// A column that was named in the options but is not in the file.
    #[error(
        "{path}: there is no column {asked} for the {role}{meant}; the columns are {found}",
        path = printable(.path), asked = printable(.asked), found = listed(.found),
        meant = .nearest.as_deref().map_or(String::new(), |name| format!(", did you mean `{}`?", printable(name)))
    )]
    NoColumn {
        /// Which file.
        path: PathBuf,
        /// What it was to be.
        role: &'static str,
        /// How it was named.
        asked: String,
        /// The column with the most similar name, if one is similar.
        nearest: Option<Box<str>>,
        /// What was found.
        found: Vec<String>,
    },
    /// One column asked to be two things, or no column left to be a feature.
    #[error("{path}: {problem}", path = printable(.path), problem = printable(.problem))]
    ColumnRoles {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A cell that is not what its column holds.
    #[error(
        "{path}, line {line}, column {col} (`{name}`): found {found:?}, expected {expected}",
        path = printable(.path), name = printable(.name)
    )]
    Cell {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: u64,
        /// At which byte of the file, unpacked if it is packed, counted from 0.
        byte: u64,
        /// Which column.
        col: usize,
        /// The column's name.
        name: String,
        /// What was found there, shortened if long.
        found: Box<str>,
        /// What was expected, and what to do next.
        expected: &'static Expected,
    },
    /// A row of more or fewer cells than the first.
    #[error(
        "{path}, line {line}: found {found} columns, expected {expected} as in the first line{}",
        Choice(RAGGED), path = printable(.path)
    )]
    Ragged {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: u64,
        /// At which byte of the file, unpacked if it is packed, counted from 0.
        byte: u64,
        /// How many cells the first line has.
        expected: usize,
        /// How many this one has.
        found: usize,
    },
    /// A line of an svmlight file that is not a row.
    #[cfg(feature = "csv")]
    #[error("{path}, line {line}, byte {byte}: {reason}", path = printable(.path))]
    Svmlight {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: u64,
        /// At which byte of the file, unpacked if it is packed, counted from 0.
        byte: u64,
        /// What is wrong with it.
        reason: crate::SvmlightError,
    },
    /// A row that does not end.
    #[error(
        "{path}, line {line}: the row that starts here has no end within {limit_bytes} bytes; is a quote left open?",
        path = printable(.path)
    )]
    RowTooLong {
        /// Which file.
        path: PathBuf,
        /// Where the row starts.
        line: u64,
        /// At which byte of the file, unpacked if it is packed, counted from 0.
        byte: u64,
        /// How far was looked.
        limit_bytes: usize,
    },
    /// A quoted cell that the file ends in.
    #[error("{path}, line {line}: a quote is opened in the row that starts here and never closed", path = printable(.path))]
    QuoteLeftOpen {
        /// Which file.
        path: PathBuf,
        /// Where the row starts.
        line: u64,
        /// At which byte of the file, unpacked if it is packed, counted from 0.
        byte: u64,
    },
}

const NO_MEAN: &[Remedy] = &[Remedy::DropColumn, Remedy::FillMissingWithNumber];
const NAME_NOT_UTF8: &[Remedy] = &[Remedy::ConvertText, Remedy::HeaderAbsent];
const HEADER_OR_ROW: &[Remedy] = &[Remedy::HeaderPresent, Remedy::HeaderAbsent];
const SAME_NAME: &[Remedy] = &[Remedy::RenameColumn, Remedy::HeaderAbsent];
const RAGGED: &[Remedy] = &[Remedy::Correct, Remedy::SkipRows];

impl Error {
    /// What the caller can do, as the end of the message says in the words of this crate.
    pub fn remedies(&self) -> &'static [Remedy] {
        match self {
            Self::NoMean { .. } => NO_MEAN,
            Self::HeaderNotUtf8 { .. } => NAME_NOT_UTF8,
            Self::HeaderOrRow { .. } => HEADER_OR_ROW,
            Self::DuplicateColumn { .. } => SAME_NAME,
            Self::Cell { expected, .. } => expected.remedies,
            Self::Ragged { .. } => RAGGED,
            #[cfg(feature = "csv")]
            Self::Svmlight { reason, .. } => reason.remedies(),
            #[cfg(feature = "import")]
            Self::Source { reason, .. } => reason.remedies(),
            _ => &[],
        }
    }

    /// The message without its [`remedies`](Self::remedies), for programs that have options of their own.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(feature = "csv")] {
    /// # let folder = tempfile::tempdir().unwrap();
    /// use brisk_table::{CsvOptions, Remedy, import_csv};
    ///
    /// let (rows, table) = (folder.path().join("rows.csv"), folder.path().join("table.safetensors"));
    /// std::fs::write(&rows, "label,mass\n1,80.4\n0,heavy\n").unwrap();
    /// let error = import_csv(&rows, &table, &CsvOptions::default()).unwrap_err();
    ///
    /// let option = error.remedies().contains(&Remedy::SkipRows).then_some("; --skip-bad-rows leaves it out");
    /// let message = error.problem() + option.unwrap_or_default();
    /// assert!(message.ends_with("(`mass`): found \"heavy\", expected a number; --skip-bad-rows leaves it out"));
    /// # }
    /// ```
    pub fn problem(&self) -> String {
        let (message, remedies) = (self.to_string(), Choice(self.remedies()).to_string());
        message.strip_suffix(&remedies).unwrap_or(&message).to_owned()
    }

    pub(crate) fn from_publishing(error: PublishError, path: PathBuf, written_bytes: u64) -> Self {
        match error {
            PublishError::Io(cause) => Self::Write { path, written_bytes, cause },
            PublishError::Kept { kept, cause, .. } => Self::NotReplaced { path, kept, cause },
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ", make room or choose another disk"
        }
        _ => "",
    }
}

fn half_hint(stored: DType) -> &'static str {
    match stored {
        DType::F16 | DType::BF16 if cfg!(not(feature = "half")) => ", or enable the feature `half`",
        _ => "",
    }
}
