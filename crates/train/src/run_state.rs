mod position;

use std::str::FromStr;

use brisk_nn::tensor::program::Device;
use brisk_nn::{Buffer, Parameters};

use crate::checkpoint::{Checkpoint, SharedSlice};
use crate::early_stopping::EarlyStopping;
use crate::error::Error;
use crate::flat::{self, Flat};
use crate::reduce_lr_on_plateau::{PlateauState, ReduceLrOnPlateau};

pub(crate) use position::Position;

/// The state of a run between two steps, except for what is on the device.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    /// Finished epochs.
    pub(crate) n_epochs: usize,
    /// Optimizer steps in the finished epochs, including skipped ones.
    pub(crate) n_steps: usize,
    /// Finished batches of the epoch that follows: a whole number of steps.
    pub(crate) n_batches: usize,
    /// The losses of these batches and the number of their steps that were skipped, if they were read for a checkpoint.
    pub(crate) losses: Vec<f32>,
    /// The sums of the weights of the rows of these batches.
    pub(crate) loss_weights: Vec<f32>,
    pub(crate) n_skipped: u32,
    /// The scaler's count when it was last read.
    pub(crate) skipped_before: u32,
    /// The watched metric when the model was last validated, unless it is not a number.
    pub(crate) last_value: Option<f64>,
    /// Whether the model was validated after its last step.
    pub(crate) is_validated: bool,
    /// Steps for which the schedule was planned.
    pub(crate) schedule_steps: usize,
    /// Rows of the log: one per epoch, and one per validation within an epoch.
    pub(crate) n_log_rows: usize,
    /// Seconds of training and validation so far, if the time of the run is limited.
    pub(crate) seconds: f64,
    pub(crate) early_stopping: EarlyStopping,
    pub(crate) plateau: Option<ReduceLrOnPlateau>,
    pub(crate) best: Option<Best>,
    /// The validations whose checkpoints are kept, and the watched metric of each, the best first.
    pub(crate) kept: Vec<(Position, f64)>,
}

/// The metadata with the validations whose checkpoints are kept: `3:0.91 4+120:0.9`.
const KEPT: &str = "kept_checkpoints";

/// The metadata with the number of rows of the log, if that is not the number of epochs.
const LOG_ROWS: &str = "log_rows";

/// The metadata of a checkpoint from within an epoch, if the model was validated after its last step.
const VALIDATED: &str = "validated";

/// The metadata with the state of [`RunState::plateau`], if there is one.
const PLATEAU_BEST: &str = "plateau.best";
const PLATEAU_BAD: &str = "plateau.n_bad";
const PLATEAU_COOLDOWN: &str = "plateau.cooldown_left";
const PLATEAU_REDUCTIONS: &str = "plateau.n_reductions";

/// The tensor with the losses of an unfinished epoch.
const LOSSES: &str = "run.losses";

/// The tensor with the sums of the weights of the rows of its batches; checkpoints of earlier versions do not have it.
const LOSS_WEIGHTS: &str = "run.loss_weights";

/// The metadata with the watched metric of the best model; for the last model, the metadata is named after the metric.
const BEST_VALUE: &str = "best_value";

/// The metadata with the epoch of the best model, and with the batch if that was within the epoch.
const BEST_EPOCH: &str = "best_epoch";
const BEST_BATCH: &str = "best_batch";

#[derive(Debug, Clone)]
pub(crate) struct Best {
    /// When it was validated.
    pub(crate) at: Position,
    /// The watched metric.
    pub(crate) value: f64,
    /// The part of the parameters that this replica keeps.
    values: SharedSlice<f32>,
    buffers: Vec<Vec<f32>>,
}

impl RunState {
    pub(crate) fn new(early_stopping: EarlyStopping, plateau: Option<ReduceLrOnPlateau>) -> Self {
        Self { early_stopping, plateau, ..Self::default() }
    }

