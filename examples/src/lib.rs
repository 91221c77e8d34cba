//! What the examples share.

pub mod command_line;
pub mod higgs;
pub mod print;

mod files;
mod statistics;

pub use files::{NamedFile, check_files_differ, check_output, write_json};
pub use statistics::statistics_table;
