#![doc = include_str!("../README.md")]

mod batch_finder;
mod callback;
mod checkpoint;
mod checkpoint_store;
mod data_parallel;
mod early_stopping;
mod error;
mod feed;
mod fit_report;
mod flat;
mod gradient_clip;
#[cfg(any(doc, doctest))]
pub mod guide;
mod host_memory;
mod likely_metric;
mod loaded_part;
mod lr_finder;
mod memory_check;
mod model;
mod moments;
mod predictor;
mod progress;
mod reduce_lr_on_plateau;
mod report_file;
mod row_digest;
mod rows;
mod run_folder;
mod run_state;
mod scorer;
mod selective;
mod settings;
mod standardisation;
mod step;
mod step_log;
mod stop_flag;
mod summary;
mod survey;
mod swa;
mod task;
mod tensorboard;
mod trainable;
mod trainer;
mod trainer_config;
mod training;
mod warning;

pub use brisk_atomic_file::WriteError;
pub use brisk_metrics as metrics;
pub use brisk_nn::tensor::Precision;
pub use brisk_replicate::{BucketSizes, Collective, ReduceOp, ThreadsConfig, Wire, ZeroStage};
pub use brisk_report as report;
pub use brisk_report::{BatchWait, EpochMetrics, MetricsLog, StepLog};
pub use callback::{BatchesEnd, Callback, RunView, StepEnd, ValidationEnd};
pub use checkpoint::{Checkpoint, SharedSlice, TensorData};
pub use checkpoint_store::{CheckpointStore, StoreError};
pub use data_parallel::{
    BatchStatistics, CheckpointFiles, DataParallel, DataParallelConfig, Overlap, StateMemory, UnevenInputs, Waited, run_threads,
};
pub use early_stopping::{EarlyStopping, EarlyStoppingState, StopReason};
pub use error::{Cell, Error, ResumeDifference, ResumeMismatch};
pub use feed::{
    BatchRange, BatchTensors, CountFrom, Feed, FeedChoice, FeedConfig, FeedProbe, FeedReason, OpenFeed, PartnerLabels,
    ResidentRows,
};
pub use fit_report::{Ended, FitReport};
pub use gradient_clip::GradientClip;
pub use loaded_part::{LoadedPart, MismatchedTensor};
pub use lr_finder::LearningRates;
pub use model::{Model, Scores};
pub use predictor::{Predictor, PredictorInputs};
pub use progress::Progress;
pub use reduce_lr_on_plateau::{PlateauState, ReduceLrOnPlateau, ThresholdMode};
pub use report_file::{ReportFile, ReportPanels};
pub use row_digest::RowDigest;
pub use rows::{FeedElement, FeedRows, check_encoding};
pub use run_folder::{Fetched, FoundCheckpoint, RunFolder};
pub use scorer::Scorer;
pub use selective::{Selective, least_confident};
pub use standardisation::Standardisation;
pub use step::{EpochLoss, Step, StepBuilder};
pub use stop_flag::{StopFlag, StopSignal};
pub use summary::{LayerSummary, Summary};
pub use swa::Swa;
pub use task::{Binary, Classification, Head, Heads, LabelledRows, Labels, MultiLabel, Regression, Task};
pub use tensorboard::TensorBoard;
pub use trainable::Trainable;
pub use trainer::Trainer;
pub use trainer_config::{Limit, RunSettings, TrainerConfig, ValidationInterval};
pub use training::{Outputs, Training};
pub use warning::Warning;
