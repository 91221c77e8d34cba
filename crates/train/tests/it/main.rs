//! Tests of the crate's public interface, one module per file.

mod any_checkpoint;
mod at_step;
mod checkpoint;
mod checkpoint_of_replicas;
#[path = "../../../table/tests/it/damage.rs"]
mod damage;
mod damaged;
mod data_parallel;
mod early_stopping;
mod misuse;
mod progress;
mod pytorch;
mod reduce_lr_on_plateau;
mod row_numbers;
mod run_folder;
mod settings_file;
#[cfg(all(unix, feature = "signals"))]
mod stop_flag;
mod tensorboard;
mod waited;
