//! The run: epochs of training steps, each followed by a validation.

use brisk_nn::ScalerReport;
use brisk_nn::tensor::program::Profile;
use brisk_report::{EpochMetrics, MetricsLog};
use serde_json::Value;

use super::Training;
use crate::callback::Callback;
use crate::checkpoint::Checkpoint;
use crate::early_stopping::StopReason;
use crate::error::Error;
use crate::progress::Progress;
use crate::resume::ResumeMismatch;
use crate::run_folder::RunFolder;
use crate::run_state::RunState;
use crate::stop_flag::StopFlag;
use crate::warning::Warning;

/// The outputs of a run while it trains: what it shows and writes. The default shows and writes nothing.
#[derive(Default)]
pub struct Outputs<'a> {
    /// The progress bar on standard error.
    pub progress: Progress,
    /// Where checkpoints and the log are written; nowhere if `None`. The run holds the folder's [lock](RunFolder::lock).
    pub folder: Option<RunFolder>,
    /// The settings, for the folder's `config.json`: written once the run has started, or the checkpoint to resume from has been accepted.
    pub config: Option<Value>,
    /// Ends the run after its current steps.
    pub stop: StopFlag,
    /// Are notified of the run's progress.
    pub callbacks: Vec<Box<dyn Callback + 'a>>,
}

impl Outputs<'_> {
    pub(super) fn tell_warning(&mut self, warning: &Warning) {
        self.callbacks.iter_mut().for_each(|callback| callback.on_warning(warning));
    }
}

impl std::fmt::Debug for Outputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outputs")
            .field("folder", &self.folder)
            .field("n_callbacks", &self.callbacks.len())
            .finish_non_exhaustive()
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FitReport {
    /// Finished epochs, including their validations and the epochs before the run was resumed. A run that ends within an epoch has not finished it.
    pub n_epochs: usize,
    /// The epoch, from 1, whose weights are kept: those at its end, or at a validation within it.
    pub best_epoch: usize,
    /// The batch of that epoch, from 1, after which these weights were validated: the last one, if they are from the end of the epoch.
    pub best_batch: usize,
    /// The metric that decides which model is the best, such as `valid_auc`.
    pub watched: String,
    /// Its value for the best model.
    pub best_value: f64,
    /// The metrics of each epoch since the run was started or resumed, and of each [validation within](crate::TrainerConfig::validate_within_epoch) an epoch.
    pub history: Vec<EpochMetrics>,
    /// Why the run ended.
    pub ended: Ended,
    /// Seconds spent in training steps only.
    pub train_seconds: f64,
    /// Training rows per second, of the steps only.
    pub train_rows_per_s: f64,
    /// Warnings, in the order in which they were found.
    pub warnings: Vec<Warning>,
    /// Loss scale and skipped steps, if products are computed in f16.
    pub scaler: Option<ScalerReport>,
    /// The time of each kernel of the step, if [requested](crate::TrainerConfig::profile_batches).
    pub profile: Option<Profile>,
}

impl FitReport {
    /// The watched metric of each entry of the [history](Self::history).
    pub fn watched_values(&self) -> Vec<f64> {
        self.history.iter().map(|epoch| epoch.get(&self.watched).unwrap_or(f64::NAN)).collect()
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// All epochs are done.
    MaxEpochs,
    /// The [limit](crate::TrainerConfig::max_steps) on the number of steps is reached.
    MaxSteps,
    /// The [time limit](crate::TrainerConfig::max_time) is reached.
    MaxTime,
    /// A [`Callback`] ended it.
    Callback,
    /// Validation no longer improved.
    Early(StopReason),
    /// The [`StopFlag`] was set. If the run has a folder, `last.safetensors` is the checkpoint to resume from.
    Stopped,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MaxEpochs => f.write_str("after the last epoch"),
            Self::MaxSteps => f.write_str("after the last step"),
            Self::MaxTime => f.write_str("at the end of its time"),
            Self::Callback => f.write_str("by a callback"),
            Self::Early(reason) => write!(f, "early: {reason}"),
            Self::Stopped => f.write_str("stopped on request"),
        }
    }
}

