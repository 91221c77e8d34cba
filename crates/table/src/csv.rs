//! Text in columns: CSV and its relatives.
//!
//! It is parsed on std threads, not in a rayon pool, whose workers should not block on files.

mod block;
mod chunks;
mod decimal;
mod head;
mod import;
mod options;
mod pipeline;
mod quotes;
mod rows;
mod survey;

pub(crate) use chunks::{Chunk, ChunkEnds, ChunkError, Chunks, MAX_ROW_BYTES};
pub(crate) use decimal::{number, number64};
pub(crate) use head::{shown, what_else};
pub use options::{CsvOptions, Decimal, Delimiter, Header};
pub(crate) use pipeline::parse_in_order;
pub use survey::{ColumnKind, ColumnSurvey, FoundNumbers, OddCell, Survey, find_numbers, survey_csv, survey_csv_with_progress};
