use std::any::Any;
use std::time::Duration;

use crate::timer::Stage;

/// An error of this crate.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A requested row does not exist.
    #[error("row {row} was requested, the source has {n_rows} rows; rows count from 0")]
    RowOutOfRange {
        /// The requested row.
        row: usize,
        /// The number of rows in the source.
        n_rows: usize,
    },
    /// The length of a buffer does not match the number of requested rows.
    #[error(
        "{op}: `{arg}` holds {found} values, expected {expected}; it is `[rows, n_cols]` for features, `[rows, n_labels]` for \
         labels, `[rows, n_categories]` for categories and `[rows]` for weights"
    )]
    Length {
        /// The function that was called.
        op: &'static str,
        /// The argument.
        arg: &'static str,
        /// The expected number of values.
        expected: usize,
        /// The number of values in the buffer.
        found: usize,
    },
    /// Values that are not whole rows.
    #[error("{op}: {}", not_whole_rows(arg, *width, *found))]
    WholeRows {
        /// The function that was called.
        op: &'static str,
        /// The argument.
        arg: &'static str,
        /// The number of values per row.
        width: usize,
        /// The number of values.
        found: usize,
    },
    /// More rows than a `u32` can number.
    #[error("{n_rows} rows; a source has at most 4294967295 (2^32 - 1), so split it")]
    TooManyRows {
        /// The number of rows.
        n_rows: usize,
    },
    /// A batch of no rows, or one for which there is no memory.
    #[error("a batch of {size} rows of {n_cols} columns cannot be made; take at least 1 row, and what fits in memory")]
    BatchSize {
        /// The number of rows in a batch.
        size: usize,
        /// The number of columns in a row.
        n_cols: usize,
    },
    /// Rows with neither features nor categories.
    #[error("the source has {n_rows} rows of 0 columns and 0 categories; a batch needs at least 1 of either")]
    NoColumns {
        /// The number of rows.
        n_rows: usize,
    },
    /// A rank that is not below the number of ranks.
    #[error("rank {rank} of a world of {world}; ranks count from 0 to world - 1")]
    Shard {
        /// The rank.
        rank: usize,
        /// The number of ranks.
        world: usize,
    },
    /// A position to resume from that is beyond the end of the source.
    #[error("cannot resume at position {position} of {n_rows} rows; it was saved with another source")]
    Position {
        /// The saved number of consumed rows.
        position: usize,
        /// The number of rows.
        n_rows: usize,
    },
    /// An order with empty blocks or windows.
    #[error("cannot shuffle {window_blocks} blocks of {block_rows} rows; take at least 1 of each")]
    Blocks {
        /// The number of rows in a block.
        block_rows: u32,
        /// The number of blocks in a window.
        window_blocks: u32,
    },
    /// Lanes of which a batch cannot take as many rows each.
    #[error(
        "a batch of {batch_rows} rows cannot take as many rows of each of {n_lanes} lanes; take a multiple of the number of lanes"
    )]
    Lanes {
        /// The number of rows in a batch.
        batch_rows: u32,
        /// The number of lanes.
        n_lanes: u32,
    },
    /// A batch of the loader that does not consist of whole batches.
    #[error(
        "{size} rows are not {n_batches} batches of equal size; take a multiple of the number of batches, which is at least 1"
    )]
    Parts {
        /// The number of rows.
        size: usize,
        /// The number of batches that they consist of.
        n_batches: usize,
    },
    /// A part of a split that would have no block.
    #[error(
        "a part of {fraction} of {n_blocks} blocks of {block_rows} rows has no block; take smaller blocks, or a larger fraction"
    )]
    NoBlock {
        /// The fraction of the blocks that the part has.
        fraction: f64,
        /// The number of blocks.
        n_blocks: u32,
        /// The number of rows in a block.
        block_rows: u32,
    },
    /// A weight that cannot be used to draw rows.
    #[error("row {row} cannot be drawn with weight {weight}; weights are 0 or more, and finite")]
    SampleWeight {
        /// The first such row.
        row: usize,
        /// Its weight.
        weight: f64,
    },
    /// No row can be drawn.
    #[error("rows cannot be drawn: none of {n_weights} weights is above 0")]
    NoSampleWeight {
        /// The number of weights.
        n_weights: usize,
    },
    /// A weight of a row that is negative or not finite.
    #[error("row {row} has weight {weight}; weights are 0 or more, and finite")]
    RowWeight {
        /// The first such row.
        row: usize,
        /// Its weight.
        weight: f32,
    },
    /// The number of weights differs from the number of rows.
    #[error("{n_weights} weights to draw by, the source has {n_rows} rows; give one weight a row")]
    DrawsOfOtherRows {
        /// The number of weights.
        n_weights: usize,
        /// The number of rows.
        n_rows: usize,
    },
    /// Fractions that do not sum to 1.
    #[error("cannot split by {fractions:?}; fractions are 0 or more and sum to 1")]
    Fractions {
        /// The fractions.
        fractions: Vec<f64>,
    },
    /// A number of folds that is not possible with these rows.
    #[error("cannot make {n_folds} folds; take at least 2, and at most the number of {what}, which is {n}")]
    Folds {
        /// The requested number of folds.
        n_folds: usize,
        /// What is distributed: rows, rows of the largest class, or groups of rows.
        what: &'static str,
        /// The number of these.
        n: usize,
    },
    /// The source could not gather the rows of a batch.
    #[error("batch {batch} could not be gathered: {}", with_causes(&**cause))]
    Source {
        /// The index of the batch in its epoch.
        batch: usize,
        /// The error of the source.
        cause: BoxedError,
    },
    /// The function of a [`Decoded`](crate::Decoded) failed.
    #[error("row {row} could not be decoded: {}", with_causes(&**cause))]
    Decode {
        /// The row.
        row: u32,
        /// The error of the function.
        cause: BoxedError,
    },
    /// The function of a [`Decoded`](crate::Decoded) panicked.
    #[error("panicked while decoding row {row}: {message}")]
    DecodePanicked {
        /// The row.
        row: u32,
        /// The message of the panic.
        message: String,
    },
    /// The function that transforms a batch failed.
    #[error("batch {batch} could not be transformed{}: {}", of_row(.row), with_causes(&**cause))]
    Transform {
        /// The index of the batch in its epoch.
        batch: usize,
        /// The row, if known, by its number where the rows are stored ([`RowSource::source_row`](crate::RowSource::source_row)).
        row: Option<u32>,
        /// The error of the function.
        cause: BoxedError,
    },
    /// The source, or the function that transforms a batch, panicked.
    #[error("panicked while making batch {batch}{}: {message}", of_row(.row))]
    Panicked {
        /// The index of the batch in its epoch.
        batch: usize,
        /// The row, if known, by its number where the rows are stored ([`RowSource::source_row`](crate::RowSource::source_row)).
        row: Option<u32>,
        /// The message of the panic.
        message: String,
    },
    /// A batch was not ready within the given time. It may still be: calling again continues to wait.
    #[error("batch {batch} is not ready after {waited:?}: {}", at_stage(.stage))]
    TimedOut {
        /// The index of the batch in its epoch.
        batch: usize,
        /// How long the caller has waited.
        waited: Duration,
        /// What its worker is doing; `None` if no worker has started it.
        stage: Option<Stage>,
    },
    /// A state of other rows, or of another order.
    #[error(
        "state of another source: its {what} was {saved}, here it is {found}; resume with the rows and the order it was saved with"
    )]
    State {
        /// The property that differs.
        what: &'static str,
        /// Its value in the saved state.
        saved: String,
        /// Its value now.
        found: String,
    },
    /// A text that is not a valid state.
    #[error("`{text}` is not the state of a loader; it is one line, `brisk-loader 1 epoch=…`, as a state is written")]
    StateText {
        /// The text.
        text: String,
    },
    /// There is not enough memory for a copy.
    #[error("no room for {n_bytes} bytes: {cause}; leave the rows where they are")]
    Memory {
        /// The requested number of bytes.
        n_bytes: usize,
        /// The error from the operating system.
        cause: std::io::Error,
    },
    /// The threads of a loader could not be started.
    #[error("{n_threads} threads could not be started: {reason}; take fewer")]
    Threads {
        /// The requested number of threads.
        n_threads: usize,
        /// The error from the operating system.
        reason: String,
    },
}

/// An error of any type, from the caller's code.
pub(crate) type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// The messages of an error and its causes in one line. A cause whose message is already in the line is left out.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string);
    chain.reduce(|told, cause| if told.contains(&cause) { told } else { format!("{told}: {cause}") }).unwrap_or_default()
}

fn not_whole_rows(arg: &str, width: usize, found: usize) -> String {
    match width {
        0 => format!("rows of 0 `{arg}`, expected at least 1 per row"),
        _ => format!("`{arg}` holds {found} values, expected whole rows of {width}"),
    }
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

/// The message of a panic.
pub(crate) fn panic_message(thrown: Box<dyn Any + Send>) -> String {
    let text = thrown.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| thrown.downcast_ref::<String>().cloned()).unwrap_or_default()
}
