use std::ops::ControlFlow;
use std::time::Instant;

use brisk_loader::{Order, RowSource};
use brisk_nn::tensor::program::{Device, Executable};
use brisk_nn::tensor::{DType, Graph, Persistent, Reduction};
use brisk_nn::{Module, Optimizer, Parameters, Schedule, StepInputs};

use crate::feed::inspect::{check_all_finite, check_codes_and_weights, layout_of};
use crate::feed::{Cursor, Feed, FeedConfig, FeedElement, OpenFeed, binary_labels};
use crate::metrics::roc_auc;
use crate::{
    Checkpoint, EarlyStopping, Error, MetricsLog, Mode, Progress, RunFolder, Scorer, Standardisation, StopFlag, StopReason,
};

/// Trains a model that tells two classes apart, by the area under its ROC curve on rows it has not seen.
///
/// The whole step (batch, forward, loss, backward, optimizer) is one recorded program; an epoch is so many replays of it, and
/// nothing is read back before the epoch ends.
#[derive(Debug)]
pub struct Trainer<'a> {
    config: TrainerConfig,
    device: Device,
    params: &'a Parameters,
    optimizer: &'a dyn Optimizer,
    scale: Standardisation,
    train: Feed<'a>,
    valid_labels: Vec<f32>,
    /// The training step, and what it reads and leaves.
    graph: Graph,
    step: Executable,
    inputs: StepInputs,
    losses: Persistent,
    scorer: Scorer<'a>,
}

/// How a run goes.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainerConfig {
    /// Rows a step.
    pub batch_rows: usize,
    /// The most epochs.
    pub max_epochs: usize,
    /// The learning rate of each step.
    pub schedule: Schedule,
    /// How many epochs without a better validation AUC end the run; 0 never ends it early.
    pub patience: usize,
    /// Seeds the order of rows.
    pub seed: u64,
}

impl Default for TrainerConfig {
    fn default() -> Self {
        Self { batch_rows: 256, max_epochs: 30, schedule: Schedule::Constant { lr: 1e-3 }, patience: 5, seed: 0 }
    }
}

/// What a run shows and leaves on the way.
#[derive(Debug)]
pub struct Outputs {
    /// The bar on standard error.
    pub progress: Progress,
    /// Where checkpoints and the log go; nowhere if there is none.
    pub folder: Option<RunFolder>,
    /// Ends the run after the epoch's current steps.
    pub stop: StopFlag,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct FitReport {
    /// Epochs done, validation included.
    pub n_epochs: usize,
    /// The epoch, from 1, whose weights are kept.
    pub best_epoch: usize,
    /// Its validation AUC.
    pub best_auc: f64,
    /// Each epoch's mean training loss and validation AUC.
    pub history: Vec<(f64, f64)>,
    /// Why it ended.
    pub ended: Ended,
    /// Seconds spent in training steps alone.
    pub train_seconds: f64,
    /// Rows trained on a second, steps alone.
    pub train_rows_per_s: f64,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// All epochs are done.
    MaxEpochs,
    /// Validation no longer improved.
    Early(StopReason),
    /// Somebody asked for it.
    Stopped,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MaxEpochs => f.write_str("after the last epoch"),
            Self::Early(reason) => write!(f, "early: {reason}"),
            Self::Stopped => f.write_str("stopped when asked to"),
        }
    }
}

/// Replays handed over at a time, so that the bar moves and a wish to stop is heard.
const REPLAYS_PER_TURN: usize = 64;

impl<'a> Trainer<'a> {
    /// Puts the rows on `device` if they fit there, or sets up their streaming; records the step and the evaluation, lays out their memory,
    /// and sets parameters and optimizer to their start.
    ///
    /// `model` gives one logit a row; labels are 0 or 1. Weights of training rows weigh their losses; validation counts each row once.
    ///
    /// # Errors
    /// [`Error::EmptySet`], [`Error::ColumnCount`], [`Error::BinaryLabel`], [`Error::NonFinite`], [`Error::CategoryCount`], [`Error::CategoryCode`],
    /// [`Error::RowWeight`], [`Error::NoWeight`] for rows that cannot be trained on, [`Error::OneClass`] for rows that cannot be validated on;
    /// [`Error::Tensor`] if the model does not fit them or the device has no room.
    pub fn new<S, V>(
        device: &Device,
        model: &dyn Module,
        params: &'a Parameters,
        optimizer: &'a dyn Optimizer,
        train: &'a S,
        valid: &'a V,
        config: TrainerConfig,
    ) -> Result<Self, Error>
    where
        S: RowSource<Feature: FeedElement>,
        V: RowSource<Feature: FeedElement>,
    {
        Self::with_feed(device, model, params, optimizer, train, valid, config, &FeedConfig::default())
    }

