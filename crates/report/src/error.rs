use std::io;
use std::path::PathBuf;

use brisk_atomic_file::WriteError;

/// What can go wrong: where, what was found, what was expected, and what to do next.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {cause}")]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The error of the system.
        cause: io::Error,
    },
    /// A file cannot be written. An earlier file at this path is unchanged.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An error of a metric: the rows are not those of a classification or a regression.
    #[error(transparent)]
    Metric(#[from] brisk_metrics::Error),
    /// The rows of images cannot be read.
    #[error("row {row} cannot be read: {reason}")]
    Rows {
        /// Which row.
        row: usize,
        /// Why not.
        reason: String,
    },
    /// None of the values of a histogram is finite.
    #[error("histogram `{tag}`: none of its {n_values} values is finite, expected at least one")]
    NoFiniteValue {
        /// Its tag.
        tag: String,
        /// How many values there are.
        n_values: usize,
    },
    /// An image has a wrong number of bytes.
    #[error("image `{tag}`: {found} bytes for {height} by {width} pixels, expected 1 to 4 of each pixel")]
    ImagePixels {
        /// Its tag, or the title of the images.
        tag: String,
        /// Rows of pixels.
        height: usize,
        /// Pixels of a row.
        width: usize,
        /// How many bytes there are.
        found: usize,
    },
    /// A log of every 0th batch.
    #[error("StepLog::every: found 0, expected at least 1 batch")]
    NoInterval,
    /// The row's names are not those of the log.
    #[error("{path}: a row with columns {found:?}, expected {expected:?}, which the first row had")]
    LogColumns {
        /// The log.
        path: PathBuf,
        /// The columns of the first row.
        expected: Vec<String>,
        /// The columns of this row.
        found: Vec<String>,
    },
    /// A name cannot head a column.
    #[error(
        "{path}: {found:?} cannot name a column, expected a name that is not empty, is given once, and has no commas, quotes or line ends"
    )]
    ColumnName {
        /// The log.
        path: PathBuf,
        /// The name.
        found: String,
    },
    /// There is the log of an earlier run.
    #[error("{path}: holds the log of an earlier run; resume that run, or use another folder")]
    LogExists {
        /// The log.
        path: PathBuf,
    },
    /// The log has fewer rows than the run that resumes has had validations.
    #[error(
        "{path}: has {found} rows, expected at least {expected}, one for each epoch of the checkpoint; is it the log of another run?"
    )]
    ShortLog {
        /// The log.
        path: PathBuf,
        /// How many rows the run has written.
        expected: usize,
        /// How many rows there are.
        found: usize,
    },
    /// The text is not that of a [`RunHistory`](crate::RunHistory).
    #[error("not the history of a run, as `RunHistory::to_json` writes it")]
    History,
}
