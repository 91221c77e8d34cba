//! A training step: batch, forward, loss, backward, exchange between replicas, optimizer; recorded once, replayed for each batch.
//!
//! Three small buffers hold the position of a run. `order` (16 `u32`) describes the order of the epoch's rows: their number, the
//! batch size, and the keys of a Feistel network if they are shuffled. `state` (4 `u32`) has the index of the batch, the number
//! of steps, whether this step is skipped, and how many were. `lr` has the learning rates of the epoch, one per batch.
//!
//! | kernels of a step | |
//! | --- | --- |
//! | `BatchRows` | computes the batch's rows from `order` and `state.batch`; a short last batch is padded by its own rows, with weight 0 |
//! | `GatherRows` twice | gathers features, which it standardises, and labels from the rows on the device; one kernel per window if they exceed one binding |
//! | `GatherCategories`, `Embedding` per column, `ConcatColumns` | only for rows with categories |
//! | `Matmul` per layer | with bias and activation in its epilogue |
//! | `MapReduce`, `Map` | the weighted mean loss (`BceWithLogits`) and its gradient |
//! | `MapReduce`, `Matmul`, `Matmul` per layer | gradients of bias, weight and input; the last one applies the derivative of the activation below; the first layer's input needs none |
//! | `Update` | updates all parameters by the rule of the optimizer; reads `lr[state.batch]` and `state.step`; does nothing if `state.skip` is set |
//! | `StoreRows` | writes the loss to `losses[state.batch]` |
//! | `Advance` | increments `state.batch` and `state.step` |
//!
//! These are 4 n + 7 kernels for n layers, 23 for the HIGGS network. f16 and bf16 add casts of parameters and input, and f16 adds
//! `Unscale` and `UpdateScale` around the optimizer; several batches per step add two `Update`s and `SkipIncomplete`, and rows
//! with weights `SkipWeightless`. Once per epoch the host writes `order`, `lr` and `state.batch`, replays, reads all `losses` and
//! checks that they are finite. It submits at most 64 steps at a time, so that the progress bar moves and a request to stop is
//! noticed. `Device::counters` counts what the host reads, writes and allocates: the same for any number of steps, and no
//! allocation (`tests/tests/it/recipes.rs`). Evaluation is a second program, without a tape.
//!
//! Where batches are augmented, the kernels of an `Augment` take the place of the first `GatherRows`: `AugmentImages` draws crop,
//! flip and cutout of each image from the seed, the row and the epoch, which is in `order`, and writes the standardised images.
//!
//! Where rows are mixed with others (Mixup, CutMix), the `Augment` also returns a second batch of rows, the partners, with their
//! shares. The step gathers the labels of both and adds the task's losses with weights `w (1 - s)` and `w s`, so that every task
//! whose loss is linear in the weights of rows can be trained on mixed rows, unaware of it.
//!
//! Rows that do not fit on the device are streamed: the table from which the kernels gather then holds a chunk of many batches.
//! Threads gather the next chunks on the host while the batches of one are replayed; between two chunks the host copies one into
//! mapped staging memory and writes an `order` that counts from the chunk's first batch. The recorded step is the same. Where
//! batches are augmented, a chunk also has the number of each row in the source, by which its random numbers are drawn, so that
//! streamed images look like resident ones. Rows that are mixed must be resident, since a partner may be any row of the epoch.

mod recording;

use std::cell::Cell;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

use brisk_nn::tensor::program::kernels::{Interval, STATE_LEN};
use brisk_nn::tensor::program::{Device, Executable};
use brisk_nn::tensor::{EpochRows, Graph, Persistent, Precision, Tensor};
use brisk_nn::{Bound, Ema, FeatureScale, GradScaler, GradScalerConfig, Optimizer, Parameters, Schedule, StepInputs};

use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::feed::{BatchTensors, CountFrom, Feed};
use crate::gradient_clip::GradientClip;
use crate::rows::RowNames;
use crate::standardisation::Standardisation;
use crate::trainer_config::TrainerConfig;

/// The parameters that a step trains, with their optimizer and schedule.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trained<'a> {
    pub(crate) params: &'a Parameters,
    pub(crate) optimizer: &'a dyn Optimizer,
    /// An average of the parameters, updated after each step of the optimizer.
    pub(crate) ema: Option<&'a Ema>,
}