    pub(crate) fn position(&self) -> Position {
        Position { n_epochs: self.n_epochs, n_batches: self.n_batches }
    }

    /// Counts the epoch as finished, after `n_steps` steps.
    pub(crate) fn finish_epoch(&mut self, n_steps: usize) {
        self.n_epochs += 1;
        self.n_steps += n_steps;
        (self.n_batches, self.n_skipped) = (0, 0);
        (self.losses, self.loss_weights) = (Vec::new(), Vec::new());
    }

    /// Whether a model with this value of the watched metric is the best so far.
    pub(crate) fn is_best(&self, value: f64) -> bool {
        !value.is_nan() && self.best.as_ref().is_none_or(|best| self.early_stopping.direction().is_better(value, best.value))
    }

    /// Adds the position of the run.
    pub(crate) fn insert_into(&self, checkpoint: &mut Checkpoint) -> Result<(), Error> {
        checkpoint.insert_metadata("epoch", self.n_epochs);
        checkpoint.insert_metadata("step", self.n_steps);
        checkpoint.insert_metadata("early_stopping", self.early_stopping.state);
        if let Some(PlateauState { best, n_bad, cooldown_left, n_reductions }) =
            self.plateau.as_ref().map(|plateau| plateau.state)
        {
            best.into_iter().for_each(|best| checkpoint.insert_metadata(PLATEAU_BEST, best));
            checkpoint.insert_metadata(PLATEAU_BAD, n_bad);
            checkpoint.insert_metadata(PLATEAU_COOLDOWN, cooldown_left);
            checkpoint.insert_metadata(PLATEAU_REDUCTIONS, n_reductions);
        }
        if self.seconds > 0.0 {
            checkpoint.insert_metadata("seconds", self.seconds);
        }
        if !self.kept.is_empty() {
            let kept: Vec<String> = self.kept.iter().map(|(at, value)| format!("{at}:{value}")).collect();
            checkpoint.insert_metadata(KEPT, kept.join(" "));
        }
        if self.n_log_rows != self.n_epochs {
            checkpoint.insert_metadata(LOG_ROWS, self.n_log_rows);
        }
        if self.n_batches > 0 {
            if self.is_validated {
                checkpoint.insert_metadata(VALIDATED, true);
            }
            checkpoint.insert_metadata("batch", self.n_batches);
            checkpoint.insert_metadata("skipped", self.n_skipped);
            checkpoint.insert(LOSSES, &[self.n_batches], self.losses.clone())?;
            checkpoint.insert(LOSS_WEIGHTS, &[self.n_batches], self.loss_weights.clone())?;
        }
        Ok(())
    }

    /// Adds the best model to a checkpoint of a later state.
    pub(crate) fn insert_best_into(&self, checkpoint: &mut Checkpoint, flat: &Flat<'_>) -> Result<(), Error> {
        let Some(best) = &self.best else { return Ok(()) };
        checkpoint.insert_metadata(BEST_EPOCH, best.at.epoch());
        if let Some(batch) = best.at.batch() {
            checkpoint.insert_metadata(BEST_BATCH, batch);
        }
        checkpoint.insert_metadata(BEST_VALUE, best.value);
        flat.insert_values(checkpoint, &best.values, best_name)?;
        for (buffer, values) in flat.params.buffers().iter().zip(&best.buffers).filter(|_| flat.is_first()) {
            checkpoint.insert(best_name(buffer.name()), buffer.shape(), values.clone())?;
        }
        Ok(())
    }

