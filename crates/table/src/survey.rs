//! What the cells of each column of a source are, found by reading all of it before anything is decided.

mod column;
mod found;
mod marked;
mod sketch;

pub use column::{ColumnKind, ColumnSurvey, OddCell};
pub use found::FoundNumbers;
pub(crate) use found::Wanted;

/// What each column of a text file contains: [`survey_csv`](crate::survey_csv).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Survey {
    /// The number of rows. Rows of a wrong length, which an import reports, are not counted.
    pub n_rows: u64,
    /// The columns, in the order of the file.
    pub columns: Vec<ColumnSurvey>,
    /// Those that are the index of a data frame: see [`ColumnOptions::keep_index`](crate::ColumnOptions::keep_index).
    pub index_columns: Vec<String>,
}