/// Parameters that a step uses but does not train.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frozen<'a> {
    params: &'a Parameters,
    /// Whether layers still update their buffers, such as running statistics.
    updates_buffers: bool,
}

/// A step that has been recorded but does not occupy memory yet.
#[derive(Debug)]
pub(crate) struct RecordedStep {
    pub(crate) graph: Graph,
    /// The inputs of each optimizer. The batch is that of the first.
    pub(crate) inputs: Vec<StepInputs>,
    pub(crate) losses: Persistent,
    /// The sum of the weights of each batch, if rows have weights.
    pub(crate) loss_weights: Option<Persistent>,
    /// The rows of an epoch that are trained on.
    epoch: EpochRows,
    /// The norm of the gradients of each batch, if it is recorded.
    pub(crate) grad_norms: Option<Persistent>,
    pub(crate) scaler: GradScaler,
}

#[derive(Debug)]
pub(crate) struct CompiledStep {
    recorded: RecordedStep,
    pub(crate) executable: Executable,
}

impl Deref for CompiledStep {
    type Target = RecordedStep;

    fn deref(&self) -> &RecordedStep {
        &self.recorded
    }
}

impl RecordedStep {
    pub(crate) fn compile(self, device: &Device) -> Result<CompiledStep, Error> {
        Ok(CompiledStep { executable: self.graph.compile(device)?, recorded: self })
    }

    /// The state of the run: the batch index and the number of steps.
    pub(crate) fn state(&self) -> &Persistent {
        &self.inputs[0].state
    }

    /// How much the loss of each batch of an epoch counts: the sum of the weights of its rows.
    pub(crate) fn loss_weights(&self, device: &Device) -> Result<Vec<f32>, Error> {
        let EpochRows { n_rows, batch_rows, .. } = self.epoch;
        match &self.loss_weights {
            Some(weights) => Ok(device.read(weights)?),
            None => Ok((0..n_rows).step_by(batch_rows).map(|first| batch_rows.min(n_rows - first) as f32).collect()),
        }
    }
}

