//! The epochs of a run: training steps, then a validation.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::losses::EpochLosses;
use super::{Ended, EpochMetrics, FitReport, Outputs, Training};
use crate::atomic_file::write_atomically;
use crate::feed::{Cursor, OpenFeed};
use crate::run_state::RunState;
use crate::scorer::Evaluation;
use crate::{BatchesEnd, DataParallel, EarlyStopping, Error, MetricsLog, Progress, RunFolder, RunView, ValidationEnd};

/// The most steps that are submitted at a time, so that the bar moves and a request to stop is noticed.
const MAX_STEPS_AT_A_TIME: usize = 64;

/// About how long the steps that are submitted at a time may take, where a step takes long.
const TIME_OF_STEPS: Duration = Duration::from_millis(250);

/// Callbacks hear of the batches of about this time together.
const TIME_OF_CALLS: Duration = Duration::from_millis(250);

/// What a run finds out while it lasts.
#[derive(Debug)]
struct Found {
    report: FitReport,
    /// Batches that this call has trained on, in the epochs before the current one.
    n_batches: usize,
    since: Instant,
    seconds_before: f64,
}

/// How far the steps of an epoch got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Steps {
    All,
    /// Up to a limit on the number of steps or the time.
    Limited(Ended),
    Stopped,
}