    /// The state of the run that wrote the checkpoint.
    pub(crate) fn of(
        checkpoint: &Checkpoint,
        early_stopping: EarlyStopping,
        plateau: Option<ReduceLrOnPlateau>,
        watched: &str,
        params: &Parameters,
    ) -> Result<Self, Error> {
        let mut run = Self::new(early_stopping, plateau);
        run.n_epochs = checkpoint.metadata("epoch", "a number of epochs")?;
        run.n_steps = checkpoint.metadata("step", "a number of steps")?;
        run.early_stopping.state = checkpoint.metadata("early_stopping", "the state of early stopping")?;
        // A run that is allowed to resume with this setting although it did not have it starts without earlier values.
        if let Some(plateau) = run.plateau.as_mut().filter(|_| checkpoint.has_metadata(PLATEAU_REDUCTIONS)) {
            plateau.state = PlateauState {
                best: checkpoint.metadata_if_any(PLATEAU_BEST, "a number")?,
                n_bad: checkpoint.metadata(PLATEAU_BAD, "a number of validations")?,
                cooldown_left: checkpoint.metadata(PLATEAU_COOLDOWN, "a number of validations")?,
                n_reductions: checkpoint.metadata(PLATEAU_REDUCTIONS, "a number of reductions")?,
            };
        }
        run.seconds = checkpoint.metadata_if_any("seconds", "a number of seconds")?.unwrap_or(run.seconds);
        let kept = checkpoint.metadata_if_any(KEPT, "epochs and values, such as `3:0.91 4+120:0.9`")?;
        run.kept = kept.map_or_else(Vec::new, |Placement(kept)| kept);
        run.last_value = Some(checkpoint.metadata(watched, "a number")?).filter(|value: &f64| !value.is_nan());
        run.n_log_rows = checkpoint.metadata_if_any(LOG_ROWS, "a number of rows")?.unwrap_or(run.n_epochs);
        run.is_validated = checkpoint.metadata_if_any(VALIDATED, "true or false")?.unwrap_or(false);
        if let Some(n_batches) = checkpoint.metadata_if_any("batch", "a number of batches")? {
            run.n_batches = n_batches;
            run.n_skipped = checkpoint.metadata("skipped", "a number of steps")?;
            run.losses = checkpoint.f32(LOSSES, &[run.n_batches])?.to_vec();
            run.loss_weights = match checkpoint.contains(LOSS_WEIGHTS) {
                true => checkpoint.f32(LOSS_WEIGHTS, &[run.n_batches])?.to_vec(),
                false => vec![1.0; run.n_batches],
            };
        }
        run.best = if let Some(epoch) = checkpoint.metadata_if_any(BEST_EPOCH, "an epoch")? {
            let at = Position::of(epoch, checkpoint.metadata_if_any(BEST_BATCH, "a batch")?);
            let value = checkpoint.metadata(BEST_VALUE, "a number")?;
            Some(Best::of(checkpoint, at, value, params, best_name)?)
        } else {
            // This is the checkpoint of the best model itself, or the model is not validated yet.
            let value = run.last_value.filter(|_| run.position() != Position::default());
            value.map(|value| Best::of(checkpoint, run.position(), value, params, str::to_owned)).transpose()?
        };
        Ok(run)
    }

    /// Returns to the start of the unfinished epoch.
    pub(crate) fn restart_epoch(&mut self) {
        (self.n_batches, self.n_skipped, self.is_validated) = (0, 0, false);
        (self.losses, self.loss_weights) = (Vec::new(), Vec::new());
    }

