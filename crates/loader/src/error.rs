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
        "{op}: `{arg}` holds {found} values, expected {expected}; it is `[rows, n_cols]` for features and `[rows]` for labels"
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
}
