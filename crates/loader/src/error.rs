/// What can go wrong, with the numbers in it.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A row was asked for that is not there.
    #[error("row {row} was asked for, the source has {n_rows} rows; rows count from 0")]
    RowOutOfRange {
        /// The row asked for.
        row: usize,
        /// How many rows there are.
        n_rows: usize,
    },
    /// A buffer does not hold as many values as the rows asked for.
    #[error(
        "{op}: `{arg}` holds {found} values, expected {expected}; it is `[rows, n_cols]` for features, `[rows, n_categories]` for \
         categories and `[rows]` for labels and weights"
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
    /// Fractions that do not split all rows.
    #[error("cannot split by {fractions:?}; fractions are 0 or more and come to 1")]
    Fractions {
        /// As they were given.
        fractions: Vec<f64>,
    },
    /// A number of folds that these rows cannot be cut into.
    #[error("cannot make {n_folds} folds of {n_rows} rows; take at least 2, and no more than rows")]
    Folds {
        /// Folds asked for.
        n_folds: usize,
        /// How many rows there are.
        n_rows: usize,
    },
    /// The source could not gather the rows of a batch.
    #[error("batch {batch} could not be gathered")]
    Source {
        /// Which batch of the epoch.
        batch: usize,
        /// The source's own error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The source panicked in a worker thread.
    #[error("the source panicked while gathering batch {batch}: {message}")]
    WorkerPanicked {
        /// Which batch of the epoch.
        batch: usize,
        /// What the panic said.
        message: String,
    },
}