/// A training step of your own, for loops that a [`Trainer`](crate::Trainer) does not run: several models, several optimizers,
/// losses that are not a [`Task`](crate::Task)'s. It gathers the batch, records forward, loss, backward, scaling, clipping and
/// the optimizers, and keeps the loss of each batch; [`run_epoch`](Self::run_epoch) replays it for each batch of an epoch.
///
/// # Examples
/// A line through points, by least absolute deviations:
/// ```
/// use brisk_loader::{Order, Rows};
/// use brisk_nn::tensor::LossReduction;
/// use brisk_nn::tensor::program::Device;
/// use brisk_nn::{Activation, Adam, Linear, ParametersBuilder, Schedule};
/// use brisk_train::{Feed, FeedConfig, Standardisation, Step};
///
/// let xs: Vec<f32> = (0..100).map(|x| x as f32 / 100.0).collect();
/// let labels: Vec<f32> = xs.iter().map(|x| 3.0 - 2.0 * x).collect();
/// let points = Rows::new(xs, labels, 1)?;
/// let mut builder = ParametersBuilder::new();
/// let line = Linear::new(&mut builder, "line", 1, 1, Activation::identity());
/// let params = builder.build(7);
/// let optimizer = Adam::new(&params);
///
/// let device = Device::cpu()?;
/// let feed = Feed::new(&device, "points", &points, Order::Shuffled { seed: 7 }, 20, &FeedConfig::default())?;
/// let step = Step::over(&device, &feed, &Standardisation::none(1))
///     .train(&params, &optimizer, &Schedule::constant(0.05))
///     .record(|batch, params| {
///         let y = line.forward(&params[0], &batch.x).squeeze(1);
///         batch.mean(&y.l1_loss(&batch.labels, LossReduction::None))
///     })?;
/// let mut loss = f64::NAN;
/// for epoch in 0..60 {
///     loss = step.run_epoch(epoch)?.mean;
/// }
/// assert!(loss < 0.05, "{loss}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// Parameters of a [`Model`](crate::Model) are trained in the same way; the model then has the newest values:
/// ```
/// # use brisk_loader::{Order, Rows};
/// # use brisk_nn::tensor::program::Device;
/// use brisk_nn::{Activation, Adam, Linear, Schedule};
/// use brisk_train::{Feed, FeedConfig, Model, Predictor, Standardisation, Step};
///
/// # let x: Vec<f32> = (0..100).map(|x| x as f32).collect();
/// # let points = Rows::new(x.clone(), x.iter().map(|x| 3.0 - x / 50.0).collect::<Vec<_>>(), 1)?;
/// # let device = Device::cpu()?;
/// # let feed = Feed::new(&device, "points", &points, Order::Shuffled { seed: 7 }, 20, &FeedConfig::default())?;
/// let mut model = Model::new(7, |params| Linear::new(params, "line", 1, 1, Activation::identity()));
/// let (line, optimizer) = (model.module().clone(), Adam::new(model.params()));
/// let step = Step::over(&device, &feed, &Standardisation::of("points", &points)?)
///     .train(model.params(), &optimizer, &Schedule::constant(0.05))
///     .record(|batch, params| {
///         let y = line.forward(&params[0], &batch.x).squeeze(1);
///         y.mse_loss(&batch.labels, &batch.weights, Default::default())
///     })?;
/// for epoch in 0..60 {
///     step.run_epoch(epoch)?;
/// }
/// model.trained_by(&step)?;
/// let at_50 = Predictor::new(&device, &model, 1)?.predict(&[50.0], &[])?;
/// assert!((at_50[0] - 2.0).abs() < 0.1, "{at_50:?}");
///
/// # let path = std::env::temp_dir().join(format!("brisk-train-step-{}.safetensors", std::process::id()));
/// model.save(&path)?;
/// let loaded = Model::load(&path, |params| Linear::new(params, "line", 1, 1, Activation::identity()))?;
/// assert_eq!(Predictor::new(&device, &loaded, 1)?.predict(&[50.0], &[])?, at_50);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Step<'a> {
    pub(crate) device: Device,
    feed: Feed<'a>,
    step: CompiledStep,
    schedules: Vec<Schedule>,
    pub(crate) scale: Standardisation,
    /// The same for the parameters to note.
    features: Arc<FeatureScale>,
    pub(crate) precision: Precision,
    trained: Vec<Parameters>,
    accumulate: usize,
    n_epochs: Option<usize>,
    /// By which the rates of the schedules are multiplied.
    rate_factor: Cell<f64>,
    /// Steps that had been skipped when the epoch started.
    skipped_before: Cell<u32>,
}

/// A [`Step`] that is being set up.
#[derive(Debug)]
pub struct StepBuilder<'s, 'a> {
    device: Device,
    feed: Feed<'a>,
    scale: Standardisation,
    config: TrainerConfig,
    trained: Vec<Trained<'s>>,
    schedules: Vec<Schedule>,
    frozen: Vec<Frozen<'s>>,
    n_epochs: Option<usize>,
}

