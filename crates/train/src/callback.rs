use std::ops::ControlFlow;
use std::path::Path;

use brisk_nn::Parameters;
use brisk_nn::tensor::program::Device;
use brisk_report::{BatchWait, EpochMetrics};

use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::fit_report::FitReport;
use crate::warning::Warning;

/// Is notified of the progress of a run, and can end it: loggers, averages of parameters, plots. Each method has a default that
/// does nothing.
///
/// Steps are submitted to the device many at a time, so [`on_batches_end`](Self::on_batches_end) is called for groups of batches,
/// about every quarter of a second and before each checkpoint and validation, and receives their losses when the device has
/// finished them. A callback that acts at certain steps asks for them with [`every_n_steps`](Self::every_n_steps). With replicas,
/// each has its own callbacks; [`RunView::is_first`] is for those that write files. A callback that ends the run must do so on
/// every replica.
///
/// # Errors
/// An error that a method returns ends the run, which returns it. That of [`on_load_checkpoint`](Self::on_load_checkpoint)
/// refuses the checkpoint.
/// # Examples
/// Stops when the losses of training and validation are too far apart:
/// ```
/// use std::ops::ControlFlow;
///
/// use brisk_train::{Callback, Error, RunView, ValidationEnd};
///
/// struct Overfitting;
///
/// impl Callback for Overfitting {
///     fn on_validation_end(&mut self, _: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
///         let [train, valid] = ["train_loss", "valid_loss"].map(|name| validation.metrics.get(name).unwrap_or(0.0));
///         Ok(if valid > 2.0 * train { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
///     }
/// }
/// ```
#[expect(unused_variables, reason = "defaults do nothing")]
pub trait Callback {
    /// The run starts, or resumes.
    fn on_fit_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Something is allowed but hardly ever intended: before the first epoch, also of a run that resumes, or within the run.
    fn on_warning(&mut self, warning: &Warning) {}

    /// An epoch starts, or is resumed within.
    fn on_epoch_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// A group of batches has been trained on. All batches that a checkpoint covers are reported before it is written, and all
    /// batches that the device has finished before the run ends, also if a stop was requested or an error ends it.
    fn on_batches_end(&mut self, run: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// How many steps of the optimizer lie between two calls of [`on_step_end`](Self::on_step_end); 0, the default, for no calls.
    /// It must not change during a run.
    ///
    /// # Cost
    /// The host waits for the device after each of these steps.
    fn every_n_steps(&self) -> usize {
        0
    }

    /// A step of the run has been taken, whose number is a multiple of [`every_n_steps`](Self::every_n_steps). The device has
    /// taken no further step, so that `run.params` has the parameters after this step and its gradients. Its batches have been
    /// reported to [`on_batches_end`](Self::on_batches_end).
    ///
    /// # Examples
    /// Notes the norm of the gradients at every 100th step:
    /// ```
    /// use brisk_nn::tensor::program::Device;
    /// use brisk_train::{Callback, Error, RunView, StepEnd, Trainer};
    ///
    /// #[derive(Default)]
    /// struct GradNorms(Vec<(usize, f32)>);
    ///
    /// impl Callback for GradNorms {
    ///     fn every_n_steps(&self) -> usize {
    ///         100
    ///     }
    ///     fn on_step_end(&mut self, _: &RunView<'_>, step: &StepEnd) -> Result<(), Error> {
    ///         self.0.extend(step.grad_norm.map(|norm| (step.step, norm)));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let trainer = Trainer::new(&Device::cpu()?)
    ///     .configure(|config| config.record_grad_norms = true)
    ///     .callback(GradNorms::default());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn on_step_end(&mut self, run: &RunView<'_>, step: &StepEnd) -> Result<(), Error> {
        Ok(())
    }

    /// The model has been validated, at the end of an epoch or [within it](crate::TrainerConfig::validate_within_epoch).
    /// [`ControlFlow::Break`] ends the run here.
    fn on_validation_end(&mut self, run: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        Ok(ControlFlow::Continue(()))
    }

    /// A checkpoint is on disk. It is written while training continues, so that `run` has the epoch and the steps of the
    /// checkpoint, but the device may have the parameters of a later step. With replicas, which write together, training waits
    /// for the file.
    fn on_checkpoint(&mut self, run: &RunView<'_>, path: &Path) -> Result<(), Error> {
        Ok(())
    }

