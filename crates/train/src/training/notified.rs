//! What callbacks get of the steps of an epoch.

use std::time::{Duration, Instant};

use super::{Outputs, Training};
use crate::callback::{BatchesEnd, RunView, StepEnd};
use crate::error::Error;
use crate::step::check_losses;

/// Without another reason to call them earlier, callbacks are called for the batches of about this much time together.
const TIME_OF_CALLS: Duration = Duration::from_millis(250);

/// The batches of an epoch that the callbacks have been told of.
#[derive(Debug)]
pub(super) struct Notified<'r> {
    view: RunView<'r>,
    /// The learning rate of each batch of the epoch.
    pub(super) rates: Vec<f32>,
    n_batches: usize,
    at: Instant,
    /// The loss and the gradient norm of the last batch.
    last: (f32, Option<f32>),
    pub(super) is_failed: bool,
}

impl<'r> Notified<'r> {
    /// Before the batch `n_batches` of an epoch.
    pub(super) fn new(view: RunView<'r>, rates: Vec<f32>, n_batches: usize) -> Self {
        Self { view, rates, n_batches, at: Instant::now(), last: (f32::NAN, None), is_failed: false }
    }

    /// Whether callbacks have waited long enough.
    pub(super) fn is_due(&self) -> bool {
        self.at.elapsed() >= TIME_OF_CALLS
    }
}

impl Training<'_> {
    /// Notifies callbacks of further batches before `n_done`, and checks that their losses are finite.
    pub(super) fn notify(&self, notified: &mut Notified<'_>, n_done: usize, outputs: &mut Outputs) -> Result<(), Error> {
        notified.at = Instant::now();
        let waits = self.replicas.take_batch_waits();
        let batches = notified.n_batches..n_done;
        if outputs.callbacks.is_empty() || batches.is_empty() {
            return Ok(());
        }
        notified.is_failed = true;
        let losses: Vec<f32> = self.device.read(&self.step.losses)?;
        let grad_norms: Option<Vec<f32>> = self.step.grad_norms.as_ref().map(|norms| self.device.read(norms)).transpose()?;
        let mut shown = losses[batches.clone()].to_vec();
        if self.train.has_weights() {
            let weights = self.step.loss_weights(&self.device)?;
            let weightless = shown.iter_mut().zip(&weights[batches.clone()]).filter(|(_, weight)| **weight == 0.0);
            weightless.for_each(|(loss, _)| *loss = f32::NAN);
        }
        let end = BatchesEnd {
            first_batch: batches.start,
            losses: &shown,
            learning_rates: &notified.rates[batches.clone()],
            waits: &waits,
            grad_norms: grad_norms.as_ref().map_or(&[], |norms| &norms[batches.clone()]),
            n_rows: self.rows_before(batches.end) - self.rows_before(batches.start),
        };
        outputs.callbacks.iter_mut().try_for_each(|callback| callback.on_batches_end(&notified.view, &end))?;
        // An epoch may take hours. In f16, steps that overflow are skipped, and replicas have different clocks: both check at the
        // end of the epoch.
        if !self.step.scaler.config().enabled && self.replicas.is_single() {
            check_losses(&losses[..batches.end], 0, notified.view.epoch - 1)?;
        }
        notified.last = (shown.last().copied().unwrap_or(f32::NAN), grad_norms.map(|norms| norms[batches.end - 1]));
        (notified.n_batches, notified.is_failed) = (n_done, false);
        Ok(())
    }

    /// Tells the callbacks that asked for the step that ends with the last batch told of.
    pub(super) fn notify_step(&self, notified: &Notified<'_>, outputs: &mut Outputs) -> Result<(), Error> {
        let step = notified.view.n_steps + notified.n_batches.div_ceil(self.config.accumulate);
        let (loss, grad_norm) = notified.last;
        let end =
            StepEnd { step, batch: notified.n_batches, loss, learning_rate: notified.rates[notified.n_batches - 1], grad_norm };
        let asks = |every: usize| step.checked_rem(every) == Some(0);
        let asking = outputs.callbacks.iter_mut().filter(|callback| asks(callback.every_n_steps()));
        asking.into_iter().try_for_each(|callback| callback.on_step_end(&notified.view, &end))
    }

    /// The batch of the epoch after which a callback is to be told of a step, the next after `n_done`; `usize::MAX` if there is
    /// none. `n_steps` is the number of steps before the epoch.
    pub(super) fn next_requested(&self, n_steps: usize, n_done: usize, outputs: &Outputs) -> usize {
        let accumulate = self.config.accumulate;
        let of_epoch = self.n_batches.div_ceil(accumulate);
        let done = n_done / accumulate;
        let intervals = outputs.callbacks.iter().map(|callback| callback.every_n_steps()).filter(|&every| every > 0);
        // The steps of the epoch until the next multiple.
        let next = intervals.map(|every| done.saturating_add(every - (n_steps + done) % every)).min();
        next.filter(|&next| next <= of_epoch).map_or(usize::MAX, |next| (next * accumulate).min(self.n_batches))
    }
}