impl<'a> Step<'a> {
    /// Starts the set-up of a step over the batches of `feed`, whose columns are standardised by `scale`.
    pub fn over<'s>(device: &Device, feed: &Feed<'a>, scale: &Standardisation) -> StepBuilder<'s, 'a> {
        StepBuilder {
            device: device.clone(),
            feed: feed.clone(),
            scale: scale.clone(),
            config: TrainerConfig::default(),
            trained: Vec::new(),
            schedules: Vec::new(),
            frozen: Vec::new(),
            n_epochs: None,
        }
    }

    /// Trains on every batch of an epoch, from 0, which determines the order of rows and the learning rates. A batch whose row
    /// weights are all 0 has a loss of 0, which does not count, and its step is skipped: nothing changes.
    ///
    /// # Errors
    /// [`Error::Setting`] for an epoch after the last one of a [schedule](StepBuilder::epochs); [`Error::NonFiniteLoss`] names
    /// the batch, unless its step was skipped, or the last batch if no loss of the epoch is finite; [`Error::Tensor`] if the
    /// device fails; [`Error::Stream`] if the source of streamed rows does.
    pub fn run_epoch(&self, epoch: usize) -> Result<EpochLoss, Error> {
        let mut losses = Self::run_epoch_in_turn(&[self], epoch)?;
        Ok(losses.remove(0))
    }

    /// Trains several steps over one feed in turn: on the first batch with each of them, then on the second, and so on. The
    /// losses are in the order of the steps.
    ///
    /// # Errors
    /// As [`run_epoch`](Self::run_epoch); [`Error::Setting`] for steps over different feeds, and for the same step twice.
    pub fn run_epoch_in_turn(steps: &[&Self], epoch: usize) -> Result<Vec<EpochLoss>, Error> {
        let [first, ..] = steps else { return Ok(Vec::new()) };
        for (i, step) in steps.iter().enumerate() {
            let found = if !step.feed.is_same(&first.feed) {
                format!("step {} of {}, whose feed is not that of the first", i + 1, steps.len())
            } else if steps[..i].iter().any(|earlier| std::ptr::eq(*earlier, *step)) {
                format!("step {} of {}, which is there twice", i + 1, steps.len())
            } else {
                continue;
            };
            let expected = "different steps over one feed or its clones; call `Step::run_epoch` for each of the others";
            return Err(Error::setting("steps", found, expected));
        }
        for step in steps {
            step.start_epoch(epoch)?;
        }
        let most = if steps.len() == 1 { BATCHES_AT_A_TIME } else { 1 };
        let ended = first.feed.open(&first.device, |open| {
            open.for_each_range(epoch as u32, CountFrom::Epoch, most, |range| {
                for step in steps {
                    step.step.executable.run(range.n_batches)?;
                }
                Ok(ControlFlow::Continue(()))
            })
        });
        // Also of an epoch that fails, some batches may have been trained on.
        for step in steps {
            step.trained.iter().for_each(|params| params.set_trained_on(Some(step.features.clone())));
        }
        ended?;
        steps.iter().map(|step| step.losses(epoch)).collect()
    }

    /// The losses of an epoch, `None` for a batch whose weights are all 0, and whether all of them are finite.
    pub(crate) fn run_epoch_to_the_end(&self, epoch: usize) -> Result<(Vec<Option<f32>>, bool), Error> {
        let (losses, is_finite) = match self.run_epoch(epoch) {
            Ok(losses) => (losses.batches, true),
            Err(Error::NonFiniteLoss { .. }) => (self.device.read(&self.step.losses)?, false),
            Err(error) => return Err(error),
        };
        let weights = self.step.loss_weights(&self.device)?;
        Ok((losses.into_iter().zip(weights).map(|(loss, weight)| (weight > 0.0).then_some(loss)).collect(), is_finite))
    }

    /// Multiplies the learning rates that the schedules have for the next epochs by `factor`, which replaces an earlier one.
    ///
    /// # Errors
    /// [`Error::Setting`] if the factor is negative or not finite.
    /// # Examples
    /// ```no_run
    /// # fn rates(step: &brisk_train::Step, valid_loss: impl Fn() -> f64) -> Result<(), brisk_train::Error> {
    /// # let lr = 0.05;
    /// use brisk_train::ReduceLrOnPlateau;
    /// use brisk_train::metrics::Direction;
    ///
    /// let mut plateau = ReduceLrOnPlateau::new(Direction::Minimize).patience(2);
    /// for epoch in 0..60 {
    ///     step.run_epoch(epoch)?;
    ///     if plateau.step(valid_loss(), lr) {
    ///         step.scale_rates(plateau.rate(lr) / lr)?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn scale_rates(&self, factor: f64) -> Result<(), Error> {
        Interval::NonNegative.check("factor", factor)?;
        self.rate_factor.set(factor);
        Ok(())
    }

    fn start_epoch(&self, epoch: usize) -> Result<(), Error> {
        let total_steps = self.n_epochs.unwrap_or(1) * self.feed.n_batches().div_ceil(self.accumulate);
        let depends = self.schedules.iter().find(|schedule| schedule.depends_on_length());
        if let (Some(schedule), Some(n_epochs)) = (depends, self.n_epochs.filter(|&n_epochs| epoch >= n_epochs)) {
            let found =
                format!("epoch {} of {n_epochs}, after which the schedule `{schedule:?}` has no learning rates", epoch + 1);
            return Err(Error::setting("epochs", found, "more of them (`StepBuilder::epochs`)"));
        }
        self.skipped_before.set(self.step.scaler.report(&self.device)?.n_skipped);
        let n_batches = self.feed.n_batches();
        let epoch_steps = n_batches.div_ceil(self.accumulate);
        let first_step = epoch * epoch_steps;
        for (inputs, schedule) in self.step.inputs.iter().zip(&self.schedules) {
            let of_step = |step: usize| (self.rate_factor.get() * schedule.rate(step, total_steps)) as f32;
            let rate = |batch: usize| of_step(first_step + batch / self.accumulate);
            self.device.write(&inputs.lr, &(0..n_batches).map(rate).collect::<Vec<_>>())?;
            self.device.write_at(&inputs.state, 0, &[0_u32])?;
        }
        Ok(())
    }

    fn losses(&self, epoch: usize) -> Result<EpochLoss, Error> {
        let losses: Vec<f32> = self.device.read(&self.step.losses)?;
        let n_skipped = self.step.scaler.report(&self.device)?.n_skipped.wrapping_sub(self.skipped_before.get());
        let weights = self.step.loss_weights(&self.device)?;
        let mean = mean_loss(&losses, &weights, n_skipped as usize * self.accumulate, epoch)?;
        if let (true, Some(&loss)) = (mean.is_nan(), losses.last()) {
            return Err(Error::NonFiniteLoss { epoch: epoch + 1, step: losses.len(), loss });
        }
        Ok(EpochLoss { mean, batches: losses })
    }

    /// The recorded step, for [`Graph::planned_peak_bytes`].
    pub fn graph(&self) -> &Graph {
        &self.step.graph
    }

    pub(crate) fn trains(&self, params: &Parameters) -> bool {
        self.trained.iter().any(|trained| trained.is_of_same_model(params))
    }

    /// The names in the rows, if they are known.
    pub(crate) fn names(&self) -> RowNames {
        self.feed.source().map(|source| source.names()).unwrap_or_default()
    }
}

