//! The validations of a run, and their consequences: a row of the log, early stopping, the best model.

use std::ops::ControlFlow;

use brisk_report::EpochMetrics;

use super::fit::Fit;
use super::losses::EpochLosses;
use super::{Outputs, Training};
use crate::callback::{RunView, ValidationEnd};
use crate::error::Error;
use crate::feed::OpenFeed;
use crate::fit_report::Ended;
use crate::run_state::{Best, RunState};
use crate::scorer::Evaluation;
use crate::warning::Warning;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    WithinEpoch,
    EndOfEpoch,
    /// A limit on the number of steps or the time ends the run here. A resumed run without it ignores this validation.
    Limit,
}

impl Training<'_> {
    /// Validates the model after the last complete step, records the result, and keeps the model if it is one of the best.
    /// Returns the reason to end the run, if there is one.
    pub(super) fn check(&self, fit: &mut Fit, when: When, losses: &EpochLosses) -> Result<Option<Ended>, Error> {
        let (measured, flow) = self.validate(fit, when, losses)?;
        let value = measured.get(&self.validation.watched).unwrap_or(f64::NAN);
        let monitored = self.validation.monitored().map(|metric| measured.get(metric).unwrap_or(f64::NAN));
        self.record(fit, when, measured)?;
        if let Some(value) = monitored.filter(|_| when != When::Limit) {
            self.reduce_rates(fit, value);
        }
        let run = &mut fit.run;
        let stop = run.early_stopping.check(value).filter(|_| self.config.early_stopping.is_some()).map(Ended::Early);
        let stop = stop.filter(|_| run.n_epochs >= self.config.min_epochs).or(flow.is_break().then_some(Ended::Callback));
        fit.snapshot = self.snapshot(fit.outputs)?;
        // The best checkpoint is written second: a run that is killed in between and resumes from it includes the other.
        if self.config.keep_best > 0 {
            self.keep_among_best(fit, value)?;
        }
        if fit.run.is_best(value) {
            self.keep_as_best(fit, value)?;
        }
        Ok(stop)
    }

    /// Shows the metrics of an epoch that does not end with a validation, and adds them to the log and the history.
    pub(super) fn record_unvalidated(&self, fit: &mut Fit, losses: &EpochLosses) -> Result<(), Error> {
        // NaN, except for the training loss.
        let names = self.validation.names().into_iter().map(|name| (name, f64::NAN));
        let mut values: Vec<(String, f64)> = names.collect();
        values[0].1 = losses.mean;
        values.extend(self.scaling(losses));
        let measured = self.measured(fit, values);
        self.record(fit, When::EndOfEpoch, measured)
    }

    /// Validates on a few batches before the first step, only to find errors.
    pub(super) fn check_validation(&self, valid: &mut OpenFeed<'_>) -> Result<(), Error> {
        let Evaluation { outputs, rows, .. } = self.scorer.evaluate_first(valid, self.config.sanity_validation)?;
        self.validation.try_out(&outputs, rows.as_deref())
    }

    /// The batch of the epoch after which the model is validated next within it; `usize::MAX` if there is none.
    pub(super) fn next_check(&self, epoch: usize, n_done: usize) -> usize {
        let is_validated = (epoch + 1).is_multiple_of(self.config.validate_every.max(1));
        let interval = self.check_interval.filter(|_| is_validated);
        let next = interval.map(|interval| next_multiple(interval, self.config.accumulate, n_done));
        next.filter(|&next| next < self.n_batches).unwrap_or(usize::MAX)
    }

    /// Evaluates the model on the validation rows, and notifies the callbacks, which may end the run.
    fn validate(&self, fit: &mut Fit, when: When, losses: &EpochLosses) -> Result<(EpochMetrics, ControlFlow<()>), Error> {
        // Each replica has its own batch statistics; all of them score with those of the first.
        self.replicas.broadcast_buffers(&self.device, self.params)?;
        self.average.update()?;
        if self.average.ema().is_some() {
            self.replicas.broadcast_buffers(&self.device, &self.evaluated)?;
        }
        let Evaluation { outputs: scores, loss: valid_loss, .. } = self.scorer.evaluate(fit.valid)?;
        let valid_loss = valid_loss.unwrap_or(f64::NAN);
        let mut values = self.validation.measure(&scores, losses.mean, valid_loss)?;
        values.extend(self.scaling(losses));
        let metrics = self.measured(fit, values);
        let has_warned = fit.report.warnings.iter().any(|warning| matches!(warning, Warning::NonFiniteValidLoss { .. }));
        if !valid_loss.is_finite() && !has_warned {
            self.warn(fit, Warning::NonFiniteValidLoss { epoch: metrics.epoch, batch: metrics.batch, loss: valid_loss });
        }
        let Fit { run, outputs, .. } = fit;
        let value = metrics.get(&self.validation.watched).unwrap_or(f64::NAN);
        (run.last_value, run.is_validated) = (Some(value).filter(|value| !value.is_nan()), true);
        let view = self.view_at(metrics.epoch, run.n_steps);
        let end = ValidationEnd {
            metrics: &metrics,
            outputs: &scores,
            labels: &self.validation.labels,
            is_best: run.is_best(value),
            is_within_epoch: when == When::WithinEpoch,
            is_at_limit: when == When::Limit,
        };
        let mut flow = ControlFlow::Continue(());
        for callback in &mut outputs.callbacks {
            if callback.on_validation_end(&view, &end)?.is_break() {
                flow = ControlFlow::Break(());
            }
        }
        Ok((metrics, flow))
    }

    /// Evaluates the best model again for the callbacks that need its outputs, unless it was validated in this call, whose
    /// `history` they know.
    pub(super) fn notify_best(
        &self,
        best: &Best,
        history: &[EpochMetrics],
        view: RunView<'_>,
        valid: &mut OpenFeed<'_>,
        outputs: &mut Outputs,
    ) -> Result<(), Error> {
        let at = (best.at.epoch(), best.at.batch().unwrap_or(self.n_batches));
        let is_known = history.iter().any(|metrics| (metrics.epoch, metrics.batch) == at);
        // Replicas evaluate together, and their callbacks may differ.
        let is_needed = !self.replicas.is_single() || outputs.callbacks.iter().any(|callback| callback.needs_best_outputs());
        if is_known || !is_needed {
            return Ok(());
        }
        best.write(&self.evaluated, &self.device)?;
        let Evaluation { outputs: scores, .. } = self.scorer.evaluate(valid)?;
        let asking = outputs.callbacks.iter_mut().filter(|callback| callback.needs_best_outputs());
        asking.into_iter().try_for_each(|callback| callback.on_best_outputs(&view, &scores, &self.validation.labels))
    }

    /// Shows metrics, and adds them to the log and the history.
    fn record(&self, fit: &mut Fit, when: When, measured: EpochMetrics) -> Result<(), Error> {
        let n_batches = &self.n_batches;
        let metrics: Vec<(&str, f64)> = measured.values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let is_shown = |name: &str| fit.run.is_validated || !self.validation.is_of_validation(name);
        let shown: Vec<(&str, f64)> = metrics.iter().filter(|(name, _)| is_shown(name)).copied().collect();
        self.show(fit.outputs, |progress| match when {
            When::WithinEpoch => progress.validated(measured.batch, *n_batches, &shown),
            When::EndOfEpoch | When::Limit => progress.epoch_finished(&shown),
        });
        if when != When::Limit {
            let lr = self.rate(&fit.run, self.last_step(&fit.run));
            let epoch = fit.run.position().in_epochs(*n_batches);
            if let Some(log) = &mut fit.log {
                log.append(&[&[("epoch", epoch), ("lr", lr)], &metrics[..]].concat())?;
            }
            fit.run.n_log_rows += 1;
        }
        fit.report.history.push(measured);
        Ok(())
    }

    /// Reduces the learning rates of all further steps if the metric that was `value` has stopped improving.
    fn reduce_rates(&self, Fit { run, outputs, .. }: &mut Fit, value: f64) {
        let lr = self.config.schedule.rate(self.last_step(run), run.schedule_steps);
        let Some(plateau) = &mut run.plateau else { return };
        let before = plateau.rate(lr) as f32;
        if plateau.step(value, lr) {
            let (metric, after) = (self.validation.monitored().unwrap_or_default(), plateau.rate(lr) as f32);
            let note = format!("`{metric}` has stopped improving: the learning rate is reduced from {before} to {after}");
            self.show(outputs, |progress| progress.note(&note));
        }
    }

    /// The last step of the run so far, from 0.
    fn last_step(&self, run: &RunState) -> usize {
        (run.n_steps + run.n_batches / self.config.accumulate).saturating_sub(1)
    }

    fn measured(&self, fit: &Fit, values: Vec<(String, f64)>) -> EpochMetrics {
        let at = fit.run.position();
        EpochMetrics { epoch: at.epoch(), batch: at.batch().unwrap_or(self.n_batches), values }
    }

    /// The loss scale and the number of steps skipped in the epoch so far, if the loss is scaled.
    fn scaling(&self, losses: &EpochLosses) -> Vec<(String, f64)> {
        if !self.step.scaler.config().enabled {
            return Vec::new();
        }
        vec![("loss_scale".to_owned(), f64::from(losses.scaler.scale)), ("skipped".to_owned(), f64::from(losses.n_skipped))]
    }
}

/// The first multiple of `interval`, rounded up to one of `accumulate`, that is more than `n_done`.
fn next_multiple(interval: usize, accumulate: usize, n_done: usize) -> usize {
    let complete = n_done - n_done % accumulate;
    ((complete / interval + 1) * interval).next_multiple_of(accumulate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_after_complete_steps() {
        for (interval, accumulate, expected) in [
            (1, 1, (1..=11).collect()),
            (3, 1, vec![3, 6, 9, 12]),
            (3, 2, vec![4, 6, 10, 12]),
            (2, 5, vec![5, 10, 15]),
            (7, 5, vec![10, 15]),
        ] {
            let points: Vec<usize> = (0..=10).map(|n_done| next_multiple(interval, accumulate, n_done)).collect();
            assert!(points.iter().zip(0..).all(|(&next, n_done)| next > n_done), "{points:?}");
            let mut found = points;
            found.dedup();
            assert_eq!(found, expected, "every {interval} batches, {accumulate} per step");
        }
    }
}
