mod conversions;
pub(crate) mod phrases;

use std::io;
use std::path::PathBuf;

use brisk_atomic_file::listed;

use crate::data_parallel::StateMemory;
use crate::memory_check::{bytes, refusal};
use crate::resume::{ResumeDifference, ResumeMismatch};

use phrases::{count, did_you_mean, epochs, feature_of, label_of, mismatches, way_out_of_label_count, written};

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
    /// A file cannot be written: its path is that of a folder, its folder does not exist, or the disk is full. An earlier file at this path is unchanged.
    #[error(transparent)]
    Write(#[from] brisk_atomic_file::WriteError),
    /// The name of a run cannot be the name of a folder.
    #[error("run name {found:?}: expected letters, digits, `.`, `-` and `_`, and no `.` in front; the folder is named after it")]
    RunName {
        /// The name.
        found: String,
    },
    /// The path is not that of a run.
    #[error("{path}: expected the folder of a run, with `config.json` in it")]
    NotARun {
        /// The path.
        path: PathBuf,
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

    /// The number of values of a tensor does not match its shape.
    #[error("tensor `{tensor}`: {found} values for shape {shape:?}, which has {expected}")]
    ValueCount {
        /// The tensor's name.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// How many values the shape requires.
        expected: usize,
        /// How many there were.
        found: usize,
    },
    /// Two tensors of one checkpoint have the same name.
    #[error("tensor `{tensor}` is in the checkpoint already; give every tensor a name of its own")]
    DuplicateTensor {
        /// The name.
        tensor: String,
    },
    /// A tensor cannot have the name that the format keeps for its metadata.
    #[error("tensor `__metadata__`: safetensors files keep this name for their metadata; take another")]
    ReservedName,
    /// A damaged checkpoint.
    #[error("{path}: not a valid checkpoint ({len_bytes} bytes): {reason}; use an older checkpoint, or copy this one again")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// How long it is.
        len_bytes: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is of another kind.
    #[error("{path}: expected the safetensors file of a model, as `Model::save` and runs write, found {found}")]
    NotACheckpoint {
        /// Which file.
        path: PathBuf,
        /// What it is, and what to do.
        found: &'static str,
    },
    /// The file was written by a newer version of brisk.
    #[error(
        "{path}: written by a newer brisk: its format version is {found}, this program reads up to {known}; update the program"
    )]
    NewerFormat {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest that this program reads.
        known: u32,
    },
    /// The checkpoint's values contradict each other or the run.
    #[error("{checkpoint}: {reason}; the checkpoint is damaged, use an older one")]
    Inconsistent {
        /// Which file; `checkpoint` if it was not loaded from a file.
        checkpoint: String,
        /// What is wrong with it.
        reason: String,
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
    /// The text names no [`ResumeMismatch`](crate::ResumeMismatch).
    #[error("found {found:?}, expected {}", ResumeMismatch::ALL.map(ResumeMismatch::name).join(", "))]
    ResumeMismatchName {
        /// The text.
        found: String,
    },
    /// A tensor of the file has a type that checkpoints do not hold.
    #[error(
        "{path}: tensor `{tensor}` is {found} {shape:?}, with a type or values that brisk cannot convert to f32 or i64; save it as F32"
    )]
    ForeignDType {
        /// Which file.
        path: PathBuf,
        /// Which tensor of it.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
        /// Its type, as safetensors names it.
        found: String,
    },
    /// Weights of convolutions in a file of another program, which may have brisk's layout or PyTorch's.
    #[error(
        "{checkpoint}: tensor `{tensor}` {shape:?} is a weight in a file of another program; load it with `Model::load_pytorch` if it is [out, in, height, width], as PyTorch's are"
    )]
    UnknownLayout {
        /// Which file.
        checkpoint: String,
        /// The first such tensor.
        tensor: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// The checkpoint lacks a tensor.
    #[error(
        "{checkpoint}: no tensor `{tensor}`, expected {expected} {shape:?}; it has {}: was it written for another model or optimizer?",
        listed(found)
    )]
    MissingTensor {
        /// Which file; `checkpoint` if it was not loaded from a file.
        checkpoint: String,
        /// The tensor.
        tensor: String,
        /// Its type.
        expected: &'static str,
        /// Its shape.
        shape: Vec<usize>,
        /// The names that the checkpoint has.
        found: Vec<String>,
    },
    /// A tensor of the checkpoint has another type or shape.
    #[error(
        "{checkpoint}: tensor `{tensor}` is {found} {found_shape:?}, expected {expected} {shape:?}; was it written for another model?"
    )]
    TensorMismatch {
        /// Which file; `checkpoint` if it was not loaded from a file.
        checkpoint: String,
        /// The tensor.
        tensor: String,
        /// The type that was requested.
        expected: &'static str,
        /// The shape that was requested.
        shape: Box<[usize]>,
        /// The type that it has.
        found: &'static str,
        /// The shape that it has.
        found_shape: Box<[usize]>,
    },
    /// The checkpoint's metadata lacks an entry, or has one that does not parse.
    #[error("{checkpoint}: metadata `{key}` is {}, expected {expected}", found.as_ref().map_or("missing".into(), |found| format!("{found:?}")))]
    Metadata {
        /// Which file; `checkpoint` if it was not loaded from a file.
        checkpoint: String,
        /// The entry's name.
        key: String,
        /// Its value, if it is there.
        found: Option<String>,
        /// What its value should be.
        expected: &'static str,
    },
    /// The text is not that of an [`EarlyStoppingState`](crate::EarlyStoppingState).
    #[error("early stopping state {found:?}: expected `wait_count=N best=X stopped=REASON`, as its `Display` writes it")]
    EarlyStoppingState {
        /// The text.
        found: String,
    },
    /// An error of a metric.
    #[error(transparent)]
    Metric(#[from] brisk_metrics::Error),
    /// The watched metric was never a number, so that no model is the best.
    #[error(
        "metric `{metric}`: NaN in each validation ({n_checks}), expected a number; watch another metric by `EarlyStopping::on`"
    )]
    NeverANumber {
        /// The metric, such as `valid_r2`.
        metric: String,
        /// How many validations there were.
        n_checks: usize,
    },
    /// The rows held out for validation have one class only, so that their AUC does not exist.
    #[error("valid rows: {n_rows} of {} rows held out for validation; {cause}; or hold out more of them", n_rows + n_train_rows)]
    HeldOutOneClass {
        /// How many rows were held out.
        n_rows: usize,
        /// How many rows there are to train on.
        n_train_rows: usize,
        /// The class that those held out have.
        cause: brisk_metrics::Error,
    },
    /// A file of settings is not TOML, or has a setting that does not exist or whose value is of another type.
    #[error("settings{}: {reason}", line.as_ref().map_or(String::new(), |(number, text)| format!(", line {number} (`{text}`)")))]
    SettingsFile {
        /// The line, counted from 1, and its text, if the mistake is in one.
        line: Option<(usize, String)>,
        /// What is wrong, and what was expected.
        reason: String,
    },
    /// The value of a setting is not allowed.
    #[error("{name}: found {found}, expected {expected}")]
    Setting {
        /// The setting's name.
        name: &'static str,
        /// Its value.
        found: String,
        /// What values are allowed.
        expected: &'static str,
    },
    /// A label is not the number of a class.
    #[error("{set} rows: {} is {found}, expected the number of a class, 0 to {}; give the task more classes, number the labels from 0 as `import --first-label` does, or use `Regression` for labels that are not classes", label_of(*row, *label, name.as_deref()), n_classes.saturating_sub(1))]
    ClassLabel {
        /// Which rows.
        set: &'static str,
        /// Which of them.
        row: usize,
        /// Which label of the row, from 0, where it has several.
        label: Option<usize>,
        /// The label's name, if it is known.
        name: Option<String>,
        /// The label.
        found: f32,
        /// How many classes the task has.
        n_classes: usize,
    },
    /// A label is NaN or infinite.
    #[error(
        "{set} rows: {} is {found}, expected a finite number; drop such rows, or choose another label column",
        label_of(*row, *label, name.as_deref())
    )]
    NonFiniteLabel {
        /// Which rows.
        set: &'static str,
        /// Which of them.
        row: usize,
        /// Which label of the row, from 0, where it has several.
        label: Option<usize>,
        /// The label's name, if it is known.
        name: Option<String>,
        /// The label.
        found: f32,
    },
    /// The metric that a run should watch is not one of its task.
    #[error("metric `{found}`: the run does not have it; {}it has {}", did_you_mean(found, known), known.join(", "))]
    UnknownMetric {
        /// The name.
        found: String,
        /// The names of those it has.
        known: Vec<String>,
    },
    /// No rows were held out for validation.
    #[error(
        "valid rows: none of {n_train_rows} rows were held out for validation, expected some of each class; use more rows, or hold out more of them"
    )]
    NothingHeldOut {
        /// How many rows there are to train on.
        n_train_rows: usize,
    },

    /// A set has no rows, neither columns nor categories, or more rows than can be numbered.
    #[error("{set} rows: {n_rows} rows of {n_cols} columns, expected at least one of each and fewer than 2^32 - 1 rows")]
    EmptySet {
        /// Which rows: `train`, `valid`, `test`.
        set: &'static str,
        /// How many there are.
        n_rows: usize,
        /// Of how many columns.
        n_cols: usize,
    },
    /// Devices do not compute this order.
    #[error(
        "rows that stay on the device cannot be taken in the order `{order}`; take them in order or shuffled, or stream them"
    )]
    ResidentOrder {
        /// The order.
        order: String,
    },
    /// Two sets of rows have different numbers of columns.
    #[error("{set} rows have {found} columns, expected {expected}, as many as the training rows")]
    ColumnCount {
        /// Which rows.
        set: &'static str,
        /// How many columns they have.
        found: usize,
        /// How many the training rows have.
        expected: usize,
    },
    /// A model takes a different number of columns than the rows have.
    #[error(
        "the model takes {expected} columns, the {set} rows have {found}; build the model for {found} columns, or choose as many columns of the rows as it takes"
    )]
    ModelColumns {
        /// Which rows.
        set: &'static str,
        /// How many columns they have.
        found: usize,
        /// How many the model takes.
        expected: usize,
    },
    /// Rows have a different number of labels than the task takes.
    #[error("{set} rows: {} per row, the task takes {expected}; {}", count(*found, "label"), way_out_of_label_count(*found, *expected))]
    LabelCount {
        /// Which rows.
        set: &'static str,
        /// How many labels a row has.
        found: usize,
        /// How many the task takes.
        expected: usize,
    },
    /// A label is not one of two classes.
    #[error(
        "{set} rows: {} is {found}, expected 0 or 1; choose another label column, or convert the labels to 0 and 1",
        label_of(*row, *label, name.as_deref())
    )]
    BinaryLabel {
        /// Which rows.
        set: &'static str,
        /// The first such row.
        row: usize,
        /// Which label of the row, from 0, where it has several.
        label: Option<usize>,
        /// The label's name, if it is known.
        name: Option<String>,
        /// The label.
        found: f32,
    },
    /// A feature is NaN or infinite.
    #[error(
        "{set} rows: {} is {found}, expected a finite number; replace missing values, or drop such rows",
        feature_of(*row, *column, name.as_deref())
    )]
    NonFinite {
        /// Which rows.
        set: &'static str,
        /// The first such row.
        row: usize,
        /// Its first such column, from 0.
        column: usize,
        /// The column's name, if it is known.
        name: Option<String>,
        /// The value.
        found: f32,
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
    /// Rows have a different number of categorical columns than the model takes.
    #[error(
        "{set} rows have {found} categorical columns, expected {expected}, as many as the model takes; give the model an embedding for each, or leave the columns out"
    )]
    CategoryCount {
        /// Which rows.
        set: &'static str,
        /// How many they have.
        found: usize,
        /// How many the model takes.
        expected: usize,
    },
    /// A code that the model has no entry for.
    #[error(
        "{set} rows: row {row} has code {found} in categorical column {column}, expected one below {n_codes}, the number of codes of the model; give the model more, or replace the code by 0, which stands for unknown"
    )]
    CategoryCode {
        /// Which rows.
        set: &'static str,
        /// The first such row.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// The code.
        found: u32,
        /// How many the model has.
        n_codes: usize,
    },
    /// A row's weight is negative or not finite.
    #[error("{set} rows: the weight of row {row} is {found}, expected a finite number, 0 or more")]
    RowWeight {
        /// Which rows.
        set: &'static str,
        /// The first such row.
        row: usize,
        /// Its weight.
        found: f32,
    },
    /// A row's weight is so large that the weights of a batch may add up to infinity.
    #[error(
        "{set} rows: the weight of row {row} is {found:e}, expected at most {largest:e} in batches of {batch_rows} rows, whose weights are summed; scale the weights down"
    )]
    BatchWeight {
        /// Which rows.
        set: &'static str,
        /// The first such row.
        row: usize,
        /// Its weight.
        found: f32,
        /// Rows of a batch.
        batch_rows: usize,
        /// The largest weight for which sums are finite.
        largest: f32,
    },
    /// All weights are 0.
    #[error("{set} rows: all {n_rows} weights are 0, expected some above 0; leave the weights out, or set some")]
    NoWeight {
        /// Which rows.
        set: &'static str,
        /// How many there are.
        n_rows: usize,
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
    /// Too many steps in a row were skipped, however small the loss scale was.
    #[error(
        "the last {n_skipped} steps until the end of epoch {epoch} were skipped: their gradients are not finite, though the loss scale is down to {scale:e}; the last loss is {loss}; earlier checkpoints are intact: lower the learning rate, look at the rows of that epoch, or use bf16 or f32"
    )]
    SkippedSteps {
        /// The epoch, from 1.
        epoch: usize,
        /// How many in a row.
        n_skipped: u32,
        /// The loss scale then.
        scale: f32,
        /// The loss of the last batch.
        loss: f32,
    },
    /// All steps of an epoch, or of a whole run, were skipped, and nothing was learnt.
    #[error(
        "no step was taken in {}: all {n_skipped} were skipped, since their gradients are not finite; the loss scale is {scale:e}, the last loss is {loss}; earlier checkpoints are intact: lower the learning rate, look at the rows, or use bf16 or f32",
        epochs(*first_epoch, *last_epoch)
    )]
    NoStepTaken {
        /// The first epoch without a step, from 1.
        first_epoch: usize,
        /// The last one.
        last_epoch: usize,
        /// How many steps were skipped in them.
        n_skipped: u32,
        /// The loss scale at their end.
        scale: f32,
        /// The loss of the last batch.
        loss: f32,
    },
    /// No batch of a run has a row with weight, so that all of its steps were skipped.
    #[error(
        "no step was taken in {}: the weights of all rows of its {} are 0; train on more batches, or give some of these rows a weight",
        epochs(1, *last_epoch),
        count(*n_steps, "step")
    )]
    NoWeightedStep {
        /// The last epoch, from 1.
        last_epoch: usize,
        /// How many steps there were.
        n_steps: usize,
    },
    /// The run takes more memory than is available.
    #[error("{}", refusal(*needed_bytes, *available_bytes, place, *n_replicas, memory, *copies, largest))]
    Memory {
        /// What the run takes; the sum over all replicas on this host, if the host is short of memory.
        needed_bytes: usize,
        /// What is available.
        available_bytes: usize,
        /// Where: this machine, or a device whose memory is limited.
        place: String,
        /// How many replicas need it together.
        n_replicas: usize,
        /// What one replica takes on its device.
        memory: StateMemory,
        /// Bytes of parameters that the host of a replica keeps in addition.
        copies: usize,
        /// The largest parameter and its shape.
        largest: Box<(String, Vec<usize>)>,
    },
    /// Rows that must stay on the device take more memory than is available.
    #[error("{set} rows take {}, but this machine has {} of memory available; use fewer rows, or stream them", bytes(*needed_bytes), bytes(*available_bytes))]
    RowMemory {
        /// Which rows.
        set: &'static str,
        /// What they take.
        needed_bytes: usize,
        /// What is available.
        available_bytes: usize,
    },
    /// The run was stopped in its first epoch, so there is no result yet.
    #[error("stopped before the end of the first epoch; {}", written(checkpoint.as_deref()))]
    NoEpoch {
        /// The checkpoint from which the run can resume, if one was written.
        checkpoint: Option<PathBuf>,
    },
    /// A batch that leaves replicas without rows.
    #[error(
        "a batch has {batch_rows} rows for {world_size} replicas, expected at least one for each; use larger batches or fewer replicas"
    )]
    BatchPerReplica {
        /// Rows of a batch, of all replicas together.
        batch_rows: usize,
        /// How many replicas there are.
        world_size: usize,
    },
    /// A replica without batches cannot join the others, which do not count the replicas that have a batch.
    #[error(
        "this run does not support different numbers of batches on replicas; set what is done with them (`uneven`), and normalise batches by each replica's own statistics"
    )]
    CannotJoin,
    /// A search for a learning rate ended before it could suggest one.
    #[error(transparent)]
    NoLearningRate(#[from] crate::lr_finder::NoLearningRate),
    /// An error of a log, an event file or a report.
    #[error(transparent)]
    Report(#[from] brisk_report::Error),
    /// An error of replicas.
    #[error(transparent)]
    Replica(#[from] brisk_replicate::Error),
    /// An error of tensors, programs or devices.
    #[error(transparent)]
    Tensor(brisk_nn::Error),
    /// A signal cannot be handled, usually because other code of the process already handles it.
    #[error("cannot handle {signal}: {reason}; have the existing handler call `StopFlag::request` instead")]
    SignalHandler {
        /// Which signal.
        signal: String,
        /// Why not.
        reason: String,
    },
}
