//! What the crate promises, one file a module.

mod at_step;
mod checkpoint;
mod closing_table;
mod data_parallel;
mod early_stopping;
mod log;
mod metrics;
mod progress;
mod row_numbers;
mod run_folder;
#[cfg(all(unix, feature = "signals"))]
mod stop_flag;
