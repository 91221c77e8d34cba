mod cell;
mod constructors;
mod conversions;
mod difference;
pub(crate) mod phrases;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use phrases::{bytes, count, epochs, memory_parts, mismatches, naming, stopped_early, written};

pub use cell::Cell;
pub use difference::{ResumeDifference, ResumeMismatch};

/// What can go wrong: where, what was found, what was expected, and what to do next.
///
/// Rows are counted from 0, as slices do.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{path}: cannot {action}: {cause}")]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The error of the system.
        cause: io::Error,
    },
    /// A file cannot be written: its path is that of a folder, its folder does not exist, or the disk is full. An earlier file at
    /// this path is unchanged.
    #[error(transparent)]
    Write(#[from] brisk_atomic_file::WriteError),
    /// An object of a [store](crate::CheckpointStore) cannot be read.
    #[error("cannot read the copy of a run: {}", naming(object, &cause.to_string()))]
    Store {
        /// The object.
        object: String,
        /// The error of the store.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another run is using the folder.
    #[error(
        "{path}: {} is running in this folder; wait until it ends, or use another folder",
        holder.as_deref().unwrap_or("another process")
    )]
    RunInUse {
        /// The folder.
        path: PathBuf,
        /// Which process, as `process 4711 on host7`, if that is known.
        holder: Option<String>,
    },

    /// The value of a setting is not allowed, or does not suit the rows, the model or the other settings.
    #[error("{name}: found {found}, expected {expected}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// Its value.
        found: String,
        /// What values are allowed, and what to do.
        expected: Cow<'static, str>,
    },
    /// A file of settings is not TOML, or has a setting that does not exist or whose value is of another type.
    #[error("settings{}: {reason}", line.as_ref().map_or(String::new(), |(number, text)| format!(", line {number} (`{text}`)")))]
    SettingsFile {
        /// The line, counted from 1, and its text, if the mistake is in one.
        line: Option<(usize, String)>,
        /// What is wrong, and what was expected.
        reason: String,
    },

    /// The file or folder is of another kind, or a newer version of brisk wrote it.
    #[error("{path}: found {found}, expected {expected}")]
    WrongFile {
        /// Which file or folder.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What it should be, and what to do.
        expected: Cow<'static, str>,
    },
    /// A damaged checkpoint, or one whose values contradict each other or the run.
    #[error(
        "{path}: not a valid checkpoint{}: {reason}; use an older checkpoint, or copy this one again",
        len_bytes.map_or(String::new(), |len_bytes| format!(" ({len_bytes} bytes)"))
    )]
    Damaged {
        /// Which file; `checkpoint` if it was not loaded from a file.
        path: PathBuf,
        /// How long the file is, if that is known.
        len_bytes: Option<u64>,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor or a string of a checkpoint is missing, or is not what was expected; or it cannot be added.
    #[error("{checkpoint}: {kind} `{name}` is {found}, expected {expected}")]
    CheckpointEntry {
        /// Which file; `checkpoint` if it was not loaded from a file.
        checkpoint: String,
        /// `tensor` or `metadata`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Its type and shape, or its value.
        found: String,
        /// What was expected, and what to do.
        expected: Cow<'static, str>,
    },
    /// The run that wrote the checkpoint differs from the one that resumes from it.
    #[error(
        "{checkpoint}: the run that wrote it differs from this one: {}; make them the same, {}or allow the difference ({}) by `Trainer::resume_anyway` or `Training::resume_with`",
        differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        if differences.iter().any(|found| found.what == ResumeDifference::SCHEDULE_LENGTH) { "keep the planned learning rates by `TrainerConfig::extend`, " } else { "" },
        mismatches(differences)
    )]
    ResumeMismatch {
        /// Which file; `checkpoint` if it was not loaded from a file.
        checkpoint: String,
        /// What differs and is not allowed to.
        differences: Vec<ResumeDifference>,
    },

    /// A value of a row is refused: a label the task does not take, a feature that is not finite, an unknown code, a weight.
    #[error("{set} rows: {} is {found}, expected {expected}", cell.in_row(*row, name.as_deref()))]
    Value {
        /// Which rows: `train`, `valid`, `test`.
        set: &'static str,
        /// The first such row.
        row: usize,
        /// Which value of the row.
        cell: Cell,
        /// The name of the column or the label, if it is known.
        name: Option<Box<str>>,
        /// The value.
        found: String,
        /// What values are allowed, and what to do.
        expected: Cow<'static, str>,
    },
    /// Rows have a different number of columns, labels or categorical columns than expected.
    #[error("{set} rows: {} per row, expected {expected}; {way_out}", count(*found, what))]
    RowLayout {
        /// Which rows.
        set: &'static str,
        /// `column`, `label` or `categorical column`.
        what: &'static str,
        /// How many of them a row has.
        found: usize,
        /// How many were expected.
        expected: usize,
        /// What to do.
        way_out: Cow<'static, str>,
    },
    /// The rows as a whole cannot be used: there are none, or too many, all of them are of one class or without weight, or their
    /// columns, labels, classes or categories have other [names](brisk_loader::RowSource::names) than those of the training rows.
    #[error("{set} rows: {found}, expected {expected}")]
    RowSet {
        /// Which rows.
        set: &'static str,
        /// What is wrong with them.
        found: String,
        /// What was expected, and what to do.
        expected: Cow<'static, str>,
    },
    /// Rows could not be read.
    #[error("{set} rows: {reason}")]
    Rows {
        /// Which rows.
        set: &'static str,
        /// The error of their source.
        reason: String,
    },
    /// A source failed while its rows were being streamed.
    #[error(
        "{set} rows: batches {first_batch} to {last_batch} of epoch {epoch} could not be read: {reason}; the steps before them are complete"
    )]
    Stream {
        /// Which rows.
        set: &'static str,
        /// The epoch, from 1.
        epoch: usize,
        /// The first batch, from 1, of the chunk that failed.
        first_batch: usize,
        /// Its last one.
        last_batch: usize,
        /// The error of the source.
        reason: String,
    },

    /// The loss is no longer a number.
    #[error(
        "the loss of epoch {epoch}, step {step}, is {loss}, expected a finite number; earlier checkpoints are intact: lower the learning rate, clip gradients, look at the rows of that step, or find the operation with `TrainerConfig::detect_anomaly`"
    )]
    NonFiniteLoss {
        /// The epoch, from 1.
        epoch: usize,
        /// The step within it, from 1.
        step: usize,
        /// The value of the loss.
        loss: f32,
    },
    /// A value is not finite, where a run [checks](crate::TrainerConfig::detect_anomaly) for that.
    #[error("epoch {epoch}, batch {batch}, operation {index}, `{operation}`: {pass}")]
    Anomaly {
        /// The epoch, from 1.
        epoch: usize,
        /// The batch within it, from 1.
        batch: usize,
        /// The operation.
        operation: &'static str,
        /// Its index among those that [`Graph::report`](brisk_nn::tensor::Graph::report) lists.
        index: usize,
        /// Where the operation has the value.
        pass: brisk_nn::tensor::Pass,
    },
    /// Too many steps in a row were skipped, however small the loss scale was; or all steps of an epoch or of a whole run, so
    /// that nothing was learnt.
    #[error(
        "{}, since their gradients are not finite; the loss scale is {scale:e}, the last loss is {loss}; earlier checkpoints are intact: lower the learning rate, look at the rows, or use bf16 or f32",
        match first_epoch {
            Some(first) => format!("no step was taken in {}: all {n_skipped} were skipped", epochs(*first, *last_epoch)),
            None => format!("the last {n_skipped} steps until the end of epoch {last_epoch} were skipped"),
        }
    )]
    SkippedSteps {
        /// The epoch, from 1, since which no step was taken; `None` if steps were taken in the last epoch.
        first_epoch: Option<usize>,
        /// The last epoch.
        last_epoch: usize,
        /// How many steps in a row were skipped.
        n_skipped: u32,
        /// The loss scale at their end.
        scale: f32,
        /// The loss of the last batch.
        loss: f32,
    },
    /// A search for a learning rate ended before it could suggest one, since the loss diverged or was not finite.
    #[error(
        "the search for a learning rate ended at step {n_steps}, at a rate of {rate:e}: the loss went from {first} to {last}, expected one that falls first; standardise the columns, or use smaller initial values"
    )]
    NoLearningRate {
        /// Steps before the search ended.
        n_steps: usize,
        /// The learning rate then.
        rate: f64,
        /// The first loss.
        first: f32,
        /// The loss at which the search ended.
        last: f32,
    },
    /// The run was stopped before its first validation, so there is no result yet.
    #[error("{}; {}", stopped_early(*n_epochs), written(checkpoint.as_deref()))]
    NoEpoch {
        /// The epochs that it has finished: above 0 if it does not [validate](crate::TrainerConfig::validate_every) after each.
        n_epochs: usize,
        /// The checkpoint from which the run can resume, if one was written.
        checkpoint: Option<PathBuf>,
    },
    /// A run, or rows that must stay on the device, take more memory than is available.
    #[error(
        "{what} takes {} of memory{}, but {place} has {} available; {way_out}",
        bytes(*needed_bytes),
        memory_parts(*n_replicas, parts),
        bytes(*available_bytes)
    )]
    Memory {
        /// What takes it, such as `training`.
        what: String,
        /// How much it takes; the sum over all replicas on this host, if the host is short of memory.
        needed_bytes: usize,
        /// What is available.
        available_bytes: usize,
        /// Where: this machine, or a device whose memory is limited.
        place: String,
        /// How many replicas need it together.
        n_replicas: usize,
        /// The parts of what one replica takes, such as `gradients`, with their bytes; empty if there is one part only.
        parts: Vec<(&'static str, usize)>,
        /// What to do.
        way_out: Box<str>,
    },

    /// An error of a metric.
    #[error(transparent)]
    Metric(#[from] brisk_metrics::Error),
    /// An error of a log, an event file or a report.
    #[error(transparent)]
    Report(#[from] brisk_report::Error),
    /// An error of replicas.
    #[error(transparent)]
    Replica(#[from] brisk_replicate::Error),
    /// An error of tensors, programs or devices.
    #[error(transparent)]
    Tensor(brisk_nn::Error),
}