impl Training<'_> {
    /// Trains from the initial weights until the epochs are done, validation no longer improves, or a stop is requested; then
    /// restores the weights of the best epoch. A second call repeats the run.
    ///
    /// # Errors
    /// [`Error::NonFiniteLoss`] names the step, [`Error::SkippedSteps`] says that all of them are skipped. [`Error::NoEpoch`] if the run was stopped in its first
    /// epoch. [`Error::RunInUse`] if another run uses the folder, [`Error::Report`] if an earlier run has left its log there. [`Error::Write`] if a checkpoint
    /// cannot be written; the previous one is then intact. [`Error::Tensor`] if the device fails.
    pub fn fit(&self, outputs: &mut Outputs) -> Result<FitReport, Error> {
        self.start_over()?;
        let log = match self.folder(outputs) {
            None => None,
            Some(folder) => {
                folder.lock()?;
                let log = MetricsLog::create(&folder.metrics_csv(), &folder.metrics_json())?;
                write_config(folder, outputs)?;
                Some(log)
            }
        };
        let run = RunState { schedule_steps: self.total_steps(), ..RunState::new(self.early_stopping()) };
        self.fit_from(run, log, outputs)
    }

    /// Resumes from a checkpoint that a [`fit`](Self::fit) of the same rows and settings wrote, with the batch that follows it: the result is bit-identical to
    /// that of a run without interruption. The log in the run's folder, if there is one, is continued.
    ///
    /// The parameters of the trainable have the result, on the device. The standardisation of a [`Model`](crate::Model) with these parameters is not changed: use
    /// [`Trainer::resume`](crate::Trainer::resume), which leaves all of it in the model.
    ///
    /// What decides the results is compared as it was recorded: model, loss, optimizer, augmentation and evaluation, standardisation, rows, and the settings of the run. The number of
    /// replicas, the device, early stopping, how often checkpoints are written, and how rows reach the device may differ; so may the number of epochs, unless the learning rates
    /// depend on it: then [`extend`](crate::TrainerConfig::extend) keeps those that were planned. A run that had ended ends again, with the same result, unless more epochs
    /// or more patience let it continue.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); [`Error::ResumeMismatch`] lists what differs from the run that wrote the checkpoint. [`Error::MissingTensor`],
    /// [`Error::TensorMismatch`], [`Error::Metadata`] if it is that of another model or optimizer, [`Error::Inconsistent`] if its values cannot be right,
    /// [`Error::Report`] if the folder is that of another run. A refused checkpoint changes nothing in the folder.
    pub fn resume(&self, checkpoint: &Checkpoint, outputs: &mut Outputs) -> Result<FitReport, Error> {
        self.resume_with(checkpoint, &[], outputs)
    }

    /// The same, allowing some differences, such as different rows to continue training on.
    ///
    /// If the batches of an epoch are no longer the same, a checkpoint from within an epoch resumes at the start of that epoch.
    ///
    /// # Errors
    /// As [`resume`](Self::resume), for differences that are not in `allowed`.
    pub fn resume_with(
        &self,
        checkpoint: &Checkpoint,
        allowed: &[ResumeMismatch],
        outputs: &mut Outputs,
    ) -> Result<FitReport, Error> {
        let folder = self.folder(outputs).cloned();
        folder.as_ref().map_or(Ok(()), RunFolder::lock)?;
        let run = self.accept(checkpoint, allowed)?;
        self.start_over()?;
        self.restore(checkpoint)?;
        outputs.callbacks.iter_mut().try_for_each(|callback| callback.on_load_checkpoint(checkpoint))?;
        let resumed = |folder: &RunFolder| MetricsLog::resume(&folder.metrics_csv(), &folder.metrics_json(), run.n_log_rows);
        let log = folder.as_ref().map(resumed).transpose()?;
        folder.map_or(Ok(()), |folder| write_config(&folder, outputs))?;
        self.fit_from(run, log, outputs)
    }
}

fn write_config(folder: &RunFolder, outputs: &Outputs) -> Result<(), Error> {
    outputs.config.as_ref().map_or(Ok(()), |config| folder.write_config(config))
}
