mod format_error;
mod index_error;
#[cfg(feature = "remote")]
mod remote_error;
mod shard_mismatch;
#[cfg(feature = "import")]
mod source_error;

use std::io;
use std::path::{Path, PathBuf};

use brisk_atomic_file::{PublishError, printable};

use crate::dtype::DType;
use crate::remedy::{Choice, Remedy};

pub use format_error::FormatError;
pub use index_error::IndexError;
#[cfg(feature = "remote")]
pub use remote_error::RemoteError;
pub use shard_mismatch::ShardMismatch;
#[cfg(feature = "import")]
pub use source_error::SourceError;

/// An error of this crate: where it occurred, what was found, what was expected, and what to do next.
///
/// Rows of a table are counted from 0, as slices do.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// The operating system returned an error when `action` was attempted.
    #[error("{path}: cannot {action}: {cause}", path = printable(.path))]
    Io { path: PathBuf, action: &'static str, cause: io::Error },
    /// `found`, such as a folder, a pipe or a device, instead of a file.
    #[error("{path}: is {found}, expected a file", path = printable(.path))]
    NotAFile { path: PathBuf, found: &'static str },
    /// The output of an import is one of the files that it reads.
    #[error(
        "{path}: is the same file as the input {input}, which the table would replace; choose another path",
        path = printable(.path), input = printable(.input)
    )]
    SameFile { path: PathBuf, input: PathBuf },
    /// The table could not be written, for example because the disk is full. `written_bytes` were before that.
    #[error(
        "{path}: writing failed after {written_bytes} bytes: {cause}; nothing was left behind{}",
        hint(.cause), path = printable(.path)
    )]
    Write { path: PathBuf, written_bytes: u64, cause: io::Error },
    /// The new table is complete, but the old one at `path` cannot be replaced, because a program holds it or because of its
    /// permissions. The new one is at `kept`.
    #[error(
        "{path}: cannot be replaced: {cause}; the new table is complete and was kept as {kept}: close the programs that use the old one, then rename it",
        path = printable(.path), kept = printable(.kept)
    )]
    NotReplaced { path: PathBuf, kept: PathBuf, cause: io::Error },
    /// The file is not a table, or is damaged.
    #[error("{path}: {reason}", path = printable(.path))]
    Format { path: PathBuf, reason: FormatError },
    /// The file is not an index of shards.
    #[error("{path}: {reason}", path = printable(.path))]
    Index { path: PathBuf, reason: IndexError },
    /// A shard that does not match its index.
    #[error(
        "{path}: shard of {index}: {reason}; put the shard back that was written with the index, or write the table again",
        path = printable(.path), index = printable(.index)
    )]
    Shard { path: PathBuf, index: PathBuf, reason: ShardMismatch },
    /// The requested rows, `start..end`, cannot be borrowed as one slice: `shard_end` is the row after the last of the first
    /// row's shard.
    #[error(
        "{path}: rows {start}..{end} lie in several shards, the first of them ends before row {shard_end}; request rows of one shard, or gather them",
        path = printable(.path)
    )]
    AcrossShards { path: PathBuf, start: usize, end: usize, shard_end: usize },
    /// Labels were requested from a table that was opened without labels.
    #[error(
        "{path}: was opened without labels, so there are none to borrow; they gather as 0, or name their tensor in `TensorNames`",
        path = printable(.path)
    )]
    NoLabels { path: PathBuf },
    /// Values were requested or given as a type, `asked`, other than the table's, `stored`.
    #[error("{path}: `{tensor}` is {stored}, not {asked}; use the Rust type of {stored}", path = printable(.path))]
    WrongDType { path: PathBuf, tensor: &'static str, stored: DType, asked: DType },
    /// Values of a dtype that cannot be converted to `f32`.
    #[error(
        "{path}: `{tensor}` is {stored}, which is not gathered as f32; read its bytes with `row_bytes`{}",
        half_hint(*.stored), path = printable(.path)
    )]
    NotGathered { path: PathBuf, tensor: &'static str, stored: DType },
    /// A whole number that `f32`, as which it is gathered, does not hold: different numbers would become the same. `value` is the
    /// first such number, and `nearest` the one that would take its place.
    #[error(
        "{path}: `{tensor}` is {stored} and has {value}, which f32 rounds to {nearest}; subtract a number from all of them before they are written, or store them as categories",
        path = printable(.path)
    )]
    Rounded { path: PathBuf, tensor: &'static str, stored: DType, value: i64, nearest: f64 },
    /// Rows `start..end`, some of them beyond the end of the table.
    #[error("{path}: rows {start}..{end} were requested, the table has {n_rows}; rows count from 0", path = printable(.path))]
    RowsOutOfRange { path: PathBuf, start: usize, end: usize, n_rows: usize },
    /// The slice `arg` of the function `op` has the wrong length.
    #[error("{op}: `{arg}` holds {found} values, expected {expected}")]
    Length { op: &'static str, arg: &'static str, expected: usize, found: usize },
    /// A schema that no table can have. `problem` says how to solve it.
    #[error("schema: {problem}", problem = printable(.problem))]
    Schema { problem: String },
    /// Dictionaries that do not fit into a header. `column` is the categorical column with the most values, `header_bytes` the
    /// length that the header would have.
    #[error(
        "{path}: the header would take {header_bytes} bytes, {limit} are allowed; `{column}` has the most distinct values, {n_values}: drop it, or read it as a number",
        path = printable(.path), column = printable(.column)
    )]
    TooManyValues { path: PathBuf, column: String, n_values: usize, header_bytes: u64, limit: u64 },
    /// The bytes `start..end` are not those that were written. They were read `n_reads` times: from a server, more than once.
    #[error(
        "{path}: bytes {start}..{end} have checksum {found:08x}, {expected:08x} was written; {}",
        damaged(*.n_reads), path = printable(.path)
    )]
    Checksum { path: PathBuf, start: u64, end: u64, expected: u32, found: u32, n_reads: usize },
    /// A table without checksums.
    #[error(
        "{path}: has no checksums, so there is nothing to verify; tables written by brisk have them",
        path = printable(.path)
    )]
    NoChecksums { path: PathBuf },
    /// The table at `url`, shown without user, password and query, which may be secret, could not be read or written.
    #[cfg(feature = "remote")]
    #[error("{url}: {reason}", url = printable(.url))]
    Remote { url: String, reason: RemoteError },
    /// A folder that cannot be the cache of tables at URLs.
    #[cfg(feature = "remote")]
    #[error(
        "{path}: cannot be used as a cache: {problem}; name another folder, or turn the cache off",
        path = printable(.path), problem = printable(.problem)
    )]
    Cache { path: PathBuf, problem: String },
    /// A source, which is `found`, that this build of the crate cannot read without `feature`. `instead` says what to do without
    /// it.
    #[error("{path}: is {found}, which needs the feature `{feature}`; enable it, or {instead}", path = printable(.path))]
    FeatureOff { path: PathBuf, found: &'static str, feature: &'static str, instead: &'static str },
    /// A source that cannot be made into a table.
    #[cfg(feature = "import")]
    #[error("{path}{}{reason}{}", .reason.joint(), Choice(.reason.remedies()), path = printable(.path))]
    Source { path: PathBuf, reason: Box<SourceError> },
}

