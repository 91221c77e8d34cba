//! Tests of several crates together: the order of rows, whole training runs, and the programs called from the command line.
//!
//! `BRISK_TEST_GPU=off|auto|require` controls the GPU checks; see `gpu.rs`. `BRISK_DATA` names the folder of real data sets;
//! tests that need one print a message if it is not set. `BRISK_TEST_SERVERS=auto|require` is for tests that start rclone,
//! and `BRISK_TEST_JOBS=auto|require` for those of job files that need Slurm or the schemas of Kubernetes.

mod event_files;
mod example;
mod gpu;
mod resume;
mod resume_cli;
mod resume_computation;
mod resume_refused;
mod run;
mod say;
mod steps;
mod tasks;
mod usage;

mod newest_parameters;
mod order;
mod other_ranks;
mod own;
mod own_modules;

mod amp_report_cli;
#[cfg(unix)]
mod attack_cli;
mod batch_finder;
mod buffers;
mod by_hand;
mod callbacks;
mod categories_only;
mod causes;
mod checkpoint_parts;
mod checkpoints;
mod cifar10;
#[cfg(feature = "all-formats")]
mod copied_checkpoints;
mod data_parallel_cli;
#[cfg(all(unix, feature = "mpi"))]
mod data_parallel_ranks;
mod debugging;
mod determinism;
mod devices_agree;
mod dropout;
mod early_stop;
mod ema;
mod ensembles;
mod feeds;
mod heads;
mod higgs_cli;
mod images_cli;
mod import_cli;
mod inspect_cli;
#[cfg(feature = "all-formats")]
#[path = "../../../crates/table/tests/it/remote/installed.rs"]
mod installed;
mod json_of_examples;
mod kept_standardisation;
mod kinks;
mod labels;
#[cfg(target_os = "linux")]
mod launch;
mod launch_mpijob;
#[cfg(all(target_os = "linux", feature = "mpi"))]
mod launch_ranks;
#[cfg(unix)]
mod launch_sbatch;
#[cfg(all(target_os = "linux", feature = "all-formats"))]
mod launch_slurm;
mod losses;
mod memory;
mod mixed_precision;
mod mixing;
mod model_runs;
mod parts;
mod place;
mod precision;
mod predictor;
#[cfg(feature = "all-formats")]
#[path = "../../../crates/table/tests/it/remote/rclone.rs"]
#[expect(dead_code, reason = "the tests of tables use the rest")]
mod rclone;
mod recipes;
mod refusals;
mod replicas;
mod schedule_free;
mod selective;
#[cfg(feature = "all-formats")]
#[path = "../../../crates/table/tests/it/remote/server.rs"]
#[expect(dead_code, reason = "the tests of tables use the rest")]
mod server;
#[cfg(feature = "all-formats")]
mod servers_cli;
mod settings;
mod several_labels;
mod shared_device_cli;
mod short_batches;
#[cfg(unix)]
mod signals_cli;
mod step_logs;
mod streamed_augmentation;
mod summary;
mod tabular;
mod tabular_categories;
mod tabular_cli;
mod tabular_importance;
mod tabular_numbers;
mod tabular_segments;
mod tabular_spellings;
mod tabular_splits;
mod tabular_values;
mod tabular_weights;
mod trainer;
mod unlabelled;
mod weightless;
mod within_epoch;
mod zero;
#[cfg(all(unix, feature = "mpi"))]
mod zero_ranks;
