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
///
/// In all of them, `set` says which rows: `train`, `valid`, `test`; `found` is the value found, and `expected` the one expected,
/// and what to do.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// The operating system refused the `action` on this file or folder.
    #[error("{path}: cannot {action}: {cause}")]
    Io { path: PathBuf, action: &'static str, cause: io::Error },
    /// A file cannot be written: its path is that of a folder, its folder does not exist, or the disk is full. An earlier file at
    /// this path is unchanged.
    #[error(transparent)]
    Write(#[from] brisk_atomic_file::WriteError),
    /// An object of a [store](crate::CheckpointStore) cannot be read.
    #[error("cannot read the copy of a run: {}", naming(object, &cause.to_string()))]
    Store { object: String, cause: Box<dyn std::error::Error + Send + Sync> },
    /// Another run is using the folder: `holder` is its process, as `process 4711 on host7`, if that is known.
    #[error(
        "{path}: {} is running in this folder; wait until it ends, or use another folder",
        holder.as_deref().unwrap_or("another process")
    )]
    RunInUse { path: PathBuf, holder: Option<String> },

    /// The value of a setting is not allowed, or does not suit the rows, the model or the other settings.
    #[error("{name}: found {found}, expected {expected}")]
    Setting { name: &'static str, found: String, expected: Cow<'static, str> },
    /// A file of settings is not TOML, or has a setting that does not exist or whose value is of another type. The `line` of the
    /// mistake, counted from 1, comes with its text; `None` if it is in no single one.
    #[error("settings{}: {reason}", line.as_ref().map_or(String::new(), |(number, text)| format!(", line {number} (`{text}`)")))]
    SettingsFile { line: Option<(usize, String)>, reason: String },

    /// The file or folder is of another kind, or a newer version of brisk wrote it.
    #[error("{path}: found {found}, expected {expected}")]
    WrongFile { path: PathBuf, found: String, expected: Cow<'static, str> },
    /// A damaged checkpoint, or one whose values contradict each other or the run. The path is `checkpoint` if it was not loaded
    /// from a file, and the length is `None` if it is not known.
    #[error(
        "{path}: not a valid checkpoint{}: {reason}; use an older checkpoint, or copy this one again",
        len_bytes.map_or(String::new(), |len_bytes| format!(" ({len_bytes} bytes)"))
    )]
    Damaged { path: PathBuf, len_bytes: Option<u64>, reason: String },
    /// A tensor or a string of a checkpoint is missing, or is not what was expected; or it cannot be added. The `checkpoint` is
    /// the path, or `checkpoint` if it was not loaded from a file; `kind` is `tensor` or `metadata`.
    #[error("{checkpoint}: {kind} `{name}` is {found}, expected {expected}")]
    CheckpointEntry { checkpoint: String, kind: &'static str, name: String, found: String, expected: Cow<'static, str> },
    /// The run that wrote the checkpoint differs from the one that resumes from it, in more than it is allowed to.
    #[error(
        "{checkpoint}: the run that wrote it differs from this one: {}; make them the same, {}or allow the difference ({}) by `Trainer::resume_anyway` or `Training::resume_with`",
        differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        if differences.iter().any(|found| found.what == ResumeDifference::SCHEDULE_LENGTH) { "keep the planned learning rates by `TrainerConfig::extend`, " } else { "" },
        mismatches(differences)
    )]
    ResumeMismatch { checkpoint: String, differences: Vec<ResumeDifference> },

    /// A value of a row, the first such row of the set, is refused: a label the task does not take, a feature that is not finite,
    /// an unknown code, a weight. The `name` of the column or the label is given if it is known.
    #[error("{set} rows: {} is {found}, expected {expected}", cell.in_row(*row, name.as_deref()))]
    Value { set: &'static str, row: usize, cell: Cell, name: Option<Box<str>>, found: String, expected: Cow<'static, str> },
    /// Rows have a different number of columns, labels or categorical columns than expected: `what` is `column`, `label` or
    /// `categorical column`.
    #[error("{set} rows: {} per row, expected {expected}; {way_out}", count(*found, what))]
    RowLayout { set: &'static str, what: &'static str, found: usize, expected: usize, way_out: Cow<'static, str> },
    /// The rows as a whole cannot be used: there are none, or too many, all of them are of one class or without weight, or their
    /// columns, labels, classes or categories have other [names](brisk_loader::RowSource::names) than those of the training rows.
    #[error("{set} rows: {found}, expected {expected}")]
    RowSet { set: &'static str, found: String, expected: Cow<'static, str> },
    /// Rows could not be read.
    #[error("{set} rows: {reason}")]
    Rows { set: &'static str, reason: String },
    /// A source failed while its rows were being streamed, in the chunk of these batches; they and the epoch are counted from 1.
    #[error(
        "{set} rows: batches {first_batch} to {last_batch} of epoch {epoch} could not be read: {reason}; the steps before them are complete"
    )]
    Stream { set: &'static str, epoch: usize, first_batch: usize, last_batch: usize, reason: String },

    /// The loss is no longer a number. The epoch, and the step within it, are counted from 1.
    #[error(
        "the loss of epoch {epoch}, step {step}, is {loss}, expected a finite number; earlier checkpoints are intact: lower the learning rate, clip gradients, look at the rows of that step, or find the operation with `TrainerConfig::detect_anomaly`"
    )]
    NonFiniteLoss { epoch: usize, step: usize, loss: f32 },
    /// A value is not finite, where a run [checks](crate::TrainerConfig::detect_anomaly) for that. The epoch, and the batch
    /// within it, are counted from 1; `index` is that of the operation among those that
    /// [`Graph::report`](brisk_nn::tensor::Graph::report) lists.
    #[error("epoch {epoch}, batch {batch}, operation {index}, `{operation}`: {pass}")]
    Anomaly { epoch: usize, batch: usize, operation: &'static str, index: usize, pass: brisk_nn::tensor::Pass },
    /// Too many steps in a row were skipped, however small the loss scale was; or all steps of an epoch or of a whole run, so
    /// that nothing was learnt. Epochs are counted from 1; no step was taken since `first_epoch`, which is `None` if steps were
    /// taken in the last one. The scale is that at the end, the loss that of the last batch.
    #[error(
        "{}, since their gradients are not finite; the loss scale is {scale:e}, the last loss is {loss}; earlier checkpoints are intact: lower the learning rate, look at the rows, or use bf16 or f32",
        match first_epoch {
            Some(first) => format!("no step was taken in {}: all {n_skipped} were skipped", epochs(*first, *last_epoch)),
            None => format!("the last {n_skipped} steps until the end of epoch {last_epoch} were skipped"),
        }
    )]
    SkippedSteps { first_epoch: Option<usize>, last_epoch: usize, n_skipped: u32, scale: f32, loss: f32 },
    /// A search for a learning rate ended, after `n_steps` steps, before it could suggest one, since the loss diverged or was not
    /// finite.
    #[error(
        "the search for a learning rate ended at step {n_steps}, at a rate of {rate:e}: the loss went from {first} to {last}, expected one that falls first; standardise the columns, or use smaller initial values"
    )]
    NoLearningRate { n_steps: usize, rate: f64, first: f32, last: f32 },
    /// The run was stopped before its first validation, so there is no result yet. It has finished more than 0 epochs if it does
    /// not [validate](crate::TrainerConfig::validate_every) after each; it can resume from `checkpoint`, if one was written.
    #[error("{}; {}", stopped_early(*n_epochs), written(checkpoint.as_deref()))]
    NoEpoch { n_epochs: usize, checkpoint: Option<PathBuf> },
    /// A run, or rows that must stay on the device, take more memory than is available at `place`, which is this machine, or a
    /// device whose memory is limited. If the host is short of it, `needed_bytes` is the sum over its `n_replicas` replicas. The
    /// `parts` of what one replica takes are empty if there is one part only.
    #[error(
        "{what} takes {} of memory{}, but {place} has {} available; {way_out}",
        bytes(*needed_bytes),
        memory_parts(*n_replicas, parts),
        bytes(*available_bytes)
    )]
    Memory {
        what: String,
        needed_bytes: usize,
        available_bytes: usize,
        place: String,
        n_replicas: usize,
        parts: Vec<(&'static str, usize)>,
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
