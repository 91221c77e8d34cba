//! The epochs of a run: training steps, then a validation.

use std::ops::Range;
use std::time::Instant;

use brisk_atomic_file::write_atomically;
use brisk_report::MetricsLog;

use super::checks::When;
use super::fit::Fit;
use super::losses::EpochLosses;
use super::snapshot::Snapshot;
use super::steps::Steps;
use super::{Outputs, Training};
use crate::callback::RunView;
use crate::early_stopping::{EarlyStopping, EarlyStoppingState};
use crate::error::Error;
use crate::feed::OpenFeed;
use crate::fit_report::{Ended, FitReport};
use crate::progress::Progress;
use crate::run_folder::RunFolder;
use crate::run_state::RunState;
use crate::warning::Warning;

/// The share of the time from which a replica that the others wait for is shown.
const SHOWN_SHARE: f64 = 0.05;

impl Training<'_> {
    pub(super) fn fit_from(&self, run: RunState, log: Option<MetricsLog>, outputs: &mut Outputs) -> Result<FitReport, Error> {
        let (n_epochs, n_steps) = (run.n_epochs, run.n_steps);
        // Also if a callback panics.
        let _end = EndOfCheckpoints(self);
        self.start_copies(outputs)?;
        // The threads that stream rows run as long as the fit does.
        let with_valid = |train: &mut OpenFeed<'_>| {
            self.scorer.feed().open(&self.device, |valid| self.fit_over(run, log, train, valid, outputs))
        };
        let result = self.train.open(&self.device, with_valid);
        if self.params.newest_device().is_some() {
            self.params.set_trained_on(Some(self.scale.features()));
        }
        if let Err(error) = &result {
            // This error is reported, whether or not the checkpoints before it can be written.
            drop(self.finish_checkpoints(outputs));
            self.finish_copies(outputs);
            let view = self.view_at(n_epochs, n_steps);
            outputs.callbacks.iter_mut().for_each(|callback| callback.on_exception(&view, error));
        }
        result
    }

    fn fit_over(
        &self,
        run: RunState,
        log: Option<MetricsLog>,
        train: &mut OpenFeed<'_>,
        valid: &mut OpenFeed<'_>,
        outputs: &mut Outputs,
    ) -> Result<FitReport, Error> {
        self.config.schedule.check(run.schedule_steps)?;
        let (epochs, ended) = self.epochs_left(&run);
        let (report, seconds_before) = (self.report_of(&run, ended)?, run.seconds);
        let (snapshot, since) = (Snapshot::default(), Instant::now());
        let mut fit = Fit { run, report, log, outputs, valid, snapshot, n_batches: 0, n_rows: 0, since, seconds_before };
        fit.run.skipped_before = fit.report.scaler.map_or(0, |scaler| scaler.n_skipped);
        self.start(&mut fit, epochs.is_empty())?;
        for epoch in epochs {
            if let Some(ended) = self.run_epoch(&mut fit, epoch, train)? {
                fit.report.ended = ended;
                break;
            }
        }
        self.finish(fit)
    }

    /// The epochs that are left, and why the run ends after them. A run that had already ended early when it was killed has
    /// nothing left to train.
    fn epochs_left(&self, run: &RunState) -> (Range<usize>, Ended) {
        let config = &self.config;
        let stop = run.early_stopping.stopped().filter(|_| config.early_stopping.is_some() && run.n_epochs >= config.min_epochs);
        let has_all_steps = config.max_steps.is_some_and(|max_steps| run.n_steps >= max_steps);
        match stop {
            Some(reason) => (0..0, Ended::Early(reason)),
            None if has_all_steps => (0..0, Ended::MaxSteps),
            None => (run.n_epochs..config.max_epochs, Ended::MaxEpochs),
        }
    }

    /// What comes before the first epoch of this call.
    fn start(&self, fit: &mut Fit, is_complete: bool) -> Result<(), Error> {
        let is_new = fit.run.n_epochs + fit.run.n_batches == 0;
        if is_new {
            self.check_store(fit)?;
        }
        if is_complete && !is_new {
            // The run may have been killed between its last two checkpoints.
            self.save_last(fit)?;
        }
        let view = self.view_at(fit.run.n_epochs, fit.run.n_steps);
        fit.outputs.callbacks.iter_mut().try_for_each(|callback| callback.on_fit_start(&view))?;
        self.warnings.iter().for_each(|warning| fit.outputs.notify_warning(warning));
        self.without_folder(fit.outputs).into_iter().for_each(|warning| self.warn(fit, warning));
        if is_new && self.config.sanity_validation > 0 { self.check_validation(fit.valid) } else { Ok(()) }
    }

    /// Trains for an epoch, validates, and writes the checkpoint to resume from. Returns why the run ends here, if it does.
    fn run_epoch(&self, fit: &mut Fit, epoch: usize, train: &mut OpenFeed<'_>) -> Result<Option<Ended>, Error> {
        let config = &self.config;
        let rates = self.start_epoch(fit)?;
        let (steps, n_done) = self.run_steps(fit, rates, train)?;
        let losses = self.finish_losses(fit, steps, n_done)?;
        match steps {
            Steps::All => fit.run.finish_epoch(self.n_batches.div_ceil(config.accumulate)),
            // The checkpoint to resume from is the one that was written within the epoch.
            Steps::Limited(_) => self.save_last(fit)?,
            Steps::Ended(ended) => return Ok(Some(ended)),
        }
        let limit = self.limit_reached(fit);
        let is_last = steps != Steps::All || limit.is_some() || epoch + 1 == config.max_epochs;
        let is_unvalidated = !is_last && !(epoch + 1).is_multiple_of(config.validate_every.max(1));
        // A limit may coincide with a validation within the epoch.
        let is_checked = !is_unvalidated && !fit.run.is_validated;
        let mut stop = None;
        if is_unvalidated {
            self.record_unvalidated(fit, &losses)?;
        } else if is_checked {
            let when = if steps == Steps::All { When::EndOfEpoch } else { When::Limit };
            stop = self.check(fit, when, &losses)?;
        }
        if let Steps::Limited(ended) = steps {
            return Ok(Some(ended));
        }
        if is_checked {
            self.save_last_of_moment(fit)?
        } else {
            self.save_last(fit)?
        }
        // Replicas agree to stop with the losses of a step, which may be the last of the epoch.
        let is_stopped = self.replicas.is_stop_agreed() && epoch + 1 < config.max_epochs;
        Ok(stop.or(limit).or(is_stopped.then_some(Ended::Stopped)))
    }

    /// Sets the values that change from epoch to epoch: the batch index, the losses so far, and the learning rates, which it
    /// returns. The feed writes the order of rows.
    fn start_epoch(&self, fit: &mut Fit) -> Result<Vec<f32>, Error> {
        let (Self { device, .. }, run) = (self, &fit.run);
        let rates = self.write_rates(run)?;
        device.write_at(self.step.state(), 0, &[run.n_batches as u32])?;
        device.write_at(&self.step.losses, 0, &run.losses)?;
        self.step.loss_weights.as_ref().map_or(Ok(()), |weights| device.write_at(weights, 0, &run.loss_weights))?;
        self.show(fit.outputs, |progress| progress.epoch_started(run.n_epochs));
        let view = self.view_at(run.n_epochs + 1, run.n_steps);
        fit.outputs.callbacks.iter_mut().try_for_each(|callback| callback.on_epoch_start(&view))?;
        Ok(rates)
    }

    /// Writes the learning rate of each batch of the epoch, and returns them.
    pub(super) fn write_rates(&self, run: &RunState) -> Result<Vec<f32>, Error> {
        let rate = |batch: usize| self.rate(run, run.n_steps + batch / self.config.accumulate) as f32;
        let rates: Vec<f32> = (0..self.n_batches).map(rate).collect();
        self.device.write(&self.step.inputs[0].lr, &rates)?;
        Ok(rates)
    }

    /// The learning rate of a step of the run, from 0: the schedule's, reduced as often as the run has done so far.
    pub(super) fn rate(&self, run: &RunState, step: usize) -> f64 {
        let lr = self.config.schedule.rate(step, run.schedule_steps);
        run.plateau.as_ref().map_or(lr, |plateau| plateau.rate(lr))
    }

    /// Reads the losses of an epoch's steps, and reports warnings and errors that follow from them.
    fn finish_losses(&self, fit: &mut Fit, steps: Steps, n_done: usize) -> Result<EpochLosses, Error> {
        if self.config.max_time.is_some() {
            fit.run.seconds = fit.seconds();
        }
        let losses = self.read_losses(&mut fit.run, n_done)?;
        if steps != Steps::Ended(Ended::Stopped) {
            losses.check_epoch()?;
        }
        losses.warnings().into_iter().for_each(|warning| self.warn(fit, warning));
        fit.report.scaler = self.step.scaler.config().enabled.then_some(losses.scaler);
        Ok(losses)
    }

    /// Restores the best model and reports the run.
    fn finish(&self, mut fit: Fit) -> Result<FitReport, Error> {
        fit.report.waited = self.replicas.waited();
        if let Some(waited) = fit.report.waited.as_ref().filter(|waited| waited.shares[waited.rank()] >= SHOWN_SHARE) {
            self.show(fit.outputs, |progress| progress.note(&waited.to_string()));
        }
        self.show(fit.outputs, Progress::finished);
        if fit.report.ended == Ended::Stopped {
            self.save_last(&mut fit)?;
        }
        let Fit { mut run, mut report, outputs, valid, n_rows, .. } = fit;
        self.finish_checkpoints(outputs)?;
        report.warnings.extend(self.finish_copies(outputs));
        self.check_any_step(&run)?;
        let Some(best) = run.best.take() else {
            let is_resumable = report.ended == Ended::Stopped;
            let n_checks = report.history.len();
            if report.ended != Ended::Stopped && n_checks > 0 {
                let found = format!("`{}`, NaN in each validation ({n_checks})", report.watched);
                return Err(Error::setting("metric", found, "one that is a number; watch another metric by `EarlyStopping::on`"));
            }
            let checkpoint = outputs.folder.as_ref().filter(|_| is_resumable).map(RunFolder::last);
            return Err(Error::NoEpoch { n_epochs: run.n_epochs, checkpoint });
        };
        let view = self.view_at(run.n_epochs, run.n_steps);
        self.notify_best(&best, &report.history, view, valid, outputs)?;
        best.write(self.params, &self.device)?;
        report.n_epochs = run.n_epochs;
        (report.best_epoch, report.best_batch) = (best.at.epoch(), best.at.batch().unwrap_or(self.n_batches));
        report.best_value = best.value;
        report.train_rows_per_s = if n_rows > 0 { n_rows as f64 / report.train_seconds } else { 0.0 };
        if let (Some(profile), Some(folder)) = (&report.profile, self.folder(outputs)) {
            write_atomically(&folder.trace(), |file| profile.write_chrome_trace(file))?;
        }
        outputs.callbacks.iter_mut().try_for_each(|callback| callback.on_fit_end(&view, &report))?;
        Ok(report)
    }

    /// The limit that ends the run after the steps so far.
    fn limit_reached(&self, fit: &Fit) -> Option<Ended> {
        let has_all_steps = self.config.max_steps.is_some_and(|max_steps| fit.run.n_steps >= max_steps);
        let is_late = self.replicas.is_single() && self.is_late(fit);
        has_all_steps.then_some(Ended::MaxSteps).or(is_late.then_some(Ended::MaxTime))
    }

    /// Whether the time limit of the run is reached.
    pub(super) fn is_late(&self, fit: &Fit) -> bool {
        self.config.max_time.is_some_and(|limit| fit.seconds() >= limit.as_secs_f64())
    }

    pub(super) fn total_steps(&self) -> usize {
        self.config.total_steps(self.n_batches)
    }

    /// The report of a run that starts or resumes.
    fn report_of(&self, run: &RunState, ended: Ended) -> Result<FitReport, Error> {
        let scaler = self.step.scaler.report(&self.device)?;
        Ok(FitReport {
            n_epochs: run.n_epochs,
            best_epoch: 0,
            best_batch: 0,
            watched: self.validation.watched.clone(),
            best_value: f64::NAN,
            history: Vec::new(),
            ended,
            train_seconds: 0.0,
            train_rows_per_s: 0.0,
            warnings: self.warnings.clone(),
            scaler: self.step.scaler.config().enabled.then_some(scaler),
            waited: None,
            profile: None,
        })
    }

    /// The run as callbacks see it.
    pub(super) fn view_at(&self, epoch: usize, n_steps: usize) -> RunView<'_> {
        RunView {
            epoch,
            n_steps,
            n_batches: self.n_batches,
            n_rows: self.rows_before(self.n_batches),
            max_epochs: self.config.max_epochs,
            device: &self.device,
            params: self.params,
            is_first: self.flat().is_first(),
        }
    }

    /// The rows of an epoch before its batch `batch`, from 0.
    pub(super) fn rows_before(&self, batch: usize) -> usize {
        (batch * self.config.batch_rows).min(self.train.n_rows())
    }

    /// Early stopping before the first check; if the settings have none, it only keeps the best value.
    pub(super) fn early_stopping(&self) -> EarlyStopping {
        let settings = self.config.early_stopping.clone().unwrap_or_default().of_metric(self.validation.direction);
        EarlyStopping { state: EarlyStoppingState::default(), ..settings }
    }

    pub(super) fn warn(&self, fit: &mut Fit, warning: Warning) {
        self.show_warning(&warning, fit.outputs);
        fit.report.warnings.push(warning);
    }

    pub(super) fn show_warning(&self, warning: &Warning, outputs: &mut Outputs) {
        self.show(outputs, |progress| progress.note(&format!("warning: {warning}")));
        outputs.notify_warning(warning);
    }

    pub(super) fn show(&self, outputs: &mut Outputs, show: impl FnOnce(&mut Progress)) {
        if self.flat().is_first() {
            show(&mut outputs.progress);
        }
    }
}

/// Waits for the checkpoints of a run when it is dropped, and frees their memory.
struct EndOfCheckpoints<'t, 'a>(&'t Training<'a>);

impl Drop for EndOfCheckpoints<'_, '_> {
    fn drop(&mut self) {
        drop(self.0.writer.take());
        // After the last of them was submitted.
        drop(self.0.copies.take());
        drop(self.0.memory.take());
    }
}
