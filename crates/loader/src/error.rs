use std::any::Any;
use std::time::Duration;

use crate::Stage;

/// What can go wrong, with the numbers in it.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A requested row does not exist.
    #[error("row {row} was asked for, the source has {n_rows} rows; rows count from 0")]
    RowOutOfRange {
        /// The requested row.
        row: usize,
        /// How many rows there are.
        n_rows: usize,
    },
    /// A buffer does not hold as many values as the requested rows have.
    #[error(
        "{op}: `{arg}` holds {found} values, expected {expected}; it is `[rows, n_cols]` for features, `[rows, n_labels]` for \
         labels, `[rows, n_categories]` for categories and `[rows]` for weights"
    )]
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
    /// Labels that are not those of whole rows.
    #[error(
        "{op}: `labels` holds {found} values for rows of {n_labels} labels, expected a multiple of {n_labels}, which is at least 1"
    )]
    Labels {
        /// The call.
        op: &'static str,
        /// Labels of a row.
        n_labels: usize,
        /// How many values there are.
        found: usize,
    },
    /// More rows than a row number can tell apart.
    #[error("{n_rows} rows; a source has at most 4294967295 (2^32 - 1), so split it")]
    TooManyRows {
        /// How many rows there are.
        n_rows: usize,
    },
    /// A batch of no rows, or of more values than memory has addresses for.
    #[error("a batch of {size} rows of {n_cols} columns cannot be made; take at least 1 row, and what fits in memory")]
    BatchSize {
        /// Rows in a batch.
        size: usize,
        /// Columns in a row.
        n_cols: usize,
    },
    /// Rows without features, and without categories.
    #[error("the source has {n_rows} rows of 0 columns and 0 categories; a batch needs at least 1 of either")]
    NoColumns {
        /// How many rows there are.
        n_rows: usize,
    },
    /// A rank that its world does not have.
    #[error("rank {rank} of a world of {world}; ranks count from 0 to world - 1")]
    Shard {
        /// The rank.
        rank: usize,
        /// How many ranks there are.
        world: usize,
    },
    /// A position to resume at that the source does not have.
    #[error("cannot resume at position {position} of {n_rows} rows; it was saved with another source")]
    Position {
        /// Rows consumed, as it was saved.
        position: usize,
        /// How many rows there are.
        n_rows: usize,
    },
    /// An order by blocks of nothing.
    #[error("cannot shuffle {window_blocks} blocks of {block_rows} rows; take at least 1 of each")]
    Blocks {
        /// Rows in a block.
        block_rows: u32,
        /// Blocks in a window.
        window_blocks: u32,
    },
    /// A weight by which no row can be drawn.
    #[error("row {row} cannot be drawn with weight {weight}; weights are 0 or more, finite, and not all 0")]
    SampleWeight {
        /// The first such row.
        row: usize,
        /// Its weight.
        weight: f64,
    },
    /// Weights to draw by that are those of other rows.
    #[error("{n_weights} weights to draw by, the source has {n_rows} rows; give one weight a row")]
    DrawsOfOtherRows {
        /// How many weights there are.
        n_weights: usize,
        /// How many rows there are.
        n_rows: usize,
    },
    /// Fractions that do not sum to 1.
    #[error("cannot split by {fractions:?}; fractions are 0 or more and sum to 1")]
    Fractions {
        /// As they were given.
        fractions: Vec<f64>,
    },
    /// A number of folds that these rows cannot be cut into.
    #[error(
        "cannot make {n_folds} folds of {n} rows; take at least 2, and no more than rows (of the largest class, or groups of rows)"
    )]
    Folds {
        /// Requested folds.
        n_folds: usize,
        /// How many there are to deal out: rows, rows of the largest class, or groups.
        n: usize,
    },
    /// The source could not gather the rows of a batch.
    #[error("batch {batch} could not be gathered: {}", with_causes(&**cause))]
    Source {
        /// Which batch of the epoch.
        batch: usize,
        /// The source's own error.
        cause: BoxedError,
    },
    /// The function of a [`Decoded`](crate::Decoded) failed.
    #[error("row {row} could not be decoded: {}", with_causes(&**cause))]
    Decode {
        /// At which row.
        row: u32,
        /// The function's own error.
        cause: BoxedError,
    },
    /// The function of a [`Decoded`](crate::Decoded) panicked.
    #[error("panicked while decoding row {row}: {message}")]
    DecodePanicked {
        /// At which row.
        row: u32,
        /// What the panic said.
        message: String,
    },
    /// A function that was to transform a batch failed.
    #[error("batch {batch} could not be transformed{}: {}", of_row(.row), with_causes(&**cause))]
    Transform {
        /// Which batch of the epoch.
        batch: usize,
        /// At which row where the rows are stored ([`RowSource::source_row`](crate::RowSource::source_row)), if it is known.
        row: Option<u32>,
        /// The function's own error.
        cause: BoxedError,
    },
    /// The source, or a function that was to transform a batch, panicked.
    #[error("panicked while making batch {batch}{}: {message}", of_row(.row))]
    Panicked {
        /// Which batch of the epoch.
        batch: usize,
        /// At which row where the rows are stored ([`RowSource::source_row`](crate::RowSource::source_row)), if it is known.
        row: Option<u32>,
        /// What the panic said.
        message: String,
    },
    /// A batch did not come within the time given. It may still come: asking again waits on.
    #[error("batch {batch} is not there after {waited:?}: {}", at_stage(.stage))]
    TimedOut {
        /// Which batch of the epoch.
        batch: usize,
        /// How long it was waited for.
        waited: Duration,
        /// What its worker is doing; `None` if no worker has started it.
        stage: Option<Stage>,
    },
    /// A state to resume from that is one of other rows, or of another order.
    #[error(
        "state of another source: its {what} was {saved}, here it is {found}; resume with the rows and the order it was saved with"
    )]
    State {
        /// What differs.
        what: &'static str,
        /// As it was saved.
        saved: String,
        /// As it is.
        found: String,
    },
    /// A text that no state is written as.
    #[error("`{text}` is not the state of a loader; it is one line, `brisk-loader 1 epoch=…`, as a state is written")]
    StateText {
        /// The text.
        text: String,
    },
    /// There is not enough memory for a copy.
    #[error("no room for {n_bytes} bytes: {cause}; leave the rows where they are")]
    Memory {
        /// Requested bytes.
        n_bytes: usize,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The threads of a loader could not be started.
    #[error("{n_threads} threads could not be started: {reason}; take fewer")]
    Threads {
        /// Requested threads.
        n_threads: usize,
        /// What the operating system said.
        reason: String,
    },
}

/// An error of a caller's type.
pub(crate) type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// What the error and its causes say, in one line. A cause that the line has already is left out.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string);
    chain.reduce(|told, cause| if told.contains(&cause) { told } else { format!("{told}: {cause}") }).unwrap_or_default()
}

fn of_row(row: &Option<u32>) -> String {
    row.map_or_else(String::new, |row| format!(", at row {row}"))
}

fn at_stage(stage: &Option<Stage>) -> String {
    match stage {
        Some(stage) => format!("its worker is at stage `{stage}`"),
        None => "no worker has started it".to_owned(),
    }
}

/// What a panic said.
pub(crate) fn panic_message(thrown: Box<dyn Any + Send>) -> String {
    let text = thrown.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| thrown.downcast_ref::<String>().cloned()).unwrap_or_default()
}