    /// The same with a say in how rows reach the device. Training rows come first: what they leave of a budget is for those to validate on.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::ResidentOrder`] if rows are to be resident in an order that devices do not compute.
    #[expect(clippy::too_many_arguments, reason = "all of them are what a run is made of, each of another type")]
    pub fn with_feed<S, V>(
        device: &Device,
        model: &dyn Module,
        params: &'a Parameters,
        optimizer: &'a dyn Optimizer,
        train: &'a S,
        valid: &'a V,
        config: TrainerConfig,
        feed: &FeedConfig,
    ) -> Result<Self, Error>
    where
        S: RowSource<Feature: FeedElement>,
        V: RowSource<Feature: FeedElement>,
    {
        if train.n_cols() != valid.n_cols() {
            return Err(Error::ColumnCount { set: "valid", found: valid.n_cols(), expected: train.n_cols() });
        }
        layout_of("train", train)?;
        layout_of("valid", valid)?;
        binary_labels("train", train)?;
        let valid_labels = binary_labels("valid", valid)?;
        check_codes_and_weights("train", train, model.categories())?;
        check_codes_and_weights("valid", valid, model.categories())?;
        // A curve that does not exist is better known now than after an epoch.
        roc_auc(&valid_labels, &valid_labels)?;
        let scale = Standardisation::of("train", train)?;
        scale.write(device)?;

        let order = feed.order.clone().unwrap_or(Order::Shuffled { seed: config.seed });
        let train = Feed::new(device, "train", train, order, config.batch_rows, feed)?;
        let left = feed.budget_bytes.map(|budget| budget.saturating_sub(train.len_bytes()));
        let feed = FeedConfig { budget_bytes: left, ..feed.clone() };
        // Resident rows are looked at when they are uploaded, the training rows above; those that are streamed later, now.
        let valid_source = valid;
        let valid = Feed::new(device, "valid", valid_source, Order::Sequential, EVALUATION_ROWS, &feed)?;
        if valid.fact().is_streamed() {
            check_all_finite("valid", valid_source)?;
        }

        let config = TrainerConfig { batch_rows: train.batch_rows(), ..config };
        let n_batches = train.n_batches();
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, n_batches), state: Graph::state_buffer() };
        let losses = Persistent::new("losses", DType::F32, n_batches);

        let graph = Graph::training("train");
        let bound = params.bind(&graph)?;
        let batch = train.record(&graph, &scale, &inputs.state)?;
        let logits = batch.forward(model, &bound)?;
        let loss = logits.bce_with_logits(&batch.labels, &batch.weights, Reduction::Mean, 1.0)?;
        graph.backward(&loss)?;
        optimizer.record(&graph, params, &inputs)?;
        graph.store(&loss, &inputs.state, &losses)?;
        graph.advance(&inputs.state)?;
        let step = graph.compile(device)?;

        let scorer = Scorer::of_feed(device, model, params, &valid, &scale)?;
        let device = device.clone();
        let trainer = Self { config, device, params, optimizer, scale, train, valid_labels, graph, step, inputs, losses, scorer };
        trainer.start_over()?;
        Ok(trainer)
    }

    /// Trains from the starting weights until the epochs are done, validation no longer improves, or somebody asks to stop; then
    /// puts the weights of the best epoch back. A second run repeats the first.
    ///
    /// # Errors
    /// [`Error::NonFiniteLoss`] names the step; [`Error::Write`] if a checkpoint cannot be written, the last good one staying;
    /// [`Error::Tensor`] if the device fails.
    pub fn fit(&self, outputs: &mut Outputs) -> Result<FitReport, Error> {
        // The threads of streamed rows run as long as the fit does.
        self.train.open(&self.device, |train| self.scorer.feed().open(&self.device, |valid| self.fit_over(train, valid, outputs)))
    }

    fn fit_over(&self, train: &mut OpenFeed<'_>, valid: &mut OpenFeed<'_>, outputs: &mut Outputs) -> Result<FitReport, Error> {
        let Self { config, device, .. } = self;
        self.start_over()?;
        let n_batches = self.train.n_batches();
        let mut log = outputs.folder.as_ref().map(MetricsLog::create).transpose()?;
        let mut early_stopping = EarlyStopping { patience: config.patience.max(1), ..EarlyStopping::new(Mode::Max) };
        let mut best: Option<(usize, f64, Vec<f32>)> = None;
        let (mut history, mut train_seconds, mut n_steps) = (Vec::new(), 0.0, 0);
        let mut ended = Ended::MaxEpochs;

        for epoch in 0..config.max_epochs {
            // What changes from epoch to epoch: the rates, the batch index, and the order of rows, which is the feed's.
            device.write(&self.inputs.lr, &config.schedule.table(n_steps..n_steps + n_batches))?;
            device.write(&self.inputs.state, &[0, n_steps as u32, 0, 0])?;

            outputs.progress.epoch_started(epoch);
            let started = Instant::now();
            let n_done = self.run_steps(train, epoch as u32, outputs)?;
            train_seconds += started.elapsed().as_secs_f64();
            n_steps += n_done;

            let losses: Vec<f32> = device.read(&self.losses)?;
            if let Some(step) = losses[..n_done].iter().position(|loss| !loss.is_finite()) {
                return Err(Error::NonFiniteLoss { epoch: epoch + 1, step: step + 1, loss: losses[step] });
            }
            if n_done < n_batches {
                ended = Ended::Stopped;
                break;
            }
            let loss = losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / n_batches as f64;
            let auc = roc_auc(&self.scorer.scores_of(valid)?, &self.valid_labels)?;
            history.push((loss, auc));
            outputs.progress.epoch_finished(&[("loss", loss), ("valid_auc", auc)]);
            if let Some(log) = &mut log {
                let lr = config.schedule.rate(n_steps.saturating_sub(1));
                log.append(&[("epoch", (epoch + 1) as f64), ("lr", lr), ("train_loss", loss), ("valid_auc", auc)])?;
            }

            let stop = early_stopping.check(auc);
            if best.as_ref().is_none_or(|(_, best_auc, _)| auc > *best_auc) {
                best = Some((epoch + 1, auc, device.read(self.params.values())?));
                if let Some(folder) = &outputs.folder {
                    self.checkpoint(epoch + 1, n_steps, auc)?.save(folder.best())?;
                }
            }
            if let Some(reason) = stop.filter(|_| config.patience > 0) {
                ended = Ended::Early(reason);
                break;
            }
        }
        outputs.progress.finished();
        if let Some(folder) = &outputs.folder {
            let (n_epochs, auc) = (history.len(), history.last().map_or(f64::NAN, |last| last.1));
            self.checkpoint(n_epochs, n_steps, auc)?.save(folder.last())?;
        }
        let (best_epoch, best_auc, values) = best.ok_or(Error::NoEpoch)?;
        device.write(self.params.values(), &values)?;
        let n_rows = n_steps as f64 * config.batch_rows.min(self.train.n_rows()) as f64;
        let n_rows = n_rows.min(history.len().max(1) as f64 * self.train.n_rows() as f64);
        let train_rows_per_s = n_rows / train_seconds;
        Ok(FitReport { n_epochs: history.len(), best_epoch, best_auc, history, ended, train_seconds, train_rows_per_s })
    }

    /// Sets parameters and optimizer to their start, whatever a run before has left on the device.
    fn start_over(&self) -> Result<(), Error> {
        self.params.write_initial(&self.device)?;
        for (_, buffer) in self.optimizer.state() {
            self.device.write(buffer, &vec![0.0_f32; buffer.len()])?;
        }
        Ok(())
    }

    /// Replays the step, some at a time; returns how many were done before somebody asked to stop.
    fn run_steps(&self, train: &mut OpenFeed<'_>, epoch: u32, outputs: &mut Outputs) -> Result<usize, Error> {
        let mut n_done = 0;
        train.each_turn(epoch, Cursor::Epoch, REPLAYS_PER_TURN, |turn| {
            if outputs.stop.is_requested() {
                return Ok(ControlFlow::Break(()));
            }
            self.step.run(turn.n_batches)?;
            n_done += turn.n_batches;
            outputs.progress.advance(turn.n_rows as u64);
            Ok(ControlFlow::Continue(()))
        })?;
        self.device.wait()?;
        Ok(n_done)
    }

    /// Everything needed to use the weights or go on from them.
    fn checkpoint(&self, epoch: usize, n_steps: usize, auc: f64) -> Result<Checkpoint, Error> {
        let mut checkpoint = Checkpoint::new();
        let values: Vec<f32> = self.device.read(self.params.values())?;
        for entry in self.params.entries() {
            checkpoint.insert(&entry.name, &entry.shape, values[entry.range.clone()].to_vec())?;
        }
        for buffer in self.params.buffers() {
            checkpoint.insert(buffer.name(), buffer.shape(), self.device.read::<f32>(buffer.values())?)?;
        }
        for (name, buffer) in self.optimizer.state() {
            let values: Vec<f32> = self.device.read(buffer)?;
            checkpoint.insert(name, &[values.len()], values)?;
        }
        let n_cols = self.scale.mean().len();
        checkpoint.insert("input.mean", &[n_cols], self.scale.mean().to_vec())?;
        checkpoint.insert("input.inv_std", &[n_cols], self.scale.inv_std().to_vec())?;
        checkpoint.insert_metadata("epoch", epoch);
        checkpoint.insert_metadata("step", n_steps);
        checkpoint.insert_metadata("valid_auc", auc);
        checkpoint.insert_metadata("seed", self.config.seed);
        Ok(checkpoint)
    }

    /// The recorded step and evaluation, for [`Graph::planned_peak_bytes`].
    pub fn graphs(&self) -> [&Graph; 2] {
        [&self.graph, self.scorer.graph()]
    }

    /// How columns are standardised: by the training rows.
    pub fn scale(&self) -> &Standardisation {
        &self.scale
    }

    /// The training rows, and how they reach the device.
    pub fn train_rows(&self) -> &Feed<'a> {
        &self.train
    }

    /// The rows to validate on, and how they reach the device.
    pub fn valid_rows(&self) -> &Feed<'a> {
        self.scorer.feed()
    }
}

/// Rows scored at a time when evaluating.
pub(crate) const EVALUATION_ROWS: usize = 1024;
