mod format_error;
mod index_error;
#[cfg(feature = "remote")]
mod remote_error;
mod shard_mismatch;
#[cfg(feature = "import")]
mod source_error;
#[cfg(feature = "csv")]
mod svmlight_error;

use std::io;
use std::path::PathBuf;

use brisk_atomic_file::{PublishError, listed, printable};

use crate::dtype::DType;
#[cfg(feature = "import")]
use crate::import_format::{ImportSetting, Unused};
use crate::remedy::{Choice, Expected, Remedy};

pub use format_error::FormatError;
pub use index_error::IndexError;
#[cfg(feature = "remote")]
pub use remote_error::RemoteError;
pub use shard_mismatch::ShardMismatch;
#[cfg(feature = "import")]
pub use source_error::SourceError;
#[cfg(feature = "csv")]
pub use svmlight_error::SvmlightError;

/// An error of this crate: where it occurred, what was found, what was expected, and what to do next.
///
/// Lines and columns of a text file are counted from 1, as editors do; rows of a table from 0, as slices do.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system returned an error.
    #[error("{path}: cannot {action}: {cause}", path = printable(.path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was attempted.
        action: &'static str,
        /// The error from the operating system.
        cause: io::Error,
    },
    /// A folder, pipe or device instead of a file.
    #[error("{path}: is {found}, expected a file", path = printable(.path))]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The output of an import is one of the files that it reads.
    #[error(
        "{path}: is the same file as the input {input}, which the table would replace; choose another path",
        path = printable(.path), input = printable(.input)
    )]
    SameFile {
        /// The path of the table to be written.
        path: PathBuf,
        /// The file that is read.
        input: PathBuf,
    },
    /// The table could not be written, for example because the disk is full.
    #[error(
        "{path}: writing failed after {written_bytes} bytes: {cause}; nothing was left behind{}",
        hint(.cause), path = printable(.path)
    )]
    Write {
        /// The table to write.
        path: PathBuf,
        /// The number of bytes written before the error.
        written_bytes: u64,
        /// The error from the operating system.
        cause: io::Error,
    },
    /// The new table is complete, but the old one cannot be replaced, because a program holds it or because of its permissions.
    #[error(
        "{path}: cannot be replaced: {cause}; the new table is complete and was kept as {kept}: close the programs that use the old one, then rename it",
        path = printable(.path), kept = printable(.kept)
    )]
    NotReplaced {
        /// The old table.
        path: PathBuf,
        /// Where the new table is.
        kept: PathBuf,
        /// The error from the operating system.
        cause: io::Error,
    },
    /// The file is not a table, or is damaged.
    #[error("{path}: {reason}", path = printable(.path))]
    Format {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: FormatError,
    },
    /// The file is not an index of shards.
    #[error("{path}: {reason}", path = printable(.path))]
    Index {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: IndexError,
    },
    /// A shard that does not match its index.
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
    /// The requested rows cannot be borrowed as one slice.
    #[error(
        "{path}: rows {start}..{end} lie in several shards, the first of them ends before row {shard_end}; request rows of one shard, or gather them",
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
    /// Labels were requested from a table that was opened without labels.
    #[error(
        "{path}: was opened without labels, so there are none to borrow; they gather as 0, or name their tensor in `TensorNames`",
        path = printable(.path)
    )]
    NoLabels {
        /// The table.
        path: PathBuf,
    },
    /// Values were requested or given as a type other than the table's.
    #[error("{path}: `{tensor}` is {stored}, not {asked}; use the Rust type of {stored}", path = printable(.path))]
    WrongDType {
        /// The table.
        path: PathBuf,
        /// The tensor.
        tensor: &'static str,
        /// Its dtype in the table.
        stored: DType,
        /// The requested or given type.
        asked: DType,
    },
    /// Values of a dtype that cannot be converted to `f32`.
    #[error(
        "{path}: `{tensor}` is {stored}, which is not gathered as f32; read its bytes with `row_bytes`{}",
        half_hint(*.stored), path = printable(.path)
    )]
    NotGathered {
        /// The table.
        path: PathBuf,
        /// The tensor.
        tensor: &'static str,
        /// Its dtype in the table.
        stored: DType,
    },
    /// A whole number that `f32`, as which it is gathered, does not hold: different numbers would become the same.
    #[error(
        "{path}: `{tensor}` is {stored} and has {value}, which f32 rounds to {nearest}; subtract a number from all of them before they are written, or store them as categories",
        path = printable(.path)
    )]
    Rounded {
        /// The table.
        path: PathBuf,
        /// The tensor.
        tensor: &'static str,
        /// Its dtype in the table.
        stored: DType,
        /// The first such number.
        value: i64,
        /// The number that would take its place.
        nearest: f64,
    },
    /// Rows beyond the end of the table.
    #[error("{path}: rows {start}..{end} were requested, the table has {n_rows}; rows count from 0", path = printable(.path))]
    RowsOutOfRange {
        /// The table.
        path: PathBuf,
        /// The first requested row.
        start: usize,
        /// The row after the last.
        end: usize,
        /// The number of rows in the table.
        n_rows: usize,
    },
    /// A slice of the wrong length.
    #[error("{op}: `{arg}` holds {found} values, expected {expected}")]
    Length {
        /// The function that was called.
        op: &'static str,
        /// The argument.
        arg: &'static str,
        /// The expected number of values.
        expected: usize,
        /// The number of values in the slice.
        found: usize,
    },
    /// A schema that no table can have.
    #[error("schema: {problem}", problem = printable(.problem))]
    Schema {
        /// The problem, and how to solve it.
        problem: String,
    },
    /// A column in which every value is missing.
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
    /// Dictionaries that do not fit into a header.
    #[error(
        "{path}: the header would take {header_bytes} bytes, {limit} are allowed; `{column}` has the most distinct values, {n_values}: drop it, or read it as a number",
        path = printable(.path), column = printable(.column)
    )]
    TooManyValues {
        /// The table to write.
        path: PathBuf,
        /// The categorical column with the most values.
        column: String,
        /// The number of its values.
        n_values: usize,
        /// The length that the header would have.
        header_bytes: u64,
        /// The longest header that is allowed.
        limit: u64,
    },
    /// The bytes of a block are not those that were written.
    #[error(
        "{path}: bytes {start}..{end} have checksum {found:08x}, {expected:08x} was written; the file is damaged, make it again",
        path = printable(.path)
    )]
    Checksum {
        /// The table.
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
    /// A table without checksums.
    #[error(
        "{path}: has no checksums, so there is nothing to verify; tables written by brisk have them",
        path = printable(.path)
    )]
    NoChecksums {
        /// The table.
        path: PathBuf,
    },
    /// A table at a URL that could not be read or written.
    #[cfg(feature = "remote")]
    #[error("{url}: {reason}", url = printable(.url))]
    Remote {
        /// The URL, without user, password and query, which may be secret.
        url: String,
        /// The reason.
        reason: RemoteError,
    },
    /// A folder that cannot be the cache of tables at URLs.
    #[cfg(feature = "remote")]
    #[error(
        "{path}: cannot be used as a cache: {problem}; name another folder, or turn the cache off",
        path = printable(.path), problem = printable(.problem)
    )]
    Cache {
        /// The folder.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// A source that this build of the crate cannot read.
    #[error("{path}: is {found}, which needs the feature `{feature}`; enable it, or {instead}", path = printable(.path))]
    FeatureOff {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// The feature of this crate that enables reading it.
        feature: &'static str,
        /// What to do without the feature.
        instead: &'static str,
    },
    /// An option that was chosen explicitly and has no effect.
    #[cfg(feature = "import")]
    #[error("{path}: `{setting}` {reason}; leave it out", path = printable(.path))]
    UnusedSetting {
        /// The file or folder.
        path: PathBuf,
        /// The option.
        setting: ImportSetting,
        /// Why it has no effect.
        reason: Unused,
    },
    /// A source that cannot be made into a table.
    #[cfg(feature = "import")]
    #[error("{path}: {reason}", path = printable(.path))]
    Source {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        reason: Box<SourceError>,
    },
    /// A source without rows.
    #[error("{path}: {found}, expected rows of numbers", path = printable(.path))]
    NoRows {
        /// The file.
        path: PathBuf,
        /// What was found instead.
        found: &'static str,
    },
    /// The name of a column is not UTF-8.
    #[error(
        "{path}, line {line}, column {col}: the name {found:?} is not UTF-8{}",
        Choice(NAME_NOT_UTF8), path = printable(.path), found = printable(.found)
    )]
    HeaderNotUtf8 {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The column.
        col: usize,
        /// What was found there, as far as it can be printed.
        found: String,
    },
    /// A first line that may be a header or a row.
    #[error(
        "{path}, line {line}: {number:?} is a number and {text:?} is not, so this may be a header or a row{}",
        Choice(HEADER_OR_ROW), path = printable(.path), number = printable(.number), text = printable(.text)
    )]
    HeaderOrRow {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// A cell that is a number.
        number: String,
        /// A cell that is not a number.
        text: String,
    },
    /// Two columns with the same name.
    #[error(
        "{path}: columns {first} and {second} are both named `{name}`{}",
        Choice(SAME_NAME), path = printable(.path), name = printable(.name)
    )]
    DuplicateColumn {
        /// The file.
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
        /// The file.
        path: PathBuf,
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
        "{path}: `{word}` for the {role} is the name of column {named} and the index of column `{indexed}`, counted from 0; write `name:{word}` or `index:{word}`",
        path = printable(.path), word = printable(.word), indexed = printable(.indexed)
    )]
    AmbiguousColumn {
        /// The file.
        path: PathBuf,
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
    #[error(
        "{path}: the label would be column {index}, `{name}`, which is the index of a data frame{}",
        Choice(INDEX_AS_LABEL), path = printable(.path), name = printable(.name)
    )]
    IndexAsLabel {
        /// The file.
        path: PathBuf,
        /// The column, counted from 0.
        index: usize,
        /// Its name.
        name: String,
    },
    /// A column with two roles, or no column left as a feature.
    #[error("{path}: {problem}", path = printable(.path), problem = printable(.problem))]
    ColumnRoles {
        /// The file.
        path: PathBuf,
        /// The problem, and how to solve it.
        problem: String,
    },
    /// A cell that is not valid in its column.
    #[error(
        "{path}, line {line}, column {col} (`{name}`): found {found:?}, expected {expected}",
        path = printable(.path), name = printable(.name)
    )]
    Cell {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The byte of the decompressed file, counted from 0.
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
        "{path}: the {first} has {expected} columns, line {line} has {found}{}",
        Choice(RAGGED), path = printable(.path), first = if *.has_header { "header" } else { "first row" }
    )]
    Ragged {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The byte of the decompressed file, counted from 0.
        byte: u64,
        /// Whether the file has a header.
        has_header: bool,
        /// The number of cells in the header or the first row.
        expected: usize,
        /// The number of cells in this line.
        found: usize,
    },
    /// A line of an svmlight file that is not a row.
    #[cfg(feature = "csv")]
    #[error("{path}, line {line}, byte {byte}: {reason}", path = printable(.path))]
    Svmlight {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u64,
        /// The byte of the decompressed file, counted from 0.
        byte: u64,
        /// The problem.
        reason: SvmlightError,
    },
    /// A row that has no end within the limit.
    #[error(
        "{path}, line {line}: the row that starts here has no end within {limit_bytes} bytes; is a quote left open?",
        path = printable(.path)
    )]
    RowTooLong {
        /// The file.
        path: PathBuf,
        /// The line at which the row starts.
        line: u64,
        /// The byte of the decompressed file, counted from 0.
        byte: u64,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// A quoted cell that is still open at the end of the file.
    #[error("{path}, line {line}: a quote is opened in the row that starts here and never closed", path = printable(.path))]
    QuoteLeftOpen {
        /// The file.
        path: PathBuf,
        /// The line at which the row starts.
        line: u64,
        /// The byte of the decompressed file, counted from 0.
        byte: u64,
    },
}