/// The mean of an epoch's losses over its rows: that of each batch counts as much as the weights of its rows. Losses that are not
/// finite are left out if they may belong to skipped steps; NaN if none is finite, and 0 if all weights are 0.
pub(crate) fn mean_loss(losses: &[f32], weights: &[f32], n_skipped: usize, epoch: usize) -> Result<f64, Error> {
    check_losses(losses, n_skipped, epoch)?;
    let finite = losses.iter().zip(weights).filter(|(loss, _)| loss.is_finite());
    if finite.clone().next().is_none() {
        return Ok(f64::NAN);
    }
    let total: f64 = finite.clone().map(|(_, &weight)| f64::from(weight)).sum();
    let sum: f64 = finite.map(|(&loss, &weight)| f64::from(loss) * f64::from(weight)).sum();
    Ok(if total > 0.0 { sum / total } else { 0.0 })
}

/// Checks that losses are finite, except for those of at most `n_skipped` steps that were skipped.
pub(crate) fn check_losses(losses: &[f32], n_skipped: usize, epoch: usize) -> Result<(), Error> {
    let n_finite = losses.iter().filter(|loss| loss.is_finite()).count();
    match losses.iter().position(|loss| !loss.is_finite()) {
        Some(step) if losses.len() - n_finite > n_skipped => {
            Err(Error::NonFiniteLoss { epoch: epoch + 1, step: step + 1, loss: losses[step] })
        }
        _ => Ok(()),
    }
}

/// The maximum number of batches that are submitted at a time, so that the progress bar moves and a request to stop is noticed.
pub(crate) const BATCHES_AT_A_TIME: usize = 64;

/// The losses of an epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochLoss {
    /// The mean over the rows of the epoch, weighted by their weights; of batches with finite losses if steps were skipped.
    pub mean: f64,
    /// The loss of each batch.
    pub batches: Vec<f32>,
}

impl<'s, 'a> StepBuilder<'s, 'a> {
    /// Trains `params` by `optimizer` with the learning rates of `schedule`; may be called for several.
    pub fn train(mut self, params: &'s Parameters, optimizer: &'s dyn Optimizer, schedule: &Schedule) -> Self {
        self.trained.push(Trained { params, optimizer, ema: None });
        self.schedules.push(schedule.clone());
        self
    }

    /// Makes `params` available to the loss without training them, such as another step's. Gradients pass through what uses them.
    /// Their buffers are frozen, too: batch normalisation uses its running statistics and leaves them as they are.
    pub fn freeze(mut self, params: &'s Parameters) -> Self {
        self.frozen.push(Frozen { params, updates_buffers: false });
        self
    }

