//! Shared code of the examples.

pub mod command_line;
pub mod elsewhere;
pub mod higgs;
pub mod import_error;
pub mod interruptible;
pub mod letters;
pub mod print;
pub mod run;
pub mod tabular;

mod files;
mod folder;
mod statistics;

pub use files::{NamedFile, check_files_differ, check_model, check_output, check_outside, write_json};
pub use folder::check_folder;
pub use statistics::statistics_table;
