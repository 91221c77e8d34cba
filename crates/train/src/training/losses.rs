//! The losses of an epoch, and whether any of its steps were taken.

use brisk_nn::ScalerReport;

use super::Training;
use crate::error::Error;
use crate::error::phrases::{count, epochs};
use crate::run_state::RunState;
use crate::step::mean_loss;
use crate::warning::Warning;

/// The losses of the batches of an epoch so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EpochLosses {
    /// The epoch, from 0.
    pub(super) epoch: usize,
    /// Their mean over the rows, by [`mean_loss`].
    pub(super) mean: f64,
    /// The losses of the epoch's first batch and of the last so far; 0 without any.
    pub(super) first: f32,
    pub(super) last: f32,
    /// Steps so far, and how many of them were skipped.
    pub(super) n_steps: usize,
    pub(super) n_skipped: u32,
    pub(super) scaler: ScalerReport,
}

impl Training<'_> {
    /// Reads the losses of the epoch's batches so far, and updates the position in `run`: after the last complete step.
    pub(super) fn read_losses(&self, run: &mut RunState, n_done: usize) -> Result<EpochLosses, Error> {
        let (Self { config, device, .. }, epoch) = (self, run.n_epochs);
        let scaler = self.step.scaler.report(device)?;
        run.n_skipped += scaler.n_skipped.wrapping_sub(run.skipped_before);
        run.skipped_before = scaler.n_skipped;
        let losses: Vec<f32> = device.read(&self.step.losses)?;
        let losses = &losses[..n_done];
        let (first, last) = (losses.first().copied().unwrap_or(0.0), losses.last().copied().unwrap_or(0.0));
        if scaler.n_skipped_in_a_row >= config.max_skipped {
            let ScalerReport { scale, n_skipped_in_a_row: n_skipped, .. } = scaler;
            return Err(Error::SkippedSteps { first_epoch: None, last_epoch: epoch + 1, n_skipped, scale, loss: last });
        }
        let weights = self.step.loss_weights(device)?;
        let mean = mean_loss(losses, &weights, run.n_skipped as usize * config.accumulate, epoch)?;
        run.n_batches = n_done - n_done % config.accumulate;
        run.losses = losses[..run.n_batches].to_vec();
        run.loss_weights = weights[..run.n_batches].to_vec();
        let n_steps = if n_done == self.n_batches { n_done.div_ceil(config.accumulate) } else { n_done / config.accumulate };
        let losses = EpochLosses { epoch, mean, first, last, n_steps, n_skipped: run.n_skipped, scaler };
        Ok(losses)
    }

    /// Returns an error for a run in which all steps were skipped since its start, so that its model is untrained.
    pub(super) fn check_any_step(&self, run: &RunState) -> Result<(), Error> {
        let n_skipped = run.n_steps + run.n_batches / self.config.accumulate;
        let state: Vec<u32> = self.device.read(self.step.state())?;
        let [_, n_advanced, _, n_not_taken] = state[..] else { return Ok(()) };
        if n_skipped == 0 || n_advanced != n_not_taken {
            return Ok(());
        }
        let ScalerReport { scale, n_skipped: n_overflows, .. } = self.step.scaler.report(&self.device)?;
        if n_overflows == 0 && self.train.has_weights() {
            let (epochs, n_steps) = (epochs(1, run.n_epochs.max(1)), count(n_skipped, "step"));
            let found = format!("no step was taken in {epochs}: the weights of all rows of its {n_steps} are 0");
            let expected = "some above 0; train on more batches, or give some of these rows a weight";
            return Err(Error::row_set("train", found, expected));
        }
        let losses: Vec<f32> = self.device.read(&self.step.losses)?;
        let n_done = if run.n_batches > 0 { run.n_batches } else { self.n_batches };
        let loss = n_done.checked_sub(1).and_then(|last| losses.get(last)).copied().unwrap_or(f32::NAN);
        let (last_epoch, n_skipped) = (run.n_epochs.max(1), n_skipped as u32);
        Err(Error::SkippedSteps { first_epoch: Some(1), last_epoch, n_skipped, scale, loss })
    }
}

impl EpochLosses {
    fn n_taken(&self) -> usize {
        self.n_steps.saturating_sub(self.n_skipped as usize)
    }

    /// Returns an error for an epoch, or the part of it before a limit, without a step that the loss scale does not explain: none
    /// of its losses is finite, or gradients are not although the scale no longer enlarges them. While the scale is above 1 and
    /// losses are finite, steps are skipped to find the right scale.
    pub(super) fn check_epoch(&self) -> Result<(), Error> {
        if self.n_steps > 0 && self.n_taken() == 0 && (self.mean.is_nan() || self.scaler.scale <= 1.0) {
            let (epoch, n_skipped, scale, loss) = (self.epoch + 1, self.n_skipped, self.scaler.scale, self.last);
            return Err(Error::SkippedSteps { first_epoch: Some(epoch), last_epoch: epoch, n_skipped, scale, loss });
        }
        Ok(())
    }

    pub(super) fn warnings(&self) -> Vec<Warning> {
        let is_large = self.epoch == 0 && self.first.abs() >= Warning::LARGE_LOSS;
        let large = is_large.then_some(Warning::LargeLoss { loss: self.first });
        let none = (self.n_steps > 0 && self.n_taken() == 0).then_some(Warning::NoStepTaken {
            epoch: self.epoch + 1,
            n_skipped: self.n_skipped,
            scale: self.scaler.scale,
        });
        large.into_iter().chain(none).collect()
    }
}