    /// Refuses values of a checkpoint that no run with so many batches per epoch and per step can have written.
    pub(crate) fn check(&self, checkpoint: &Checkpoint, n_batches: usize, accumulate: usize) -> Result<(), Error> {
        // The device counts in 32 bits.
        let most = u32::MAX as usize;
        let (best, state) = (self.best.as_ref(), &self.early_stopping.state);
        let wrong = if self.n_epochs > most || self.n_steps > most {
            Some(format!("epoch {}, step {} is more than a run can count", self.n_epochs, self.n_steps))
        } else if self.n_steps < self.n_epochs {
            Some(format!("{} epochs have {} steps, expected at least one each", self.n_epochs, self.n_steps))
        } else if self.n_batches >= n_batches.max(1) {
            Some(format!("it was written after batch {} of an epoch that has {n_batches}", self.n_batches))
        } else if !self.n_batches.is_multiple_of(accumulate.max(1)) {
            Some(format!("it was written after batch {}, within a step of {accumulate} batches", self.n_batches))
        } else if self.n_skipped as usize > self.n_batches {
            Some(format!("{} steps were skipped in {} batches", self.n_skipped, self.n_batches))
        } else if self.best.is_some() && self.last_value.is_none() {
            Some("the watched metric is not a number".to_owned())
        } else if !(self.n_epochs..=most).contains(&self.n_log_rows) {
            Some(format!("the log of {} epochs has {} rows, expected at least one each", self.n_epochs, self.n_log_rows))
        } else if let Some(best) = best.filter(|Best { at, value, .. }| value.is_nan() || !self.may_have_been(*at)) {
            Some(format!("the best of {} epochs is epoch {} with {}", self.n_epochs, best.at.epoch(), best.value))
        } else if state.wait_count > self.n_log_rows || state.best.is_some_and(f64::is_nan) {
            Some(format!("the state of early stopping after {} epochs is `{state}`", self.n_epochs))
        } else {
            let wrong = self.plateau.as_ref().map(|plateau| plateau.state).filter(|state| !self.may_have(state));
            wrong.map(|state| format!("the state of `reduce_lr_on_plateau` after {} epochs is {state:?}", self.n_epochs))
        };
        let damaged = |reason| Error::damaged(checkpoint.name(), None, reason);
        wrong.map_or(Ok(()), |reason| Err(damaged(reason)))
    }

    /// Whether validations so far can have led to this state.
    fn may_have(&self, state: &PlateauState) -> bool {
        state.n_bad.max(state.n_reductions) <= self.n_log_rows && !state.best.is_some_and(f64::is_nan)
    }

    /// Whether the run can have been at this position. It may be in an epoch that was started again.
    fn may_have_been(&self, at: Position) -> bool {
        at > Position::default() && at.n_epochs <= self.n_epochs
    }
}

impl Best {
    /// The model that is on the device, whose parameters have these values.
    pub(crate) fn read(
        at: Position,
        value: f64,
        values: SharedSlice<f32>,
        params: &Parameters,
        device: &Device,
    ) -> Result<Self, Error> {
        let buffers = params.buffers().iter().map(|buffer| device.read(buffer.values())).collect::<Result<_, _>>()?;
        Ok(Self { at, value, values, buffers })
    }

    fn of(
        checkpoint: &Checkpoint,
        at: Position,
        value: f64,
        params: &Parameters,
        name: fn(&str) -> String,
    ) -> Result<Self, Error> {
        let values = flat::values_of(checkpoint, params, name)?.into();
        let buffer = |buffer: &Buffer| Ok(checkpoint.f32(&name(buffer.name()), buffer.shape())?.to_vec());
        let buffers = params.buffers().iter().map(buffer).collect::<Result<_, Error>>()?;
        Ok(Self { at, value, values, buffers })
    }

    pub(crate) fn write(&self, params: &Parameters, device: &Device) -> Result<(), Error> {
        device.write(params.values(), &self.values)?;
        Ok(params.buffers().iter().zip(&self.buffers).try_for_each(|(buffer, values)| device.write(buffer.values(), values))?)
    }
}

/// [`RunState::kept`] in a checkpoint.
struct Placement(Vec<(Position, f64)>);

impl FromStr for Placement {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let kept = |item: &str| {
            let (at, value) = item.split_once(':')?;
            Some((at.parse().ok()?, value.parse().ok()?))
        };
        text.split(' ').map(kept).collect::<Option<_>>().map(Self).ok_or(())
    }
}

/// The name of a tensor of the best model.
pub(crate) fn best_name(name: &str) -> String {
    format!("best.{name}")
}
