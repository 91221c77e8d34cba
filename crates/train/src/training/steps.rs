//! The steps of an epoch.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::checks::When;
use super::epochs::Fit;
use super::told::Told;
use super::{Ended, Outputs, Training};
use crate::callback::RunView;
use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::feed::{Cursor, OpenFeed};
use crate::run_state::RunState;

/// The maximum number of steps that are submitted at a time, so that the progress bar moves and a request to stop is noticed.
const MAX_STEPS_AT_A_TIME: usize = 64;

/// About how long the steps that are submitted at a time may take, if steps are slow.
const TIME_OF_STEPS: Duration = Duration::from_millis(250);

/// How far the steps of an epoch got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steps {
    All,
    /// Up to a limit on the number of steps or the time.
    Limited(Ended),
    /// Up to a request to stop, or to a validation that ends the run.
    Ended(Ended),
}

impl Training<'_> {
    /// Replays the step for the rest of an epoch, some batches at a time, with the validations within it. Returns where it ended, and how many batches are
    /// done.
    pub(super) fn run_steps(
        &self,
        fit: &mut Fit<'_, '_>,
        rates: &[f32],
        train: &mut OpenFeed<'_>,
        valid: &mut OpenFeed<'_>,
    ) -> Result<(Steps, usize), Error> {
        let Self { config, replicas, n_batches, .. } = self;
        let (from, epoch) = (fit.run.n_batches, fit.run.n_epochs as u32);
        let saved_every = config.checkpoint_every.saturating_mul(config.accumulate);
        // A limit on the number of steps may end the epoch before its last batch.
        let steps_left = config.max_steps.map_or(usize::MAX, |max_steps| max_steps.saturating_sub(fit.run.n_steps));
        let end = steps_left.saturating_mul(config.accumulate).min(*n_batches);
        let mut steps = if end < *n_batches { Steps::Limited(Ended::MaxSteps) } else { Steps::All };
        let view = RunView { epoch: fit.run.n_epochs + 1, n_steps: fit.run.n_steps, ..self.view() };
        let mut told = Told::new(view, rates, from);
        let (mut n_done, mut most) = (from, 1);
        let started = Instant::now();
        let (mut saved, mut checked) = (started, started);
        let (mut time_of_checks, mut is_checking) = (Duration::ZERO, false);
        let asked = |n_done: usize, outputs: &Outputs| self.next_asked(view.n_steps, n_done, outputs);
        let result = train.each_turn_from(from, epoch, Cursor::Epoch, MAX_STEPS_AT_A_TIME, |turn| {
            let turn_end = (turn.first_batch + turn.n_batches).min(end);
            while n_done < turn_end {
                let is_late = self.is_late(fit);
                if fit.outputs.stop.is_requested() || is_late {
                    match replicas {
                        None => {
                            steps = if is_late { Steps::Limited(Ended::MaxTime) } else { Steps::Ended(Ended::Stopped) };
                            return Ok(ControlFlow::Break(()));
                        }
                        Some(replicas) => replicas.ask_to_stop(),
                    }
                }
                // Replicas exchange their stop requests with every loss, so that all of them end after the same step.
                let most_now = if replicas.is_some() || config.detect_anomaly { 1 } else { most };
                // The first replay of a program is slower than the others.
                let is_profiled = config.profile_batches > 0 && fit.report.profile.is_none() && fit.n_batches + n_done > from;
                let most_now = if is_profiled { config.profile_batches.min(MAX_STEPS_AT_A_TIME) } else { most_now };
                let most_now = most_now.min(turn_end - n_done);
                let until_saved = n_done.checked_rem(saved_every).map_or(usize::MAX, |n| saved_every - n);
                // Once a checkpoint is due by the clock, it is written after the next complete step.
                let is_due = config.checkpoint_interval.is_some_and(|interval| saved.elapsed() >= interval);
                let until_saved =
                    if is_due { until_saved.min(config.accumulate - n_done % config.accumulate) } else { until_saved };
                let until_checked = self.next_check(fit.run.n_epochs, n_done) - n_done;
                let until_asked = asked(n_done, fit.outputs) - n_done;
                let n = most_now.min(until_saved).min(until_checked).min(until_asked);
                if let Some(replicas) = replicas {
                    let n_batches = u64::from(epoch) * *n_batches as u64 + n_done as u64;
                    replicas.at_step(n_batches / config.accumulate as u64);
                }
                let replayed = Instant::now();
                if is_profiled {
                    fit.report.profile = Some(self.step.executable.profile(n)?);
                } else {
                    self.step.executable.run(n)?;
                    most = steps_in(TIME_OF_STEPS, n, replayed.elapsed());
                }
                if config.detect_anomaly {
                    self.check_anomaly(fit.run.n_epochs, n_done)?;
                }
                n_done += n;
                fit.run.is_validated = false;
                // What a checkpoint or a validation covers is told before.
                let is_saved = n == until_saved && n_done < *n_batches;
                if n == until_asked || n == until_checked || is_saved || n_done >= end || told.is_due() {
                    self.tell(&mut told, n_done, fit.outputs)?;
                }
                if n == until_asked {
                    self.tell_step(&told, fit.outputs)?;
                }
                if n == until_checked {
                    (is_checking, checked) = (true, Instant::now());
                    let ended = self.check_within(fit, n_done, valid)?;
                    (saved, is_checking) = (Instant::now(), false);
                    time_of_checks += checked.elapsed();
                    if let Some(ended) = ended {
                        steps = Steps::Ended(ended);
                        return Ok(ControlFlow::Break(()));
                    }
                } else if is_saved {
                    self.look_at_losses(&mut fit.run, n_done)?;
                    self.save_last(&fit.run, fit.outputs)?;
                    saved = Instant::now();
                }
                self.look_at_checkpoints(fit.outputs)?;
                // After the last batch, the epoch ends as usual, and the run ends with it.
                if n_done < *n_batches && replicas.is_some_and(DataParallel::is_stop_agreed) {
                    steps = Steps::Ended(Ended::Stopped);
                    return Ok(ControlFlow::Break(()));
                }
            }
            self.show(fit.outputs, |progress| progress.advance(turn.n_rows as u64));
            Ok(if n_done >= end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        // Also if a request to stop, a limit or an error ends the epoch.
        let told_all = if told.is_failed() || is_checking { Ok(()) } else { self.tell(&mut told, n_done, fit.outputs) };
        if let Err(error) = result {
            // A run that resumed from here would skip what failed: a validation, or a callback.
            if config.checkpoint_on_error && n_done > from && !is_checking && !told.is_failed() {
                // This error is reported, whether or not the checkpoint can be written.
                drop(self.save_after_error(&mut fit.run, n_done, &error, fit.outputs));
            }
            return Err(error);
        }
        told_all?;
        self.device.wait()?;
        fit.report.train_seconds += started.elapsed().saturating_sub(time_of_checks).as_secs_f64();
        fit.n_batches += n_done - from;
        fit.n_rows += self.rows_before(n_done) - self.rows_before(from);
        if n_done == *n_batches && matches!(steps, Steps::Limited(_)) {
            steps = Steps::All;
        }
        Ok((steps, n_done))
    }

    /// Validates within an epoch, and writes the checkpoint to resume from.
    fn check_within(&self, fit: &mut Fit<'_, '_>, n_done: usize, valid: &mut OpenFeed<'_>) -> Result<Option<Ended>, Error> {
        let losses = self.look_at_losses(&mut fit.run, n_done)?;
        if self.config.max_time.is_some() {
            fit.run.seconds = fit.seconds();
        }
        let (ended, mut snapshot) = self.check(fit, When::WithinEpoch, &losses, valid)?;
        self.save_last_of(&mut snapshot, &fit.run, fit.outputs)?;
        Ok(ended)
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
}

/// How many steps take about `time`, if `n` steps took `elapsed`; at least one.
fn steps_in(time: Duration, n: usize, elapsed: Duration) -> usize {
    let n_steps = n as f64 * time.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    (n_steps as usize).clamp(1, MAX_STEPS_AT_A_TIME)
}
