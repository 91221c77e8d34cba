use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use brisk_nn::Placement;
use brisk_nn::tensor::Persistent;
use brisk_report::EventWriter;

use crate::callback::{BatchesEnd, Callback, RunView, ValidationEnd};
use crate::error::Error;

/// Writes the losses, learning rates and metrics of a run to an event file in a folder: a [`Callback`].
///
/// Batches are counted over the whole run. `loss/batch` and `learning_rate` have a value per batch, and so has `grad_norm` if the
/// run [records](crate::TrainerConfig::record_grad_norms) it. The metrics of a validation are written at the last batch before
/// it, with training and validation in one group: `loss/train` and `loss/valid`; those of a limit that ends the run within an
/// epoch at the batch after it, since a run that resumes does not have them. [`histograms`](Self::histograms) adds those of
/// parameters and gradients. The file is created when the first batches are done, and TensorBoard then discards the folder's
/// values of later batches, so that a run that resumes with the same folder has each batch once.
///
/// # Examples
/// ```no_run
/// use brisk_nn::tensor::program::Device;
/// use brisk_train::{TensorBoard, Trainer};
///
/// let trainer = Trainer::new(&Device::best()?).callback(TensorBoard::new("runs/letters").histograms(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TensorBoard {
    folder: PathBuf,
    events: Option<EventWriter>,
    /// Epochs between two histograms; none if 0.
    histograms_every: usize,
}

impl TensorBoard {
    /// Writes to a new file in `folder`, which is created if it does not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), events: None, histograms_every: 0 }
    }

    /// Adds histograms after every `n_epochs`th epoch: of each parameter, as `parameters/layers.0.weight`, and of its gradient in
    /// the last step, as `gradients/layers.0.weight`. NaN and infinities are in no bucket; if there are any, their number is
    /// written as a scalar, `not_finite/parameters/layers.0.weight`.
    ///
    /// Gradients are those that the optimizer receives: of the mean over accumulated batches, divided by the loss scale, and
    /// clipped. If state is [sharded](crate::ZeroStage) across replicas, no replica has all gradients, so none are written; if
    /// parameters are sharded as well, the run ends with an error.
    ///
    /// # Cost
    /// Reads all parameters and gradients from the device, and passes over them once.
    pub fn histograms(mut self, n_epochs: usize) -> Self {
        self.histograms_every = n_epochs;
        self
    }
}

impl Callback for TensorBoard {
    /// The next run writes a new file. If its folder cannot be created, the error is reported now, not after the first steps.
    fn on_fit_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        self.events = None;
        let created = if run.is_first { fs::create_dir_all(&self.folder) } else { Ok(()) };
        created.map_err(Error::io(&self.folder, "create the folder"))?;
        let is_sharded = run.params.sharding().is_some_and(|sharding| sharding.values == Placement::Sharded);
        if self.histograms_every > 0 && is_sharded {
            let found = "parameters that are sharded across replicas";
            return Err(Error::setting("histograms", found, "whole parameters: a ZeRO stage below 3, or 0 histograms"));
        }
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
        for (batch, &norm) in (first..).zip(batches.grad_norms) {
            events.scalar("grad_norm", batch, norm.into())?;
        }
        let is_last = batches.first_batch + batches.losses.len() == run.n_batches;
        if is_last && run.epoch.checked_rem(self.histograms_every) == Some(0) {
            let last = first + batches.losses.len() as u64 - 1;
            add_histograms(events, run, last, ("parameters", run.params.values()))?;
            if run.params.sharding().is_none() {
                add_histograms(events, run, last, ("gradients", run.params.grads()))?;
            }
        }
        Ok(())
    }

    fn on_validation_end(&mut self, run: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        let n_batches = run.first_batch() + validation.metrics.batch as u64;
        // A run that resumes without the limit replaces the values from this batch on.
        let batch = if validation.is_at_limit { n_batches } else { n_batches.saturating_sub(1) };
        if let Some(events) = &mut self.events {
            for (name, value) in &validation.metrics.values {
                events.metric(name, batch, *value)?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Adds a histogram for each parameter, of its elements in a flat buffer.
fn add_histograms(
    events: &mut EventWriter,
    run: &RunView<'_>,
    step: u64,
    (group, flat): (&str, &Persistent),
) -> Result<(), Error> {
    let flat: Vec<f32> = run.device.read(flat)?;
    for entry in run.params.entries() {
        let (values, tag) = (&flat[entry.range.clone()], format!("{group}/{}", entry.name));
        let n_not_finite = values.iter().filter(|value| !value.is_finite()).count();
        if n_not_finite > 0 {
            events.scalar(&format!("not_finite/{tag}"), step, n_not_finite as f64)?;
        }
        if n_not_finite < values.len() {
            events.histogram(&tag, step, values)?;
        }
    }
    Ok(())
}
