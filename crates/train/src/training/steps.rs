//! The steps of an epoch.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::Training;
use super::checks::When;
use super::due::{Due, Next, next_checkpoint};
use super::fit::Fit;
use super::notified::Notified;
use crate::error::Error;
use crate::feed::{CountFrom, OpenFeed};
use crate::fit_report::Ended;
use crate::step::BATCHES_AT_A_TIME;

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

/// The part of an epoch that a call trains on: its progress and its clocks.
#[derive(Debug)]
struct Part<'r> {
    notified: Notified<'r>,
    /// The batches that were done before.
    from: usize,
    n_done: usize,
    /// The batches after which it ends; a limit on the number of steps may end an epoch before its last batch.
    end: usize,
    steps: Steps,
    /// How many batches take about [`TIME_OF_STEPS`].
    most: usize,
    started: Instant,
    /// When a checkpoint was last written.
    saved: Instant,
    time_of_checks: Duration,
    /// Whether a validation is in progress, which may fail.
    is_checking: bool,
}

impl Training<'_> {
    /// Replays the step for the rest of an epoch, some batches at a time, with the validations within it. Returns where it ended,
    /// and how many batches are done.
    pub(super) fn run_steps(&self, fit: &mut Fit, rates: Vec<f32>, train: &mut OpenFeed<'_>) -> Result<(Steps, usize), Error> {
        let epoch = fit.run.n_epochs as u32;
        let mut part = self.start_part(fit, rates);
        // Those of batches that no callback was told of.
        drop(self.replicas.take_batch_waits());
        let result = train.for_each_range_from(part.from, epoch, CountFrom::Epoch, BATCHES_AT_A_TIME, |range| {
            let range_end = (range.first_batch + range.n_batches).min(part.end);
            while part.n_done < range_end {
                let ended = match self.requested_end(fit) {
                    Some(ended) => Some(ended),
                    None => {
                        let due = self.next_events(&part, fit, range_end).due(part.n_done, self.most_batches(&part, fit));
                        self.replay(&mut part, fit, due)?;
                        self.after_batches(&mut part, fit, due)?
                    }
                };
                if let Some(ended) = ended {
                    part.steps = ended;
                    return Ok(ControlFlow::Break(()));
                }
            }
            self.show(fit.outputs, |progress| progress.advance(range.n_rows as u64));
            Ok(if part.n_done >= part.end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        self.end_part(part, fit, result)
    }

    fn start_part(&self, fit: &Fit, rates: Vec<f32>) -> Part<'_> {
        let Self { config, n_batches, .. } = self;
        let from = fit.run.n_batches;
        let steps_left = config.max_steps.map_or(usize::MAX, |max_steps| max_steps.saturating_sub(fit.run.n_steps));
        let end = steps_left.saturating_mul(config.accumulate).min(*n_batches);
        let started = Instant::now();
        Part {
            notified: Notified::new(self.view_at(fit.run.n_epochs + 1, fit.run.n_steps), rates, from),
            from,
            n_done: from,
            end,
            steps: if end < *n_batches { Steps::Limited(Ended::MaxSteps) } else { Steps::All },
            most: 1,
            started,
            saved: started,
            time_of_checks: Duration::ZERO,
            is_checking: false,
        }
    }

    /// Whether the run ends before the next batch.
    fn requested_end(&self, fit: &Fit) -> Option<Steps> {
        let is_late = self.is_late(fit);
        if !fit.outputs.stop.is_requested() && !is_late {
            return None;
        }
        let ended = if is_late { Steps::Limited(Ended::MaxTime) } else { Steps::Ended(Ended::Stopped) };
        self.replicas.ask_to_stop().then_some(ended)
    }

    /// The next events after the batches that are done.
    fn next_events(&self, part: &Part<'_>, fit: &Fit, range_end: usize) -> Next {
        let Self { config, n_batches, .. } = self;
        let every = config.checkpoint_every.saturating_mul(config.accumulate);
        let is_late = config.checkpoint_interval.is_some_and(|interval| part.saved.elapsed() >= interval);
        Next {
            checkpoint: next_checkpoint(part.n_done, every, config.accumulate, is_late, *n_batches),
            validation: self.next_check(fit.run.n_epochs, part.n_done),
            callback: self.next_requested(fit.run.n_steps, part.n_done, fit.outputs),
            end: range_end,
        }
    }

    /// Whether the next batches are timed kernel by kernel. The first replay of a program is slower than the others.
    fn is_profiled(&self, part: &Part<'_>, fit: &Fit) -> bool {
        self.config.profile_batches > 0 && fit.report.profile.is_none() && fit.n_batches + part.n_done > part.from
    }

    /// The most batches that may be submitted together.
    fn most_batches(&self, part: &Part<'_>, fit: &Fit) -> usize {
        if self.is_profiled(part, fit) {
            return self.config.profile_batches.min(BATCHES_AT_A_TIME);
        }
        if self.config.detect_anomaly { 1 } else { part.most.min(self.replicas.most_batches()) }
    }

    fn replay(&self, part: &mut Part<'_>, fit: &mut Fit, due: Due) -> Result<(), Error> {
        let Self { config, n_batches, step, .. } = self;
        let before = fit.run.n_epochs as u64 * *n_batches as u64 + part.n_done as u64;
        self.replicas.at_batches(before / config.accumulate as u64, due.n_batches);
        if self.is_profiled(part, fit) {
            fit.report.profile = Some(step.executable.profile(due.n_batches)?);
        } else {
            let replayed = Instant::now();
            step.executable.run(due.n_batches)?;
            part.most = steps_in(TIME_OF_STEPS, due.n_batches, replayed.elapsed());
        }
        if config.detect_anomaly {
            self.check_anomaly(fit.run.n_epochs, part.n_done)?;
        }
        part.n_done += due.n_batches;
        fit.run.is_validated = false;
        Ok(())
    }

    /// What follows some batches: callbacks, a validation or a checkpoint. Returns why the epoch ends here, if it does.
    fn after_batches(&self, part: &mut Part<'_>, fit: &mut Fit, due: Due) -> Result<Option<Steps>, Error> {
        // Callbacks get what a checkpoint or a validation covers before it.
        if due.callback || due.validation || due.checkpoint || part.n_done >= part.end || part.notified.is_due() {
            self.notify(&mut part.notified, part.n_done, fit.outputs)?;
        }
        if due.callback {
            self.notify_step(&part.notified, fit.outputs)?;
        }
        if due.validation {
            let checked = Instant::now();
            part.is_checking = true;
            let ended = self.check_within(fit, part.n_done)?;
            (part.saved, part.is_checking) = (Instant::now(), false);
            part.time_of_checks += checked.elapsed();
            if let Some(ended) = ended {
                return Ok(Some(Steps::Ended(ended)));
            }
            if fit.run.plateau.is_some() {
                part.notified.rates = self.write_rates(&fit.run)?;
            }
        }
        if due.checkpoint {
            self.read_losses(&mut fit.run, part.n_done)?;
            self.save_last(fit)?;
            part.saved = Instant::now();
        }
        self.notify_written_checkpoints(fit.outputs)?;
        self.warn_of_copies(fit);
        // After the last batch, the epoch ends as usual, and the run ends with it.
        let is_stopped = part.n_done < self.n_batches && self.replicas.is_stop_agreed();
        Ok(is_stopped.then_some(Steps::Ended(Ended::Stopped)))
    }

    /// Completes what callbacks get, also if a request to stop, a limit or an error ended the epoch.
    fn end_part(&self, mut part: Part<'_>, fit: &mut Fit, result: Result<(), Error>) -> Result<(Steps, usize), Error> {
        let Part { from, n_done, is_checking, .. } = part;
        let has_failed = part.notified.is_failed || is_checking;
        let notified_all = if has_failed { Ok(()) } else { self.notify(&mut part.notified, n_done, fit.outputs) };
        // The rows of the next steps, for which the run need not wait any more: it ends as after the last complete one.
        let is_stopped = self.replicas.is_single() && fit.outputs.stop.is_requested() && !has_failed;
        let result = match result {
            Err(Error::Stream { .. }) if is_stopped => {
                part.steps = Steps::Ended(Ended::Stopped);
                Ok(())
            }
            result => result,
        };
        if let Err(error) = result {
            // A run that resumed from here would skip what failed: a validation, or a callback.
            if self.config.checkpoint_on_error && n_done > from && !is_checking && !part.notified.is_failed {
                // This error is reported, whether or not the checkpoint can be written.
                drop(self.save_after_error(fit, n_done, &error));
            }
            return Err(error);
        }
        notified_all?;
        self.device.wait()?;
        fit.report.train_seconds += part.started.elapsed().saturating_sub(part.time_of_checks).as_secs_f64();
        fit.n_batches += n_done - from;
        fit.n_rows += self.rows_before(n_done) - self.rows_before(from);
        let has_all = n_done == self.n_batches && matches!(part.steps, Steps::Limited(_));
        Ok((if has_all { Steps::All } else { part.steps }, n_done))
    }

    /// Validates within an epoch, and writes the checkpoint to resume from.
    fn check_within(&self, fit: &mut Fit, n_done: usize) -> Result<Option<Ended>, Error> {
        let losses = self.read_losses(&mut fit.run, n_done)?;
        if self.config.max_time.is_some() {
            fit.run.seconds = fit.seconds();
        }
        let ended = self.check(fit, When::WithinEpoch, &losses)?;
        self.save_last_of_moment(fit)?;
        Ok(ended)
    }

    /// Writes the checkpoint of the last complete step, if its losses are finite and all of its steps are done.
    fn save_after_error(&self, fit: &mut Fit, n_done: usize, error: &Error) -> Result<(), Error> {
        let is_complete = n_done.is_multiple_of(self.config.accumulate) && n_done < self.n_batches;
        if !is_complete || !self.replicas.is_single() || matches!(error, Error::NonFiniteLoss { .. }) {
            return Ok(());
        }
        self.device.wait()?;
        self.read_losses(&mut fit.run, n_done)?;
        self.save_last(fit)
    }
}

/// How many steps take about `time`, if `n` steps took `elapsed`; at least one.
fn steps_in(time: Duration, n: usize, elapsed: Duration) -> usize {
    let n_steps = n as f64 * time.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    (n_steps as usize).clamp(1, BATCHES_AT_A_TIME)
}