    /// [`freeze`](Self::freeze) for the parameters only: batch normalisation uses the statistics of the batch and updates the
    /// running ones, as in PyTorch.
    pub fn freeze_only_parameters(mut self, params: &'s Parameters) -> Self {
        self.frozen.push(Frozen { params, updates_buffers: true });
        self
    }

    /// Sets how many epochs the run has. A schedule whose rates [depend on it](Schedule::depends_on_length), such as
    /// [`Schedule::one_cycle`], requires it, and has no rates for further epochs; others ignore it.
    pub fn epochs(mut self, n_epochs: usize) -> Self {
        self.n_epochs = Some(n_epochs);
        self
    }

    pub(crate) fn config(mut self, config: TrainerConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the seed of random numbers that the model draws, such as those of dropout; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Sets the precision of matrix products; f16 scales the loss.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.config.precision = precision;
        self
    }

    /// Sets how the loss is scaled in f16.
    pub fn scaler(mut self, scaler: GradScalerConfig) -> Self {
        self.config.scaler = scaler;
        self
    }

    /// Clips gradients that are too large.
    pub fn clip(mut self, clip: GradientClip) -> Self {
        self.config.clip = Some(clip);
        self
    }

    /// Sets the batches per step of the optimizers, which use the mean of their gradients.
    pub fn accumulate(mut self, n_batches: usize) -> Self {
        self.config.accumulate = n_batches;
        self
    }

    /// Records the step, given the loss as a function of the batch and the parameters: those that are [trained](Self::train) in
    /// their order, then those that are [frozen](Self::freeze). Compiles it, and writes the parameters to the device: training
    /// continues from their [newest](Parameters::newest) values, such as those of an earlier step. Optimizers start anew, with a
    /// state of zeros. ([`Parameters::write_initial`] returns to the initial values.)
    ///
    /// # Errors
    /// [`Error::Setting`] if a schedule requires the number of [epochs](Self::epochs), or the rows of the feed are on another
    /// device; [`Error::Tensor`] with the first error of the recording, or if nothing is trained, or the device has no room.
    #[track_caller]
    pub fn record(self, loss: impl FnOnce(&BatchTensors, &[Bound]) -> Tensor) -> Result<Step<'a>, Error> {
        let Self { device, feed, scale, config, trained, schedules, frozen, n_epochs } = self;
        feed.check_on(&device)?;
        if let (None, Some(schedule)) = (n_epochs, schedules.iter().find(|schedule| schedule.depends_on_length())) {
            let expected = "the number of epochs (`StepBuilder::epochs`), on which its learning rates depend";
            return Err(Error::setting("epochs", format!("none, for the schedule `{schedule:?}`"), expected));
        }
        let total_steps = n_epochs.unwrap_or(1) * feed.n_batches().div_ceil(config.accumulate.max(1));
        schedules.iter().try_for_each(|schedule| schedule.check(total_steps))?;
        let recorded =
            RecordedStep::record(&feed, &scale, &config, &trained, &frozen, DataParallel::single(), |batch, _, bound| {
                loss(batch, bound)
            })?;
        let step = recorded.compile(&device)?;
        scale.write(&device)?;
        step.scaler.write_initial(&device)?;
        for (Trained { params, optimizer, .. }, inputs) in trained.iter().zip(&step.inputs) {
            params.write_newest(&device)?;
            for (_, buffer) in optimizer.state() {
                device.write(buffer, &vec![0.0_f32; buffer.len()])?;
            }
            device.write(&inputs.state, &[0_u32; STATE_LEN])?;
        }
        frozen.iter().try_for_each(|frozen| frozen.params.write_newest(&device))?;
        let trained = trained.iter().map(|trained| trained.params.clone()).collect();
        let TrainerConfig { precision, accumulate, .. } = config;
        let (skipped_before, features) = (Cell::new(0), scale.features());
        let rate_factor = Cell::new(1.0);
        Ok(Step {
            device,
            feed,
            step,
            schedules,
            scale,
            features,
            precision,
            trained,
            accumulate,
            n_epochs,
            rate_factor,
            skipped_before,
        })
    }
}
