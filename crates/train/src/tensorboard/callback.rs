use std::ops::ControlFlow;
use std::path::PathBuf;

use super::EventWriter;
use crate::{BatchesEnd, Callback, Error, RunView, ValidationEnd};

/// Writes the losses, learning rates and metrics of a run to an event file in a folder: a [`Callback`].
///
/// Batches are counted over the whole run. `loss/batch` and `learning_rate` have a value per batch; the metrics of an epoch are at its
/// last batch, those of training and validation in one group: `loss/train` and `loss/valid`. The file is created when the first
/// batches are done, and values that the folder has of later batches are replaced, so that a run can resume with the same folder.
///
/// # Examples
/// ```no_run
/// use brisk_nn::tensor::program::Device;
/// use brisk_train::Trainer;
/// use brisk_train::tensorboard::TensorBoard;
///
/// let trainer = Trainer::new(&Device::best()?).callback(TensorBoard::new("runs/letters"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TensorBoard {
    folder: PathBuf,
    events: Option<EventWriter>,
}

impl TensorBoard {
    /// Writes to a new file in `folder`, which is created if it does not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), events: None }
    }
}

impl Callback for TensorBoard {
    /// The next run has a file of its own.
    fn on_fit_start(&mut self, _: &RunView<'_>) -> Result<(), Error> {
        self.events = None;
        Ok(())
    }

    fn on_batches_end(&mut self, run: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        if !run.is_first {
            return Ok(());
        }
        let first = run.first_batch() + batches.first_batch as u64;
        let events = match &mut self.events {
            Some(events) => events,
            events => events.insert(EventWriter::resume(&self.folder, first)?),
        };
        for (batch, (&loss, &rate)) in (first..).zip(batches.losses.iter().zip(batches.learning_rates)) {
            events.scalar("loss/batch", batch, loss.into())?;
            events.scalar("learning_rate", batch, rate.into())?;
        }
        Ok(())
    }

    fn on_validation_end(&mut self, run: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        let batch = (run.first_batch() + run.n_batches as u64).saturating_sub(1);
        if let Some(events) = &mut self.events {
            for (name, value) in &validation.metrics.values {
                events.scalar(&tag(name), batch, *value)?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// `loss/valid` of `valid_loss`.
fn tag(name: &str) -> String {
    let sets = ["train", "valid", "test"];
    let divided = name.split_once('_').filter(|(set, _)| sets.contains(set));
    divided.map_or_else(|| name.to_owned(), |(set, metric)| format!("{metric}/{set}"))
}
