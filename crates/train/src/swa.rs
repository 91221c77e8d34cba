use std::ops::ControlFlow;

use crate::callback::{Callback, RunView, ValidationEnd};
use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::fit_report::FitReport;

/// Stochastic weight averaging: the parameters after each epoch that ends with a validation are averaged, starting with a given
/// epoch, and the mean replaces those of the best epoch when the run ends. A [`Callback`].
///
/// Of a run that ends before its first such epoch, as by early stopping, the model is that of the best epoch. Checkpoints, and
/// the report's best value, are always those of an epoch. With [`TrainerConfig::ema`](crate::TrainerConfig::ema), the parameters
/// themselves are averaged, and the mean replaces their exponential average, too.
///
/// Batch statistics are not averaged: with batch normalisation, run an epoch at a learning rate of 0 afterwards, as PyTorch's
/// `update_bn` does.
///
/// # Reference
/// Izmailov et al. 2018, arXiv:1803.05407; `torch.optim.swa_utils.AveragedModel`.
/// # Examples
/// ```
/// use brisk_nn::tensor::program::Device;
/// use brisk_train::{Swa, Trainer};
///
/// let trainer = Trainer::new(&Device::cpu()?).max_epochs(20).callback(Swa::from_epoch(15));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Swa {
    start_epoch: usize,
    mean: Vec<f32>,
    n_models: u32,
}

impl Swa {
    /// Averages the models after the epochs from this one on, counted from 1. A run that has no such epoch is refused.
    pub fn from_epoch(start_epoch: usize) -> Self {
        Self { start_epoch, mean: Vec::new(), n_models: 0 }
    }
}

const MEAN: &str = "swa.mean";
const N_MODELS: &str = "swa.n_models";

impl Callback for Swa {
    fn on_fit_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        if (1..=run.max_epochs).contains(&self.start_epoch) {
            return Ok(());
        }
        let found = format!("epoch {} of a run of {}", self.start_epoch, run.max_epochs);
        Err(Error::setting("swa", found, "an epoch of the run to start with, counted from 1"))
    }

    fn on_validation_end(&mut self, run: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        if run.epoch < self.start_epoch || validation.is_within_epoch || validation.is_at_limit {
            return Ok(ControlFlow::Continue(()));
        }
        let values: Vec<f32> = run.device.read(run.params.values())?;
        self.n_models += 1;
        self.mean.resize(values.len(), 0.0);
        for (mean, value) in self.mean.iter_mut().zip(values) {
            *mean += (value - *mean) / self.n_models as f32;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn on_fit_end(&mut self, run: &RunView<'_>, _: &FitReport) -> Result<(), Error> {
        if self.n_models > 0 {
            run.device.write(run.params.values(), &self.mean)?;
        }
        (self.mean, self.n_models) = (Vec::new(), 0);
        Ok(())
    }

    fn on_save_checkpoint(&self, checkpoint: &mut Checkpoint) -> Result<(), Error> {
        if self.n_models > 0 {
            checkpoint.insert_metadata(N_MODELS, self.n_models);
            checkpoint.insert(MEAN, &[self.mean.len()], self.mean.clone())?;
        }
        Ok(())
    }

    fn on_load_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        if checkpoint.has_metadata(N_MODELS) {
            self.n_models = checkpoint.metadata(N_MODELS, "a number of models")?;
            self.mean = checkpoint.f32_if_any(MEAN)?.unwrap_or_default();
        }
        Ok(())
    }
}
