use std::io;
use std::path::PathBuf;

use brisk_atomic_file::WriteError;

/// What can go wrong: where, what was found, what was expected, and what to do next.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {cause}")]
    Io { path: PathBuf, action: &'static str, cause: io::Error },
    /// A file cannot be written. An earlier file at this path is unchanged.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An error of a metric: the rows are not those of a classification or a regression.
    #[error(transparent)]
    Metric(#[from] brisk_metrics::Error),
    /// The rows of images cannot be read.
    #[error("row {row} cannot be read: {reason}")]
    Rows { row: usize, reason: String },
    /// None of the values of a histogram is finite.
    #[error("histogram `{tag}`: none of its {n_values} values is finite, expected at least one")]
    NoFiniteValue { tag: String, n_values: usize },
    /// An image of `height` by `width` pixels has a wrong number of bytes: `found`. `tag` may be the title of the images.
    #[error("image `{tag}`: {found} bytes for {height} by {width} pixels, expected 1 to 4 of each pixel")]
    ImagePixels { tag: String, height: usize, width: usize, found: usize },
    /// A log of every 0th batch.
    #[error("StepLog::every: found 0, expected at least 1 batch")]
    NoInterval,
    /// The row's columns, `found`, are not those of the first row of the log, `expected`.
    #[error("{path}: a row with columns {found:?}, expected {expected:?}, which the first row had")]
    LogColumns { path: PathBuf, expected: Vec<String>, found: Vec<String> },
    /// The first row of a log is empty.
    #[error("{path}: a row without columns, expected at least one name and its value")]
    NoColumns { path: PathBuf },
    /// The name `found` cannot head a column.
    #[error(
        "{path}: {found:?} cannot name a column, expected a name that is not empty, has no comma, quote or line end, and is given once"
    )]
    ColumnName { path: PathBuf, found: String },
    /// There is the log of an earlier run.
    #[error("{path}: holds the log of an earlier run; resume that run, or use another folder")]
    LogExists { path: PathBuf },
    /// A file that is not a log, which is not replaced. `problem` is what a log does not have.
    #[error("{path}: is not the log of a run: {problem}; move it away, or write to another path")]
    NotALog { path: PathBuf, problem: String },
    /// The two files of a log are one.
    #[error("{path}: rows in CSV and in JSON cannot be in the same file; give two paths")]
    SameFile { path: PathBuf },
    /// The log has `found` rows, fewer than the `expected` ones that the run that resumes has written.
    #[error(
        "{path}: has {found} rows, expected at least {expected}, one for each epoch of the checkpoint; is it the log of another run?"
    )]
    ShortLog { path: PathBuf, expected: usize, found: usize },
    /// Not one learning rate for each loss, or more waits than losses.
    #[error(
        "{n_losses} losses of batches with {n_rates} learning rates and {n_waits} waits, expected as many rates as losses, and no more waits"
    )]
    BatchCounts { n_losses: usize, n_rates: usize, n_waits: usize },
    /// Batch `first` does not follow the last one of the log. `log` is the path of the log, or what else has the batches.
    #[error("{log}: batch {first} cannot follow batch {last}; is it the log of another run?")]
    BatchGap { log: String, last: u64, first: u64 },
    /// The text is not that of a [`RunHistory`](crate::RunHistory).
    #[error("not the history of a run, as `RunHistory::to_json` writes it")]
    History,
}
