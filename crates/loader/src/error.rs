use std::any::Any;
use std::time::Duration;

use crate::timer::Stage;

/// An error of this crate.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// A requested row does not exist.
    #[error("row {row} was requested, the source has {n_rows} rows; rows count from 0")]
    RowOutOfRange { row: usize, n_rows: usize },
    /// The buffer `arg` of the function `op` has another length than the requested rows need.
    #[error(
        "{op}: `{arg}` holds {found} values, expected {expected}; it is `[rows, n_cols]` for features, `[rows, n_labels]` for \
         labels, `[rows, n_categories]` for categories and `[rows]` for weights"
    )]
    Length { op: &'static str, arg: &'static str, expected: usize, found: usize },
    /// The values `arg` of the function `op` are not whole rows of `width`.
    #[error("{op}: {}", not_whole_rows(arg, *width, *found))]
    WholeRows { op: &'static str, arg: &'static str, width: usize, found: usize },
    /// More rows than a `u32` can number.
    #[error("{n_rows} rows; a source has at most 4294967295 (2^32 - 1), so split it")]
    TooManyRows { n_rows: usize },
    /// A batch of no rows, or one for which there is no memory.
    #[error("a batch of {size} rows of {n_cols} columns cannot be made; take at least 1 row, and what fits in memory")]
    BatchSize { size: usize, n_cols: usize },
    /// Rows with neither features nor categories.
    #[error("the source has {n_rows} rows of 0 columns and 0 categories; a batch needs at least 1 of either")]
    NoColumns { n_rows: usize },
    /// A rank that is not below the number of ranks.
    #[error("rank {rank} of a world of {world}; ranks count from 0 to world - 1")]
    Shard { rank: usize, world: usize },
    /// A position to resume from that is beyond the end of the source. It is the saved number of consumed rows.
    #[error("cannot resume at position {position} of {n_rows} rows; it was saved with another source")]
    Position { position: usize, n_rows: usize },
    /// An order with empty blocks or windows.
    #[error("cannot shuffle {window_blocks} blocks of {block_rows} rows; take at least 1 of each")]
    Blocks { block_rows: u32, window_blocks: u32 },
    /// Lanes of which a batch cannot take as many rows each.
    #[error(
        "a batch of {batch_rows} rows cannot take as many rows of each of {n_lanes} lanes; take a multiple of the number of lanes"
    )]
    Lanes { batch_rows: u32, n_lanes: u32 },
    /// A batch of the loader, of `size` rows, that does not consist of `n_batches` batches of equal size.
    #[error(
        "{size} rows are not {n_batches} batches of equal size; take a multiple of the number of batches, which is at least 1"
    )]
    Parts { size: usize, n_batches: usize },
    /// A part with a `fraction` of the blocks of a split that would have no block.
    #[error(
        "a part of {fraction} of {n_blocks} blocks of {block_rows} rows has no block; take smaller blocks, or a larger fraction"
    )]
    NoBlock { fraction: f64, n_blocks: u32, block_rows: u32 },
    /// A weight that cannot be used to draw rows. `row` is the first such row.
    #[error("row {row} cannot be drawn with weight {weight}; weights are 0 or more, and finite")]
    SampleWeight { row: usize, weight: f64 },
    /// No row can be drawn.
    #[error("rows cannot be drawn: none of {n_weights} weights is above 0")]
    NoSampleWeight { n_weights: usize },
    /// A weight of a row that is negative or not finite. `row` is the first such row.
    #[error("row {row} has weight {weight}; weights are 0 or more, and finite")]
    RowWeight { row: usize, weight: f32 },
    /// The number of weights differs from the number of rows.
    #[error("{n_weights} weights to draw by, the source has {n_rows} rows; give one weight a row")]
    DrawsOfOtherRows { n_weights: usize, n_rows: usize },
    /// Fractions that do not sum to 1.
    #[error("cannot split by {fractions:?}; fractions are 0 or more and sum to 1")]
    Fractions { fractions: Vec<f64> },
    /// A number of folds that is not possible with these rows. `what` is distributed: rows, rows of the largest class, or groups
    /// of rows. There are `n` of them.
    #[error("cannot make {n_folds} folds; take at least 2, and at most the number of {what}, which is {n}")]
    Folds { n_folds: usize, what: &'static str, n: usize },
    /// The source could not gather the rows of a batch. `batch` is its index in the epoch, as in the errors below.
    #[error("batch {batch} could not be gathered: {}", with_causes(&**cause))]
    Source { batch: usize, cause: BoxedError },
    /// The function of a [`Decoded`](crate::Decoded) failed.
    #[error("row {row} could not be decoded: {}", with_causes(&**cause))]
    Decode { row: u32, cause: BoxedError },
    /// The function of a [`Decoded`](crate::Decoded) panicked.
    #[error("panicked while decoding row {row}: {message}")]
    DecodePanicked { row: u32, message: String },
    /// The function that transforms a batch failed. `row` is known for [`Loader::map_rows`](crate::Loader::map_rows): its number
    /// where the rows are stored ([`RowSource::source_row`](crate::RowSource::source_row)).
    #[error("batch {batch} could not be transformed{}: {}", of_row(.row), with_causes(&**cause))]
    Transform { batch: usize, row: Option<u32>, cause: BoxedError },
    /// The source, or the function that transforms a batch, panicked. `row` is that of [`Transform`](Self::Transform).
    #[error("panicked while making batch {batch}{}: {message}", of_row(.row))]
    Panicked { batch: usize, row: Option<u32>, message: String },
    /// A batch was not ready within the given time. It may still be: calling again continues to wait. `stage` is what its worker
    /// is doing; `None` if no worker has started it.
    #[error("batch {batch} is not ready after {waited:?}: {}", at_stage(.stage))]
    TimedOut { batch: usize, waited: Duration, stage: Option<Stage> },
    /// A state of other rows, or of another order: the property `what` differs.
    #[error(
        "state of another source: its {what} was {saved}, here it is {found}; resume with the rows and the order it was saved with"
    )]
    State { what: &'static str, saved: String, found: String },
    /// A text that is not a valid state.
    #[error("`{text}` is not the state of a loader; it is one line, `brisk-loader 1 epoch=…`, as a state is written")]
    StateText { text: String },
    /// There is not enough memory for a copy.
    #[error("no room for {n_bytes} bytes: {cause}; leave the rows where they are")]
    Memory { n_bytes: usize, cause: std::io::Error },
    /// The threads of a loader could not be started.
    #[error("{n_threads} threads could not be started: {reason}; take fewer")]
    Threads { n_threads: usize, reason: String },
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

pub(crate) fn panic_message(thrown: Box<dyn Any + Send>) -> String {
    let text = thrown.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| thrown.downcast_ref::<String>().cloned()).unwrap_or_default()
}
