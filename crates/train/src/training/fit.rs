//! The run: epochs of training steps, each followed by a validation.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use brisk_nn::ScalerReport;
use serde_json::Value;

use super::Training;
use crate::feed::{Cursor, OpenFeed};
use crate::run_state::RunState;
use crate::scorer::Evaluation;
use crate::{
    Checkpoint, DataParallel, EarlyStopping, Error, MetricsLog, Progress, ResumeMismatch, RunFolder, StopFlag, StopReason,
    Warning,
};

/// What a run shows and writes while it trains. The default shows and writes nothing.
#[derive(Debug, Default)]
pub struct Outputs {
    /// The progress bar on standard error.
    pub progress: Progress,
    /// Where checkpoints and the log are written; nowhere if `None`. The run holds the folder's [lock](RunFolder::lock).
    pub folder: Option<RunFolder>,
    /// The settings, for the folder's `config.json`: written once the run has started, or the checkpoint to resume from has been accepted.
    pub config: Option<Value>,
    /// Ends the run after its current steps.
    pub stop: StopFlag,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FitReport {
    /// Finished epochs, validation included, and those before the run was resumed.
    pub n_epochs: usize,
    /// The epoch, from 1, whose weights are kept.
    pub best_epoch: usize,
    /// The metric that decides which epoch is the best, such as `valid_auc`.
    pub watched: String,
    /// Its value after the best epoch.
    pub best_value: f64,
    /// The metrics of each epoch since the run was started or resumed.
    pub history: Vec<EpochMetrics>,
    /// Why it ended.
    pub ended: Ended,
    /// Seconds spent in training steps only.
    pub train_seconds: f64,
    /// Training rows per second, of the steps only.
    pub train_rows_per_s: f64,
    /// What is allowed and hardly ever meant, in the order in which it was found.
    pub warnings: Vec<Warning>,
    /// Loss scale and skipped steps, if products are computed in f16.
    pub scaler: Option<ScalerReport>,
}

/// The metrics of an epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochMetrics {
    /// The epoch, from 1.
    pub epoch: usize,
    /// `train_loss`, `valid_loss`, and the metrics of the task, by name: `valid_auc`, ….
    pub values: Vec<(String, f64)>,
}

impl EpochMetrics {
    /// The mean loss of the training steps.
    pub fn train_loss(&self) -> f64 {
        self.get("train_loss").unwrap_or(f64::NAN)
    }

    /// The metric of this name, such as `valid_accuracy`.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(found, _)| found == name).map(|&(_, value)| value)
    }
}

impl FitReport {
    /// The watched metric after each epoch of the [history](Self::history).
    pub fn watched_values(&self) -> Vec<f64> {
        self.history.iter().map(|epoch| epoch.get(&self.watched).unwrap_or(f64::NAN)).collect()
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All epochs are done.
    MaxEpochs,
    /// Validation no longer improved.
    Early(StopReason),
    /// The [`StopFlag`] was set. If the run has a folder, `last.safetensors` is the checkpoint to resume from.
    Stopped,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MaxEpochs => f.write_str("after the last epoch"),
            Self::Early(reason) => write!(f, "early: {reason}"),
            Self::Stopped => f.write_str("stopped on request"),
        }
    }
}

/// The most steps that are submitted at a time, so that the bar moves and a request to stop is noticed.
const MAX_STEPS_AT_A_TIME: usize = 64;

/// About how long the steps that are submitted at a time may take, where a step takes long.
const TIME_OF_STEPS: Duration = Duration::from_millis(250);

