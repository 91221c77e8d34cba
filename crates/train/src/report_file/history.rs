//! What a report shows of the steps and validations of a run, in checkpoints as well.

use std::str::FromStr;

use serde_json::{Value, json};

use crate::{Checkpoint, EpochMetrics, Error};

/// The batches and validations of a run so far.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The batch of the run, from 0, that `losses` starts with.
    pub(super) first_batch: usize,
    pub(super) losses: Vec<f32>,
    pub(super) rates: Vec<f32>,
    pub(super) validations: Vec<EpochMetrics>,
    /// Epoch and batch of the best of them.
    pub(super) best: Option<(usize, usize)>,
    /// The warnings of the run, each once.
    pub(super) warnings: Vec<String>,
    /// Seconds before the run was resumed.
    pub(super) seconds: f64,
}

/// The metadata with everything but losses and rates.
const HISTORY: &str = "report.history";

/// The tensors with the loss and the learning rate of each batch.
const LOSSES: &str = "report.losses";
const RATES: &str = "report.rates";

impl History {
    /// Adds batches, of which the first is batch `first` of the run. Later ones than it, which a checkpoint did not include, are replaced.
    pub(super) fn add_batches(&mut self, first: usize, losses: &[f32], rates: &[f32]) {
        if self.losses.is_empty() {
            self.first_batch = first;
        }
        for (all, new) in [(&mut self.losses, losses), (&mut self.rates, rates)] {
            all.truncate(first.saturating_sub(self.first_batch));
            all.extend(new);
        }
    }

    /// Adds the history to a checkpoint, unless another report of the same run has done so. `seconds` is the time of the run so far.
    pub(super) fn insert_into(&self, checkpoint: &mut Checkpoint, seconds: f64) -> Result<(), Error> {
        if checkpoint.has_metadata(HISTORY) {
            return Ok(());
        }
        // Numbers as text, since JSON has neither NaN nor infinities.
        let value = |(name, value): &(String, f64)| json!([name, value.to_string()]);
        let validation = |of: &EpochMetrics| json!([of.epoch, of.batch, of.values.iter().map(value).collect::<Vec<_>>()]);
        let history = json!({
            "first_batch": self.first_batch,
            "validations": self.validations.iter().map(validation).collect::<Vec<_>>(),
            "best": self.best,
            "warnings": self.warnings,
            "seconds": seconds,
        });
        checkpoint.insert_metadata(HISTORY, history);
        for (name, values) in [(LOSSES, &self.losses), (RATES, &self.rates)] {
            checkpoint.insert(name, &[values.len()], values.clone())?;
        }
        Ok(())
    }

    /// The history in a checkpoint; empty if it has none.
    ///
    /// # Errors
    /// [`Error::Metadata`], [`Error::MissingTensor`].
    pub(super) fn of(checkpoint: &Checkpoint) -> Result<Self, Error> {
        if !checkpoint.has_metadata(HISTORY) {
            return Ok(Self::default());
        }
        let mut parsed: Self = checkpoint.metadata(HISTORY, "the history of a run")?;
        for (name, values) in [(LOSSES, &mut parsed.losses), (RATES, &mut parsed.rates)] {
            let len = checkpoint.tensors().find(|(found, ..)| *found == name).map_or(0, |(_, shape, _)| shape.iter().product());
            *values = checkpoint.f32(name, &[len])?.to_vec();
        }
        Ok(parsed)
    }
}

/// Everything but losses and rates.
impl FromStr for History {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        serde_json::from_str(text).ok().and_then(|history| parsed(&history)).ok_or(())
    }
}

fn parsed(history: &Value) -> Option<History> {
    let whole = |value: &Value| usize::try_from(value.as_u64()?).ok();
    let value = |value: &Value| Some((value.get(0)?.as_str()?.to_owned(), value.get(1)?.as_str()?.parse().ok()?));
    let validation = |of: &Value| {
        let values = of.get(2)?.as_array()?.iter().map(value).collect::<Option<_>>()?;
        Some(EpochMetrics { epoch: whole(of.get(0)?)?, batch: whole(of.get(1)?)?, values })
    };
    let best = match history.get("best")? {
        Value::Null => None,
        best => Some((whole(best.get(0)?)?, whole(best.get(1)?)?)),
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    Some(History {
        first_batch: whole(history.get("first_batch")?)?,
        validations: history.get("validations")?.as_array()?.iter().map(validation).collect::<Option<_>>()?,
        best,
        // Earlier versions did not keep them.
        warnings: history.get("warnings").map_or(Some(Vec::new()), |all| all.as_array()?.iter().map(text).collect())?,
        seconds: history.get("seconds")?.as_f64()?,
        ..History::default()
    })
}