impl Error {
    /// What the caller can do, as the end of the message says in terms of this crate.
    pub fn remedies(&self) -> &'static [Remedy] {
        match self {
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

    /// The error of the operating system for what was done with the file at `path`.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl Fn(io::Error) -> Self + Copy {
        move |cause| Self::Io { path: path.to_owned(), action, cause }
    }

    /// The same for a table of which nothing is written yet.
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |cause| Self::Write { path: path.to_owned(), written_bytes: 0, cause }
    }

    /// The same error, for another thread that needs the same bytes.
    pub(crate) fn again(&self) -> Self {
        match self {
            #[cfg(feature = "remote")]
            Self::Remote { url, reason } => Self::Remote { url: url.clone(), reason: reason.clone() },
            &Self::Checksum { ref path, start, end, expected, found, n_reads } => {
                Self::Checksum { path: path.clone(), start, end, expected, found, n_reads }
            }
            Self::Io { path, action, cause } => {
                Self::Io { path: path.clone(), action, cause: io::Error::new(cause.kind(), cause.to_string()) }
            }
            error => Self::Io { path: "a table".into(), action: "read", cause: io::Error::other(error.to_string()) },
        }
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

fn damaged(n_reads: usize) -> String {
    match n_reads {
        1 => "the file is damaged, make it again".to_owned(),
        n => format!("the server sent damaged bytes {n} times: check the server and the network, or make the file again"),
    }
}

fn half_hint(stored: DType) -> &'static str {
    match stored {
        DType::F16 | DType::BF16 if cfg!(not(feature = "half")) => ", or enable the feature `half`",
        _ => "",
    }
}
