use brisk_nn::tensor::program::Device;
use brisk_nn::{Buffer, Parameters};

use crate::flat::{self, Flat};
use crate::{Checkpoint, EarlyStopping, Error, Mode};

/// Where a run stands between two steps, besides what is on the device.
#[derive(Debug)]
pub(crate) struct RunState {
    /// Epochs done, validation included.
    pub(crate) n_epochs: usize,
    /// Steps of the optimizer in them, those that were skipped among them.
    pub(crate) n_steps: usize,
    /// Batches done of the epoch behind them; whole steps of them.
    pub(crate) n_batches: usize,
    /// Their losses, and how many of the steps were skipped, where they are those of a checkpoint.
    pub(crate) losses: Vec<f32>,
    pub(crate) n_skipped: u32,
    /// What the scaler counted when that was looked at last.
    pub(crate) skipped_before: u32,
    /// Of the last epoch that was validated; not a number before.
    pub(crate) last_auc: f64,
    pub(crate) early_stopping: EarlyStopping,
    pub(crate) best: Option<Best>,
}

/// Losses of the batches of an epoch that is not done.
const LOSSES: &str = "run.losses";

/// The best epoch so far, and the model as it was then.
#[derive(Debug, Clone)]
pub(crate) struct Best {
    /// From 1.
    pub(crate) epoch: usize,
    pub(crate) auc: f64,
    /// What this replica keeps of them.
    values: Vec<f32>,
    buffers: Vec<Vec<f32>>,
}

impl RunState {
    pub(crate) fn new(patience: usize) -> Self {
        let early_stopping = EarlyStopping { patience: patience.max(1), ..EarlyStopping::new(Mode::Max) };
        Self {
            n_epochs: 0,
            n_steps: 0,
            n_batches: 0,
            losses: Vec::new(),
            n_skipped: 0,
            skipped_before: 0,
            last_auc: f64::NAN,
            early_stopping,
            best: None,
        }
    }

    /// Whether `auc` is better than all before; if so, the model that is on the device is the best.
    pub(crate) fn keep_if_best(&mut self, auc: f64, params: &Parameters, device: &Device) -> Result<bool, Error> {
        if self.best.as_ref().is_some_and(|best| auc <= best.auc) {
            return Ok(false);
        }
        let buffers = params.buffers().iter().map(|buffer| device.read(buffer.values())).collect::<Result<_, _>>()?;
        self.best = Some(Best { epoch: self.n_epochs, auc, values: device.read(params.values())?, buffers });
        Ok(true)
    }

    /// Adds where the run stands.
    pub(crate) fn insert_into(&self, checkpoint: &mut Checkpoint) -> Result<(), Error> {
        checkpoint.insert_metadata("epoch", self.n_epochs);
        checkpoint.insert_metadata("step", self.n_steps);
        checkpoint.insert_metadata("early_stopping", self.early_stopping.state);
        if self.n_batches > 0 {
            checkpoint.insert_metadata("batch", self.n_batches);
            checkpoint.insert_metadata("skipped", self.n_skipped);
            checkpoint.insert(LOSSES, &[self.n_batches], self.losses.clone())?;
        }
        Ok(())
    }

    /// Adds the best model to a checkpoint whose own it is not.
    pub(crate) fn insert_best_into(&self, checkpoint: &mut Checkpoint, flat: &Flat<'_>) -> Result<(), Error> {
        let Some(best) = &self.best else { return Ok(()) };
        checkpoint.insert_metadata("best_epoch", best.epoch);
        checkpoint.insert_metadata("best_auc", best.auc);
        flat.insert_values(checkpoint, &best.values, best_name)?;
        for (buffer, values) in flat.params.buffers().iter().zip(&best.buffers).filter(|_| flat.is_first()) {
            checkpoint.insert(best_name(buffer.name()), buffer.shape(), values.clone())?;
        }
        Ok(())
    }

    /// Where the run stood that left the checkpoint.
    pub(crate) fn of(checkpoint: &Checkpoint, patience: usize, params: &Parameters) -> Result<Self, Error> {
        let mut run = Self::new(patience);
        run.n_epochs = checkpoint.metadata("epoch", "a number of epochs")?;
        run.n_steps = checkpoint.metadata("step", "a number of steps")?;
        run.early_stopping.state = checkpoint.metadata("early_stopping", "the state of early stopping")?;
        run.last_auc = checkpoint.metadata("valid_auc", "an area under a curve")?;
        if checkpoint.all_metadata().any(|(name, _)| name == "batch") {
            run.n_batches = checkpoint.metadata("batch", "a number of batches")?;
            run.n_skipped = checkpoint.metadata("skipped", "a number of steps")?;
            run.losses = checkpoint.f32(LOSSES, &[run.n_batches])?.to_vec();
        }
        let holds_best = checkpoint.all_metadata().any(|(name, _)| name == "best_epoch");
        run.best = match (holds_best, run.n_epochs) {
            (true, _) => {
                let epoch = checkpoint.metadata("best_epoch", "an epoch")?;
                let auc = checkpoint.metadata("best_auc", "an area under a curve")?;
                Some(Best::of(checkpoint, epoch, auc, params, best_name)?)
            }
            (false, 0) => None,
            (false, epoch) => {
                let auc = checkpoint.metadata("valid_auc", "an area under a curve")?;
                Some(Best::of(checkpoint, epoch, auc, params, str::to_owned)?)
            }
        };
        Ok(run)
    }
}

impl Best {
    fn of(checkpoint: &Checkpoint, epoch: usize, auc: f64, params: &Parameters, name: fn(&str) -> String) -> Result<Self, Error> {
        let values = params.values_of(&flat::values_of(checkpoint, params, name)?);
        let buffer = |buffer: &Buffer| Ok(checkpoint.f32(&name(buffer.name()), buffer.shape())?.to_vec());
        let buffers = params.buffers().iter().map(buffer).collect::<Result<_, Error>>()?;
        Ok(Self { epoch, auc, values, buffers })
    }

    /// Puts the model on the device.
    pub(crate) fn write(&self, params: &Parameters, device: &Device) -> Result<(), Error> {
        device.write(params.values(), &self.values)?;
        Ok(params.buffers().iter().zip(&self.buffers).try_for_each(|(buffer, values)| device.write(buffer.values(), values))?)
    }
}

fn best_name(name: &str) -> String {
    format!("best.{name}")
}
