//! A table that is read from its file in bounded memory, without a map.

mod extent;
mod file;
mod memory;
mod pool;
mod read_ahead;
mod read_at;
mod table;

pub use read_ahead::{ReadAhead, ReadAheadReport};
pub use table::StreamedTable;