const INDEX_AS_LABEL: &[Remedy] = &[Remedy::OtherLabel, Remedy::KeepIndex];
const NO_MEAN: &[Remedy] = &[Remedy::DropColumn, Remedy::FillMissingWithNumber];
const NAME_NOT_UTF8: &[Remedy] = &[Remedy::ConvertText, Remedy::HeaderAbsent];
const HEADER_OR_ROW: &[Remedy] = &[Remedy::HeaderPresent, Remedy::HeaderAbsent];
const SAME_NAME: &[Remedy] = &[Remedy::RenameColumn, Remedy::HeaderAbsent];
const RAGGED: &[Remedy] = &[Remedy::Correct, Remedy::SkipRows];

impl Error {
    /// What the caller can do, as the end of the message says in terms of this crate.
    pub fn remedies(&self) -> &'static [Remedy] {
        match self {
            Self::IndexAsLabel { .. } => INDEX_AS_LABEL,
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

    /// The message without its [`remedies`](Self::remedies), for programs with their own options.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(feature = "csv")] {
    /// # let folder = tempfile::tempdir().unwrap();
    /// use brisk_table::{CsvOptions, Remedy, import};
    ///
    /// let (rows, table) = (folder.path().join("rows.csv"), folder.path().join("table.safetensors"));
    /// std::fs::write(&rows, "label,mass\n1,80.4\n0,heavy\n").unwrap();
    /// let error = import(&rows, &table, &CsvOptions::default()).unwrap_err();
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
            PublishError::Kept { kept, cause, .. } => Self::NotReplaced { path, kept, cause },
            error => Self::Write { path, written_bytes, cause: error.into() },
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
