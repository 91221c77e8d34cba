//! The run: epochs of training steps, each followed by a validation.

use std::time::Instant;

use brisk_report::MetricsLog;

use super::snapshot::Snapshot;
use super::{Outputs, Training};
use crate::checkpoint::Checkpoint;
use crate::error::{Error, ResumeMismatch};
use crate::feed::OpenFeed;
use crate::fit_report::FitReport;
use crate::run_folder::RunFolder;
use crate::run_state::RunState;

/// A run in progress: its position, its results so far, and its outputs.
#[derive(Debug)]
pub(super) struct Fit<'f, 'v, 'o> {
    pub(super) run: RunState,
    pub(super) report: FitReport,
    pub(super) log: Option<MetricsLog>,
    pub(super) outputs: &'f mut Outputs<'o>,
    /// The validation rows.
    pub(super) valid: &'f mut OpenFeed<'v>,
    /// The moment of which checkpoints were last written.
    pub(super) snapshot: Snapshot,
    /// Batches that this call has trained on, in the epochs before the current one, and their rows.
    pub(super) n_batches: usize,
    pub(super) n_rows: usize,
    pub(super) since: Instant,
    pub(super) seconds_before: f64,
}

impl Training<'_> {
    /// Trains from the initial weights until the epochs are done, validation no longer improves, or a stop is requested; then
    /// restores the weights of the best epoch. A second call repeats the run.
    ///
    /// # Errors
    /// [`Error::NonFiniteLoss`] names the step, [`Error::SkippedSteps`] says that all of them are skipped. [`Error::NoEpoch`] if
    /// the run was stopped in its first epoch. [`Error::RunInUse`] if another run uses the folder, [`Error::Report`] if an
    /// earlier run has left its log there. [`Error::Write`] if a checkpoint cannot be written; the previous one is then intact.
    /// [`Error::Tensor`] if the device fails.
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
        let run = RunState {
            schedule_steps: self.total_steps(),
            ..RunState::new(self.early_stopping(), self.validation.plateau.clone())
        };
        self.fit_from(run, log, outputs)
    }

    /// Resumes from a checkpoint that a [`fit`](Self::fit) of the same rows and settings wrote, with the batch that follows it:
    /// the result is bit-identical to that of a run without interruption. The log in the run's folder, if there is one, is
    /// continued.
    ///
    /// The parameters of the trainable have the result, on the device. The standardisation of a [`Model`](crate::Model) with
    /// these parameters is not changed: use [`Trainer::resume`](crate::Trainer::resume), which leaves all of it in the model.
    ///
    /// What decides the results is compared as it was recorded: model, loss, optimizer, augmentation and evaluation,
    /// standardisation, rows and their names, and the settings of the run; of learning rates that are a function, those of 65
    /// steps. The number of replicas, the device, early stopping, how often checkpoints are written, and how rows reach the
    /// device may differ; so may the number of epochs, unless the learning rates depend on it: then
    /// [`extend`](crate::TrainerConfig::extend) keeps those that were planned. A run that had ended ends again, with the same
    /// result, unless more epochs or more patience let it continue.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); [`Error::ResumeMismatch`] lists what differs from the run that wrote the checkpoint.
    /// [`Error::CheckpointEntry`], [`Error::CheckpointEntry`] if it is that of another model or optimizer, [`Error::Damaged`] if
    /// its values cannot be right, [`Error::Report`] if the folder is that of another run. A refused checkpoint changes nothing
    /// in the folder.
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

impl Fit<'_, '_, '_> {
    /// Seconds of the run so far, including those before it was resumed.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds_before + self.since.elapsed().as_secs_f64()
    }
}

fn write_config(folder: &RunFolder, outputs: &Outputs) -> Result<(), Error> {
    outputs.config.as_ref().map_or(Ok(()), |config| folder.write_config(config))
}
