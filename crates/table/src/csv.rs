//! Text in columns: CSV and its relatives.
//!
//! It is parsed on std threads, not in a rayon pool, whose workers should not block on files.

mod block;
mod chunks;
mod decimal;
mod head;
mod import;
mod options;
mod quotes;
mod rows;
mod survey;
mod text;

pub(crate) use chunks::{Chunk, ChunkEnds};
pub(crate) use decimal::{number, number64};
pub(crate) use head::{shown, what_else};
pub use options::{CsvOptions, Decimal, Delimiter, Header};
pub use survey::{
    ColumnKind, ColumnSurvey, FoundNumbers, OddCell, Survey, find_numbers, read_cells, survey_csv, survey_csv_with_progress,
};
pub(crate) use text::{Parsed, Position, Text};