impl Training<'_> {
    /// Trains from the initial weights until the epochs are done, validation no longer improves, or a stop is requested; then
    /// restores the weights of the best epoch. A second call repeats the run.
    ///
    /// # Errors
    /// [`Error::NonFiniteLoss`] names the step, [`Error::SkippedSteps`] says that all of them are skipped. [`Error::NoEpoch`] if the run was stopped in its first
    /// epoch. [`Error::RunInUse`] if another run uses the folder, [`Error::LogExists`] if an earlier run has left its log there. [`Error::Write`] if a checkpoint
    /// cannot be written; the previous one is then intact. [`Error::Tensor`] if the device fails.
    pub fn fit(&self, outputs: &mut Outputs) -> Result<FitReport, Error> {
        self.start_over()?;
        let log = match self.folder(outputs) {
            None => None,
            Some(folder) => {
                folder.lock()?;
                let log = MetricsLog::create(folder)?;
                write_config(folder, outputs)?;
                Some(log)
            }
        };
        self.fit_from(RunState::new(self.early_stopping()), log, outputs)
    }

    /// Resumes from a checkpoint that a [`fit`](Self::fit) of the same rows and settings wrote, with the batch that follows it: the result is bit-identical to
    /// that of a run without interruption. The log in the run's folder, if there is one, is continued.
    ///
    /// The number of epochs, early stopping, and how often checkpoints are written may differ. A run that had ended ends again, with the same result, unless more epochs
    /// or more patience let it continue.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); [`Error::ResumeMismatch`] lists what differs from the run that wrote the checkpoint. [`Error::MissingTensor`],
    /// [`Error::TensorMismatch`], [`Error::Metadata`] if it is that of another model or optimizer, [`Error::Inconsistent`] if its values cannot be right,
    /// [`Error::ShortLog`] if the folder is that of another run. A refused checkpoint changes nothing in the folder.
    pub fn resume(&self, checkpoint: &Checkpoint, outputs: &mut Outputs) -> Result<FitReport, Error> {
        self.resume_with(checkpoint, &[], outputs)
    }

    /// The same, allowing some differences, such as other rows to continue the training on.
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
        let folder = self.folder(outputs);
        folder.map_or(Ok(()), RunFolder::lock)?;
        let run = self.accept(checkpoint, allowed)?;
        self.start_over()?;
        self.restore(checkpoint)?;
        let log = folder.map(|folder| MetricsLog::resume(folder, run.n_epochs)).transpose()?;
        folder.map_or(Ok(()), |folder| write_config(folder, outputs))?;
        self.fit_from(run, log, outputs)
    }

    fn fit_from(&self, run: RunState, log: Option<MetricsLog>, outputs: &mut Outputs) -> Result<FitReport, Error> {
        // The threads that stream rows run as long as the fit does.
        let with_valid = |train: &mut OpenFeed<'_>| {
            self.scorer.feed().open(&self.device, |valid| self.fit_over(run, log, train, valid, outputs))
        };
        self.train.open(&self.device, with_valid)
    }

    fn fit_over(
        &self,
        mut run: RunState,
        mut log: Option<MetricsLog>,
        train: &mut OpenFeed<'_>,
        valid: &mut OpenFeed<'_>,
        outputs: &mut Outputs,
    ) -> Result<FitReport, Error> {
        let Self { config, device, .. } = self;
        let n_batches = self.train.n_batches();
        let total_steps = config.max_epochs * n_batches.div_ceil(config.accumulate);
        config.schedule.check(total_steps)?;
        let (mut history, mut warnings, mut train_seconds, mut n_batches_done) = (Vec::new(), Vec::new(), 0.0, 0);
        let mut scaler = self.step.scaler.report(device)?;
        run.skipped_before = scaler.n_skipped;
        // A run that had ended early when it was killed has nothing left to train.
        let stop = run.early_stopping.stopped().filter(|_| config.early_stopping.is_some());
        let mut ended = stop.map_or(Ended::MaxEpochs, Ended::Early);
        let epochs = if stop.is_some() { 0..0 } else { run.n_epochs..config.max_epochs };
        if epochs.is_empty() && run.n_epochs > 0 {
            // It may have been killed between its two last checkpoints.
            self.save_last(&run, outputs)?;
        }

        for epoch in epochs {
            // What changes from epoch to epoch: the learning rates, the batch index, and the order of rows, which the feed writes.
            let rate = |batch: usize| config.schedule.rate(run.n_steps + batch / config.accumulate, total_steps) as f32;
            device.write(&self.step.inputs[0].lr, &(0..n_batches).map(rate).collect::<Vec<_>>())?;
            device.write_at(self.step.state(), 0, &[run.n_batches as u32])?;
            device.write_at(&self.step.losses, 0, &run.losses)?;

            self.show(outputs, |progress| progress.epoch_started(epoch));
            let (started, n_before) = (Instant::now(), run.n_batches);
            let n_done = self.run_steps(&mut run, train, outputs)?;
            train_seconds += started.elapsed().as_secs_f64();
            n_batches_done += n_done - n_before;

            let losses = self.look_at_losses(&mut run, n_done)?;
            for warning in losses.warnings() {
                self.show(outputs, |progress| progress.note(&format!("warning: {warning}")));
                warnings.push(warning);
            }
            let n_skipped = std::mem::take(&mut run.n_skipped);
            scaler = losses.scaler;
            if n_done < n_batches {
                ended = Ended::Stopped;
                break;
            }
            (run.n_batches, run.losses) = (0, Vec::new());
            run.n_steps += n_batches.div_ceil(config.accumulate);
            if let Some(replicas) = self.replicas {
                // Each replica has batch statistics of its own; all of them score with those of the first.
                replicas.broadcast_buffers(device, self.params)?;
            }
            let Evaluation { outputs: scores, loss: valid_loss } = self.scorer.evaluate(valid)?;
            let values = self.validation.measure(&scores, losses.mean, valid_loss.unwrap_or(f64::NAN))?;
            let measured = EpochMetrics { epoch: epoch + 1, values };
            let value = measured.get(self.validation.watched()).unwrap_or(f64::NAN);
            run.last_value = value;
            run.n_epochs = epoch + 1;
            let mut metrics: Vec<(&str, f64)> = measured.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            if self.step.scaler.config().enabled {
                metrics.extend([("loss_scale", f64::from(scaler.scale)), ("skipped", f64::from(n_skipped))]);
            }
            self.show(outputs, |progress| progress.epoch_finished(&metrics));
            if let Some(log) = &mut log {
                let lr = config.schedule.rate(run.n_steps.saturating_sub(1), total_steps);
                log.append(&[&[("epoch", (epoch + 1) as f64), ("lr", lr)], &metrics[..]].concat())?;
            }

            history.push(measured);
            let stop = run.early_stopping.check(value);
            if run.keep_if_best(value, self.params, device)?
                && let Some(path) = self.path(outputs, RunFolder::best)?
            {
                self.save(self.checkpoint(&run, value)?, &path)?;
            }
            self.save_last(&run, outputs)?;
            if let Some(reason) = stop.filter(|_| config.early_stopping.is_some()) {
                ended = Ended::Early(reason);
                break;
            }
        }
        self.show(outputs, Progress::finished);
        if ended == Ended::Stopped {
            self.save_last(&run, outputs)?;
        }
        self.check_any_step(&run)?;
        let checkpoint = || outputs.folder.as_ref().filter(|_| ended == Ended::Stopped).map(RunFolder::last);
        let best = run.best.ok_or_else(|| Error::NoEpoch { checkpoint: checkpoint() })?;
        best.write(self.params, device)?;
        let n_rows = n_batches_done as f64 * config.batch_rows.min(self.train.n_rows()) as f64;
        let n_rows = n_rows.min(history.len().max(1) as f64 * self.train.n_rows() as f64);
        Ok(FitReport {
            n_epochs: run.n_epochs,
            best_epoch: best.epoch,
            watched: self.validation.watched().to_owned(),
            best_value: best.value,
            history,
            ended,
            train_seconds,
            train_rows_per_s: if n_rows > 0.0 { n_rows / train_seconds } else { 0.0 },
            warnings,
            scaler: self.step.scaler.config().enabled.then_some(scaler),
        })
    }

    /// Replays the step for the rest of an epoch, some batches at a time. Returns how many of its batches are done: fewer than all if a stop was requested.
    fn run_steps(&self, run: &mut RunState, train: &mut OpenFeed<'_>, outputs: &mut Outputs) -> Result<usize, Error> {
        let Self { config, replicas, .. } = self;
        let (from, epoch) = (run.n_batches, run.n_epochs as u32);
        let saved_every = config.checkpoint_every.saturating_mul(config.accumulate);
        let (mut n_done, mut most) = (from, 1);
        train.each_turn_from(from, epoch, Cursor::Epoch, MAX_STEPS_AT_A_TIME, |turn| {
            let turn_end = turn.first_batch + turn.n_batches;
            while n_done < turn_end {
                if outputs.stop.is_requested() {
                    match replicas {
                        None => return Ok(ControlFlow::Break(())),
                        Some(replicas) => replicas.ask_to_stop(),
                    }
                }
                // Replicas exchange their requests to stop with every loss, so that all end with the same step.
                let most_now = if replicas.is_some() { 1 } else { most.min(turn_end - n_done) };
                let until_saved = n_done.checked_rem(saved_every).map_or(usize::MAX, |n| saved_every - n);
                let n = most_now.min(until_saved);
                if let Some(replicas) = replicas {
                    let n_batches = u64::from(epoch) * self.train.n_batches() as u64 + n_done as u64;
                    replicas.at_step(n_batches / config.accumulate as u64);
                }
                let started = Instant::now();
                self.step.executable.run(n)?;
                most = steps_in(TIME_OF_STEPS, n, started.elapsed());
                n_done += n;
                if n == until_saved && n_done < self.train.n_batches() {
                    self.look_at_losses(run, n_done)?;
                    self.save_last(run, outputs)?;
                }
                if replicas.is_some_and(DataParallel::is_stop_agreed) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            self.show(outputs, |progress| progress.advance(turn.n_rows as u64));
            Ok(ControlFlow::Continue(()))
        })?;
        self.device.wait()?;
        Ok(n_done)
    }

    /// Early stopping before the first check; where the settings have none, it keeps the best value.
    pub(super) fn early_stopping(&self) -> EarlyStopping {
        self.config.early_stopping.clone().unwrap_or_default().of_metric(self.validation.mode())
    }

    fn show(&self, outputs: &mut Outputs, show: impl FnOnce(&mut Progress)) {
        if self.flat().is_first() {
            show(&mut outputs.progress);
        }
    }
}

fn write_config(folder: &RunFolder, outputs: &Outputs) -> Result<(), Error> {
    outputs.config.as_ref().map_or(Ok(()), |config| folder.write_config(config))
}

/// How many steps take about so long, when `n` took `elapsed`; at least one.
fn steps_in(time: Duration, n: usize, elapsed: Duration) -> usize {
    let n_steps = n as f64 * time.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    (n_steps as usize).clamp(1, MAX_STEPS_AT_A_TIME)
}