    /// The run ends with an error, after which nothing else is called.
    fn on_exception(&mut self, run: &RunView<'_>, error: &Error) {}

    /// Whether this callback needs the outputs of the best model if that was validated before the run was resumed.
    fn needs_best_outputs(&self) -> bool {
        false
    }

    /// The outputs of the best model for the validation rows, and the labels of these rows, shaped as in [`ValidationEnd`]. They
    /// are computed again before [`on_fit_end`](Self::on_fit_end), if the model was validated before the run was resumed and a
    /// callback [needs](Self::needs_best_outputs) them.
    fn on_best_outputs(&mut self, run: &RunView<'_>, outputs: &[f32], labels: &[f32]) -> Result<(), Error> {
        Ok(())
    }

    /// The run has ended, and the device has the parameters of the best model.
    fn on_fit_end(&mut self, run: &RunView<'_>, report: &FitReport) -> Result<(), Error> {
        Ok(())
    }

    /// A checkpoint to resume from is about to be written: add the state of this callback here, under names of its own.
    fn on_save_checkpoint(&self, checkpoint: &mut Checkpoint) -> Result<(), Error> {
        Ok(())
    }

    /// The run resumes from a checkpoint, before [`on_fit_start`](Self::on_fit_start).
    fn on_load_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        Ok(())
    }
}

/// A run, as callbacks see it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RunView<'r> {
    /// The epoch, from 1; 0 before the first.
    pub epoch: usize,
    /// Steps of the optimizer before the current epoch, skipped ones included.
    pub n_steps: usize,
    /// Batches of an epoch.
    pub n_batches: usize,
    /// Rows of an epoch.
    pub n_rows: usize,
    /// The epochs that the run has at most.
    pub max_epochs: usize,
    /// The device, which has the parameters.
    pub device: &'r Device,
    /// The parameters, whose values may be read from the device and written to it.
    pub params: &'r Parameters,
    /// Whether this is the only replica or the first of several.
    pub is_first: bool,
}

impl RunView<'_> {
    /// The first batch of the epoch, counted over the whole run from 0.
    pub fn first_batch(&self) -> u64 {
        self.epoch.saturating_sub(1) as u64 * self.n_batches as u64
    }
}

/// Batches that have been trained on.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct BatchesEnd<'r> {
    /// The first of them within the epoch, from 0.
    pub first_batch: usize,
    /// The loss of each: the mean over its rows, by their weights; NaN for a batch whose weights are all 0.
    pub losses: &'r [f32],
    /// The learning rate of each.
    pub learning_rates: &'r [f32],
    /// The norm of the gradients of each, before clipping, if the run [records](crate::TrainerConfig::record_grad_norms) it; else
    /// empty. With several batches per step, only those of the last batch of a step are norms of what the optimizer receives.
    pub grad_norms: &'r [f32],
    /// How long replicas waited for the last one in each; empty for a single replica, or if the communication library does not
    /// measure it, and `None` for batches that were profiled together. Only the exchanges of a batch itself count, not those of a
    /// validation or a checkpoint after it, which [`FitReport::waited`] includes.
    pub waits: &'r [Option<BatchWait>],
    /// How many rows they have together.
    pub n_rows: usize,
}

/// A step of the optimizer that has been taken.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct StepEnd {
    /// Its number in the run, from 1. Skipped steps count.
    pub step: usize,
    /// Its last batch within the epoch, from 1.
    pub batch: usize,
    /// The loss of that batch.
    pub loss: f32,
    /// The learning rate of the step.
    pub learning_rate: f32,
    /// The norm of all gradients as the optimizer receives them, but before clipping, if the run
    /// [records](crate::TrainerConfig::record_grad_norms) it.
    pub grad_norm: Option<f32>,
}

/// A validation.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ValidationEnd<'r> {
    /// The losses and metrics.
    pub metrics: &'r EpochMetrics,
    /// What the model returned for each validation row: `[n_rows, n_outputs]`, row-major.
    pub outputs: &'r [f32],
    /// The labels of these rows: `[n_rows, n_labels]`, row-major.
    pub labels: &'r [f32],
    /// Whether the model is the best so far, by the watched metric.
    pub is_best: bool,
    /// Whether this is a validation within an epoch, not at its end or at the end of the run.
    pub is_within_epoch: bool,
    /// Whether a limit on steps or time ends the run here, within an epoch. A run that resumes without the limit does not have
    /// this validation.
    pub is_at_limit: bool,
}