impl Training<'_> {
    pub(super) fn fit_from(&self, run: RunState, log: Option<MetricsLog>, outputs: &mut Outputs) -> Result<FitReport, Error> {
        let (n_epochs, n_steps) = (run.n_epochs, run.n_steps);
        // Also where a callback panics.
        let _end = EndOfCheckpoints(self);
        // The threads that stream rows run as long as the fit does.
        let with_valid = |train: &mut OpenFeed<'_>| {
            self.scorer.feed().open(&self.device, |valid| self.fit_over(run, log, train, valid, outputs))
        };
        let result = self.train.open(&self.device, with_valid);
        if let Err(error) = &result {
            // The error is the one to report, whether or not the checkpoints before it can be written.
            drop(self.finish_checkpoints(outputs));
            let view = RunView { epoch: n_epochs, n_steps, ..self.view() };
            outputs.callbacks.iter_mut().for_each(|callback| callback.on_exception(&view, error));
        }
        result
    }

    fn fit_over(
        &self,
        mut run: RunState,
        mut log: Option<MetricsLog>,
        train: &mut OpenFeed<'_>,
        valid: &mut OpenFeed<'_>,
        outputs: &mut Outputs,
    ) -> Result<FitReport, Error> {
        let Self { config, device, n_batches, .. } = self;
        let total_steps = self.total_steps();
        config.schedule.check(total_steps)?;
        // A run that had ended early when it was killed has nothing left to train.
        let stop = run.early_stopping.stopped().filter(|_| config.early_stopping.is_some() && run.n_epochs >= config.min_epochs);
        let has_all_steps = config.max_steps.is_some_and(|max_steps| run.n_steps >= max_steps);
        let ended = stop.map_or(if has_all_steps { Ended::MaxSteps } else { Ended::MaxEpochs }, Ended::Early);
        let epochs = if stop.is_some() || has_all_steps { 0..0 } else { run.n_epochs..config.max_epochs };
        let mut found = self.found(&run, ended)?;
        run.skipped_before = found.report.scaler.as_ref().map_or(0, |scaler| scaler.n_skipped);
        if epochs.is_empty() && run.n_epochs > 0 {
            // It may have been killed between its two last checkpoints.
            self.save_last(&run, outputs)?;
        }
        let view = RunView { epoch: run.n_epochs, n_steps: run.n_steps, ..self.view() };
        outputs.callbacks.iter_mut().try_for_each(|callback| callback.on_fit_start(&view))?;

        if run.n_epochs == 0 && run.n_batches == 0 && config.sanity_validation > 0 {
            self.check_validation(valid)?;
        }
        for epoch in epochs {
            // What changes from epoch to epoch: the learning rates, the batch index, and the order of rows, which the feed writes.
            let rate = |batch: usize| config.schedule.rate(run.n_steps + batch / config.accumulate, total_steps) as f32;
            let rates: Vec<f32> = (0..*n_batches).map(rate).collect();
            device.write(&self.step.inputs[0].lr, &rates)?;
            device.write_at(self.step.state(), 0, &[run.n_batches as u32])?;
            device.write_at(&self.step.losses, 0, &run.losses)?;

            self.show(outputs, |progress| progress.epoch_started(epoch));
            let view = RunView { epoch: epoch + 1, n_steps: run.n_steps, ..self.view() };
            outputs.callbacks.iter_mut().try_for_each(|callback| callback.on_epoch_start(&view))?;
            let (started, n_before) = (Instant::now(), run.n_batches);
            let (steps, n_done) = self.run_steps(&mut run, &rates, &mut found, train, outputs)?;
            found.report.train_seconds += started.elapsed().as_secs_f64();
            found.n_batches += n_done - n_before;
            if config.max_time.is_some() {
                run.seconds = found.seconds();
            }

            let losses = self.look_at_losses(&mut run, n_done)?;
            if steps != Steps::Stopped {
                losses.check_epoch()?;
            }
            for warning in losses.warnings() {
                self.show(outputs, |progress| progress.note(&format!("warning: {warning}")));
                found.report.warnings.push(warning);
            }
            found.report.scaler = self.step.scaler.config().enabled.then_some(losses.scaler);
            if steps == Steps::Stopped {
                found.report.ended = Ended::Stopped;
                break;
            }
            let n_skipped = std::mem::take(&mut run.n_skipped);
            if let Steps::Limited(ended) = steps {
                // The checkpoint to resume from is that of the steps, within the epoch.
                found.report.ended = ended;
                self.save_last(&run, outputs)?;
            } else {
                (run.n_batches, run.losses) = (0, Vec::new());
                run.n_steps += n_batches.div_ceil(config.accumulate);
                run.n_epochs = epoch + 1;
            }
            let limit = [
                (config.max_steps.is_some_and(|max_steps| run.n_steps >= max_steps), Ended::MaxSteps),
                (self.is_late(&found) && self.replicas.is_none(), Ended::MaxTime),
            ];
            let limit = limit.into_iter().find_map(|(is_reached, ended)| is_reached.then_some(ended));
            let is_last = steps != Steps::All || limit.is_some() || epoch + 1 == config.max_epochs;
            let is_validated = is_last || (epoch + 1).is_multiple_of(config.validate_every.max(1));
            let validation =
                if is_validated { Some(self.validate(&mut run, epoch, (&losses, n_skipped), valid, outputs)?) } else { None };
            let measured = match &validation {
                Some((measured, _)) => measured.clone(),
                None => self.not_validated(epoch, &losses, n_skipped),
            };
            let metrics: Vec<(&str, f64)> = measured.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            // Without validation, metrics of the validation rows are NaN.
            let is_shown = |name: &str| is_validated || !self.validation.is_of_validation(name);
            let shown: Vec<(&str, f64)> = metrics.iter().filter(|(name, _)| is_shown(name)).copied().collect();
            self.show(outputs, |progress| progress.epoch_finished(&shown));
            if let Some(log) = log.as_mut().filter(|_| steps == Steps::All) {
                let lr = config.schedule.rate(run.n_steps.saturating_sub(1), total_steps);
                log.append(&[&[("epoch", (epoch + 1) as f64), ("lr", lr)], &metrics[..]].concat())?;
            }
            found.report.history.push(measured);

            let mut stop = None;
            let mut snapshot = self.snapshot(outputs)?;
            if let Some((measured, flow)) = validation {
                let value = measured.get(self.validation.watched()).unwrap_or(f64::NAN);
                stop = run.early_stopping.check(value).filter(|_| config.early_stopping.is_some()).map(Ended::Early);
                stop = stop.filter(|_| epoch + 1 >= config.min_epochs).or(flow.is_break().then_some(Ended::Callback));
                if run.is_best(value) {
                    self.keep_as_best(&mut run, epoch + 1, value, &mut snapshot, outputs)?;
                }
                if config.keep_best > 0 {
                    self.keep_among_best(&mut run, epoch + 1, value, &mut snapshot, outputs)?;
                }
            }
            if steps != Steps::All {
                break;
            }
            self.save_last_of(&mut snapshot, &run, outputs)?;
            if let Some(ended) = stop.or(limit) {
                found.report.ended = ended;
                break;
            }
        }
        self.show(outputs, Progress::finished);
        if found.report.ended == Ended::Stopped {
            self.save_last(&run, outputs)?;
        }
        self.finish_checkpoints(outputs)?;
        self.check_any_step(&run)?;
        let ended = found.report.ended;
        let checkpoint = || outputs.folder.as_ref().filter(|_| ended == Ended::Stopped).map(RunFolder::last);
        let Some(best) = run.best.take() else { return Err(Error::NoEpoch { checkpoint: checkpoint() }) };
        best.write(self.params, device)?;
        found.report.n_epochs = run.n_epochs;
        (found.report.best_epoch, found.report.best_value) = (best.epoch, best.value);
        let report = found.finished(config.batch_rows, self.train.n_rows());
        if let (Some(profile), Some(path)) = (&report.profile, self.path(outputs, RunFolder::trace)?) {
            write_atomically(&path, |file| profile.write_chrome_trace(file))?;
        }
        let view = RunView { epoch: run.n_epochs, n_steps: run.n_steps, ..self.view() };
        outputs.callbacks.iter_mut().try_for_each(|callback| callback.on_fit_end(&view, &report))?;
        Ok(report)
    }

    /// Validates on a few batches before the first step, only for the errors that may show.
    fn check_validation(&self, valid: &mut OpenFeed<'_>) -> Result<(), Error> {
        let Evaluation { outputs, .. } = self.scorer.evaluate_first(valid, self.config.sanity_validation)?;
        self.validation.try_out(&outputs, outputs.len() / self.scorer.n_outputs().max(1))
    }

    /// Measures the model on the validation rows, and tells the callbacks, which may end the run.
    fn validate(
        &self,
        run: &mut RunState,
        epoch: usize,
        (losses, n_skipped): (&EpochLosses, u32),
        valid: &mut OpenFeed<'_>,
        outputs: &mut Outputs,
    ) -> Result<(EpochMetrics, ControlFlow<()>), Error> {
        if let Some(replicas) = self.replicas {
            // Each replica has batch statistics of its own; all of them score with those of the first.
            replicas.broadcast_buffers(&self.device, self.params)?;
            if self.ema.is_some() {
                replicas.broadcast_buffers(&self.device, &self.evaluated)?;
            }
        }
        let Evaluation { outputs: scores, loss: valid_loss } = self.scorer.evaluate(valid)?;
        let mut values = self.validation.measure(&scores, losses.mean, valid_loss.unwrap_or(f64::NAN))?;
        values.extend(self.scaling(losses, n_skipped));
        let metrics = EpochMetrics { epoch: epoch + 1, values };
        let value = metrics.get(self.validation.watched()).unwrap_or(f64::NAN);
        run.last_value = value;
        let is_best = run.is_best(value);
        let view = RunView { epoch: epoch + 1, n_steps: run.n_steps, ..self.view() };
        let end = ValidationEnd { metrics: &metrics, outputs: &scores, labels: self.validation.labels(), is_best };
        let mut flow = ControlFlow::Continue(());
        for callback in &mut outputs.callbacks {
            if callback.on_validation_end(&view, &end)?.is_break() {
                flow = ControlFlow::Break(());
            }
        }
        Ok((metrics, flow))
    }

    /// The metrics of an epoch after which the model was not validated: NaN, except for the training loss.
    fn not_validated(&self, epoch: usize, losses: &EpochLosses, n_skipped: u32) -> EpochMetrics {
        let names = self.validation.names().into_iter().map(|name| (name, f64::NAN));
        let mut values: Vec<(String, f64)> = names.collect();
        values[0].1 = losses.mean;
        values.extend(self.scaling(losses, n_skipped));
        EpochMetrics { epoch: epoch + 1, values }
    }

    /// The loss scale after an epoch and the steps skipped in it, if the loss is scaled.
    fn scaling(&self, losses: &EpochLosses, n_skipped: u32) -> Vec<(String, f64)> {
        if !self.step.scaler.config().enabled {
            return Vec::new();
        }
        vec![("loss_scale".to_owned(), f64::from(losses.scaler.scale)), ("skipped".to_owned(), f64::from(n_skipped))]
    }

    /// Replays the step for the rest of an epoch, some batches at a time. Returns how far it got, and how many batches are done.
    fn run_steps(
        &self,
        run: &mut RunState,
        rates: &[f32],
        found: &mut Found,
        train: &mut OpenFeed<'_>,
        outputs: &mut Outputs,
    ) -> Result<(Steps, usize), Error> {
        let Self { config, replicas, n_batches, .. } = self;
        let (from, epoch) = (run.n_batches, run.n_epochs as u32);
        let saved_every = config.checkpoint_every.saturating_mul(config.accumulate);
        // A limit on the number of steps may end the epoch before its last batch.
        let steps_left = config.max_steps.map_or(usize::MAX, |max_steps| max_steps.saturating_sub(run.n_steps));
        let end = steps_left.saturating_mul(config.accumulate).min(*n_batches);
        let mut steps = if end < *n_batches { Steps::Limited(Ended::MaxSteps) } else { Steps::All };
        let (mut n_done, mut n_told, mut told, mut most) = (from, from, Instant::now(), 1);
        let view = RunView { epoch: run.n_epochs + 1, n_steps: run.n_steps, ..self.view() };
        let mut saved = Instant::now();
        let result = train.each_turn_from(from, epoch, Cursor::Epoch, MAX_STEPS_AT_A_TIME, |turn| {
            let turn_end = (turn.first_batch + turn.n_batches).min(end);
            while n_done < turn_end {
                let is_late = self.is_late(found);
                if outputs.stop.is_requested() || is_late {
                    match replicas {
                        None => {
                            steps = if is_late { Steps::Limited(Ended::MaxTime) } else { Steps::Stopped };
                            return Ok(ControlFlow::Break(()));
                        }
                        Some(replicas) => replicas.ask_to_stop(),
                    }
                }
                // Replicas exchange their requests to stop with every loss, so that all end with the same step.
                let most_now = if replicas.is_some() || config.detect_anomaly { 1 } else { most };
                // The first replay of a program is slower than the others.
                let is_profiled = config.profile_batches > 0 && found.report.profile.is_none() && found.n_batches + n_done > from;
                let most_now = if is_profiled { config.profile_batches.min(MAX_STEPS_AT_A_TIME) } else { most_now };
                let most_now = most_now.min(turn_end - n_done);
                let until_saved = n_done.checked_rem(saved_every).map_or(usize::MAX, |n| saved_every - n);
                // Once a checkpoint is due by the clock, the next complete step.
                let is_due = config.checkpoint_interval.is_some_and(|interval| saved.elapsed() >= interval);
                let until_saved =
                    if is_due { until_saved.min(config.accumulate - n_done % config.accumulate) } else { until_saved };
                let n = most_now.min(until_saved);
                if let Some(replicas) = replicas {
                    let n_batches = u64::from(epoch) * *n_batches as u64 + n_done as u64;
                    replicas.at_step(n_batches / config.accumulate as u64);
                }
                let started = Instant::now();
                if is_profiled {
                    found.report.profile = Some(self.step.executable.profile(n)?);
                } else {
                    self.step.executable.run(n)?;
                    most = steps_in(TIME_OF_STEPS, n, started.elapsed());
                }
                if config.detect_anomaly {
                    self.check_anomaly(run.n_epochs, n_done)?;
                }
                n_done += n;
                if n == until_saved && n_done < *n_batches {
                    self.look_at_losses(run, n_done)?;
                    self.save_last(run, outputs)?;
                    saved = Instant::now();
                }
                self.look_at_checkpoints(outputs)?;
                if replicas.is_some_and(DataParallel::is_stop_agreed) {
                    steps = Steps::Stopped;
                    return Ok(ControlFlow::Break(()));
                }
                if !outputs.callbacks.is_empty() && (told.elapsed() >= TIME_OF_CALLS || n_done >= end) {
                    self.tell_batches(&view, n_told..n_done, rates, outputs)?;
                    (n_told, told) = (n_done, Instant::now());
                }
            }
            self.show(outputs, |progress| progress.advance(turn.n_rows as u64));
            Ok(if n_done >= end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        if let Err(error) = result {
            if config.checkpoint_on_error && n_done > from {
                // The error is the one to report, whether or not the checkpoint can be written.
                drop(self.save_after_error(run, n_done, &error, outputs));
            }
            return Err(error);
        }
        self.device.wait()?;
        if n_done == *n_batches && steps != Steps::Stopped {
            steps = Steps::All;
        }
        Ok((steps, n_done))
    }

    /// Writes the checkpoint of the last complete step, if the model is still good: its losses are finite, and all of its steps are done.
    fn save_after_error(&self, run: &mut RunState, n_done: usize, error: &Error, outputs: &mut Outputs) -> Result<(), Error> {
        let is_complete = n_done.is_multiple_of(self.config.accumulate) && n_done < self.n_batches;
        if !is_complete || self.replicas.is_some() || matches!(error, Error::NonFiniteLoss { .. }) {
            return Ok(());
        }
        self.device.wait()?;
        self.look_at_losses(run, n_done)?;
        self.save_last(run, outputs)
    }

    /// Tells the callbacks of batches that have been trained on.
    fn tell_batches(
        &self,
        view: &RunView<'_>,
        batches: std::ops::Range<usize>,
        rates: &[f32],
        outputs: &mut Outputs,
    ) -> Result<(), Error> {
        let losses: Vec<f32> = self.device.read(&self.step.losses)?;
        let rows_before = |batch: usize| (batch * self.config.batch_rows).min(self.train.n_rows());
        let end = BatchesEnd {
            first_batch: batches.start,
            losses: &losses[batches.clone()],
            learning_rates: &rates[batches.clone()],
            n_rows: rows_before(batches.end) - rows_before(batches.start),
        };
        outputs.callbacks.iter_mut().try_for_each(|callback| callback.on_batches_end(view, &end))
    }

    /// Whether the time of the run is over.
    fn is_late(&self, found: &Found) -> bool {
        self.config.max_time.is_some_and(|limit| found.seconds() >= limit.as_secs_f64())
    }

    /// The steps of the optimizer that a run has at most.
    fn total_steps(&self) -> usize {
        let all = self.config.max_epochs.saturating_mul(self.n_batches.div_ceil(self.config.accumulate));
        self.config.max_steps.map_or(all, |max_steps| max_steps.min(all))
    }

    fn found(&self, run: &RunState, ended: Ended) -> Result<Found, Error> {
        let scaler = self.step.scaler.report(&self.device)?;
        let report = FitReport {
            n_epochs: run.n_epochs,
            best_epoch: 0,
            watched: self.validation.watched().to_owned(),
            best_value: f64::NAN,
            history: Vec::new(),
            ended,
            train_seconds: 0.0,
            train_rows_per_s: 0.0,
            warnings: Vec::new(),
            scaler: self.step.scaler.config().enabled.then_some(scaler),
            profile: None,
        };
        Ok(Found { report, n_batches: 0, since: Instant::now(), seconds_before: run.seconds })
    }

    /// The run as callbacks see it, before its first epoch.
    pub(super) fn view(&self) -> RunView<'_> {
        RunView {
            epoch: 0,
            n_steps: 0,
            n_batches: self.n_batches,
            n_rows: (self.n_batches * self.config.batch_rows).min(self.train.n_rows()),
            max_epochs: self.config.max_epochs,
            device: &self.device,
            params: self.params,
            is_first: self.flat().is_first(),
        }
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

/// Waits for the checkpoints of a run when it is dropped, and frees their memory.
struct EndOfCheckpoints<'t, 'a>(&'t Training<'a>);

impl Drop for EndOfCheckpoints<'_, '_> {
    fn drop(&mut self) {
        drop(self.0.writer.take());
        drop(self.0.memory.take());
    }
}

impl Found {
    /// Seconds of the run so far, those before it was resumed included.
    fn seconds(&self) -> f64 {
        self.seconds_before + self.since.elapsed().as_secs_f64()
    }

    fn finished(self, batch_rows: usize, n_rows: usize) -> FitReport {
        let Self { report, n_batches, .. } = self;
        let n_trained =
            (n_batches as f64 * batch_rows.min(n_rows) as f64).min(report.history.len().max(1) as f64 * n_rows as f64);
        let train_rows_per_s = if n_trained > 0.0 { n_trained / report.train_seconds } else { 0.0 };
        FitReport { train_rows_per_s, ..report }
    }
}

/// How many steps take about so long, when `n` took `elapsed`; at least one.
fn steps_in(time: Duration, n: usize, elapsed: Duration) -> usize {
    let n_steps = n as f64 * time.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    (n_steps as usize).clamp(1, MAX_STEPS_AT_A_TIME)
}
