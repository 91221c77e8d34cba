//! Tests of the crate's public interface, one module per file.

mod closing_table;
mod event_file;
mod metrics_log;
mod report;
mod run_history;
mod step_log;
