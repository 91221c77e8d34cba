use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use brisk_loader::{Order, RowSource};
use brisk_nn::tensor::program::kernels::STATE_LEN;
use brisk_nn::tensor::program::{Device, Executable};
use brisk_nn::tensor::{DType, Graph, Persistent, Precision, Reduction};
use brisk_nn::{
    Accumulate, GradScaler, GradScalerConfig, Kept, Module, Optimizer, Parameters, ScalerReport, Schedule, StepInputs,
};

use crate::data_parallel::check_batch;
use crate::feed::inspect::{check_all_finite, check_codes_and_weights, layout_of};
use crate::feed::{Cursor, Feed, FeedConfig, FeedElement, OpenFeed, binary_labels};
use crate::flat::{self, Flat};
use crate::metrics::roc_auc;
use crate::run_state::RunState;
use crate::{
    BatchTensors, Checkpoint, DataParallel, Described, Error, MetricsLog, Progress, ReduceOp, RunFolder, Scorer, Standardisation,
    StateMemory, StopFlag, StopReason,
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
    scaler: GradScaler,
    scorer: Scorer<'a>,
    /// With whom the rows of each batch are shared.
    replicas: Option<&'a DataParallel>,
}

/// How a run goes.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainerConfig {
    /// Rows a batch, of all replicas together.
    pub batch_rows: usize,
    /// Batches a step: the optimizer takes the mean of their gradients. The last of an epoch's steps may have less, and divides by as many all the same.
    pub accumulate: usize,
    /// What products are computed with, in training and validation. Parameters are f32 in any; f16 scales the loss.
    pub precision: Precision,
    /// How the loss is scaled, where products are f16.
    pub scaler: GradScalerConfig,
    /// So many steps in a row whose gradients are not finite end the run, at the end of an epoch, where products are f16: 100 of them shrink the scale by 2¹⁰⁰.
    pub max_skipped: u32,
    /// What is done to gradients that are too large.
    pub clip: Option<GradientClip>,
    /// The most epochs.
    pub max_epochs: usize,
    /// The learning rate of each step.
    pub schedule: Schedule,
    /// How many epochs without a better validation AUC end the run; 0 never ends it early.
    pub patience: usize,
    /// Seeds the order of rows.
    pub seed: u64,
    /// Steps after which `last.safetensors` is written within an epoch, where there is a folder; 0 writes it at the end of each epoch alone.
    pub checkpoint_every: usize,
}

impl Default for TrainerConfig {
    fn default() -> Self {
        Self {
            batch_rows: 256,
            accumulate: 1,
            precision: Precision::F32,
            scaler: GradScalerConfig::default(),
            max_skipped: 100,
            clip: None,
            max_epochs: 30,
            schedule: Schedule::Constant { lr: 1e-3 },
            patience: 5,
            seed: 0,
            checkpoint_every: 0,
        }
    }
}

/// What is done to gradients that are too large, after they have been unscaled and before the step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GradientClip {
    /// All together are scaled down so that their norm is at most this.
    Norm(f32),
    /// Each is cut to this size.
    Value(f32),
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
    /// Epochs done, validation included, and those before the run was resumed.
    pub n_epochs: usize,
    /// The epoch, from 1, whose weights are kept.
    pub best_epoch: usize,
    /// Its validation AUC.
    pub best_auc: f64,
    /// Mean training loss and validation AUC of each epoch since the run was started or resumed.
    pub history: Vec<(f64, f64)>,
    /// Why it ended.
    pub ended: Ended,
    /// Seconds spent in training steps alone.
    pub train_seconds: f64,
    /// Rows trained on a second, steps alone.
    pub train_rows_per_s: f64,
    /// Loss scale and skipped steps, where products are f16.
    pub scaler: Option<ScalerReport>,
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
    /// [`Error::Tensor`] if the model does not fit them, the device has no room, or the settings make no sense.
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
        Self::shared(device, model, params, optimizer, train, valid, config, feed, None)
    }

    /// The same as one of several replicas, each of which calls this with the same rows and settings on a device of its own.
    ///
    /// Every replica takes its part of each batch and of the rows to validate on; the weights, the losses and what the run comes to are those of one device with
    /// all rows, up to rounding, and the same bits on all replicas. Replica 0 alone writes to the run's folder and shows progress; whichever is asked to stop ends
    /// the run of all.
    ///
    /// # Errors
    /// As [`with_feed`](Self::with_feed); [`Error::Replica`] if replicas differ in model or settings, or one fails; [`Error::BatchPerReplica`].
    #[expect(clippy::too_many_arguments, reason = "all of them are what a run is made of, each of another type")]
    pub fn with_replicas<S, V>(
        device: &Device,
        model: &dyn Module,
        params: &'a Parameters,
        optimizer: &'a dyn Optimizer,
        train: &'a S,
        valid: &'a V,
        config: TrainerConfig,
        feed: &FeedConfig,
        replicas: &'a DataParallel,
    ) -> Result<Self, Error>
    where
        S: RowSource<Feature: FeedElement>,
        V: RowSource<Feature: FeedElement>,
    {
        let rows = format!("{} to train on, {} to validate on, of {} columns", train.n_rows(), valid.n_rows(), train.n_cols());
        let settings = [("rows", rows), ("settings", format!("{config:?}"))];
        replicas.agree(settings.map(|(what, is)| Described { what: what.to_owned(), is }).into())?;
        replicas.agree_on_model(params, optimizer)?;
        Self::shared(device, model, params, optimizer, train, valid, config, feed, Some(replicas))
    }

    #[expect(clippy::too_many_arguments, reason = "all of them are what a run is made of, each of another type")]
    fn shared<S, V>(
        device: &Device,
        model: &dyn Module,
        params: &'a Parameters,
        optimizer: &'a dyn Optimizer,
        train: &'a S,
        valid: &'a V,
        config: TrainerConfig,
        feed: &FeedConfig,
        replicas: Option<&'a DataParallel>,
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
        let is_scaled = config.precision == Precision::F16 && config.scaler.enabled;
        let scaler = GradScaler::new(GradScalerConfig { enabled: is_scaled, ..config.scaler })?;

        let graph = Graph::training("train");
        if let Some(replicas) = replicas {
            replicas.prepare(&graph);
        }
        Flat { params, replicas }.check()?;
        let bound = params.bind(&graph)?;
        let batch = match replicas {
            None => train.record(&graph, &scale, &inputs.state)?,
            Some(replicas) => {
                check_batch(train.batch_rows(), replicas.world_size())?;
                let part = replicas.part_of(train.batch_rows());
                let shares = train.record_shares(&graph, &scale, &inputs.state)?.narrow(0, part.clone())?;
                BatchTensors { weights: shares, ..train.record_part(&graph, &scale, &inputs.state, part)? }
            }
        };
        // Parts weighted by their shares of the whole batch add up to its mean.
        let reduction = if replicas.is_some() { Reduction::Sum } else { Reduction::Mean };
        let loss = graph.autocast(config.precision, || {
            let logits = batch.forward(model, &bound)?;
            logits.bce_with_logits(&batch.labels, &batch.weights, reduction, 1.0)
        })?;
        scaler.backward(&loss)?;
        let accumulate = (config.accumulate != 1).then(|| Accumulate::new(params, config.accumulate as u32));
        let accumulate = accumulate.map(|accumulate| accumulate.ending_after(n_batches as u32));
        accumulate.iter().try_for_each(|_| check_skips(optimizer))?;
        // Gradients are summed up where they are kept: all of them before they are reduced, or a replica's own after.
        let keeps_own = params.division().is_some_and(|division| division.gradients == Kept::Own);
        let [before, after] = [!keeps_own, keeps_own].map(|is_here| accumulate.as_ref().filter(|_| is_here));
        before.map_or(Ok(()), |accumulate| accumulate.record(&graph, params, &inputs.state))?;
        if let Some(replicas) = replicas {
            replicas.gather_parameters(&graph, params, &bound)?;
            replicas.reduce_gradients(&graph, params, &bound, ReduceOp::Sum, before.map(|_| &inputs.state))?;
        }
        after.map_or(Ok(()), |accumulate| accumulate.record(&graph, params, &inputs.state))?;
        scaler.unscale(&graph, params.grads(), &inputs.state)?;
        if let Some(replicas) = replicas {
            replicas.agree_on_skip(&graph, params, &scaler, &inputs.state)?;
        }
        match config.clip {
            None => {}
            Some(GradientClip::Norm(max_norm)) => {
                let norm =
                    replicas.map_or_else(|| Ok(params.grad_norm(&graph)?), |replicas| replicas.grad_norm(&graph, params))?;
                params.clip_grads_with_norm(&graph, &norm, max_norm)?;
            }
            Some(GradientClip::Value(limit)) => params.clip_grad_value(&graph, limit)?,
        }
        scaler.step(&graph, optimizer, params, &inputs)?;
        if let Some(replicas) = replicas {
            let may_skip = accumulate.is_some() || is_scaled;
            replicas.gather_stepped(&graph, params, may_skip.then_some(&inputs.state))?;
        }
        scaler.update(&graph)?;
        let loss = replicas.map_or(Ok(loss.clone()), |replicas| replicas.all_reduce_and_ask(&graph, &loss, ReduceOp::Sum))?;
        graph.store(&loss, &inputs.state, &losses)?;
        graph.advance(&inputs.state)?;
        let step = graph.compile(device)?;

        let scorer = match replicas {
            None => Scorer::of_feed(device, model, params, &valid, &scale, config.precision)?,
            Some(replicas) => Scorer::with_replicas(device, model, params, &valid, &scale, config.precision, replicas)?,
        };
        let device = device.clone();
        let trainer = Self {
            config,
            device,
            params,
            optimizer,
            scale,
            train,
            valid_labels,
            graph,
            step,
            inputs,
            losses,
            scaler,
            scorer,
            replicas,
        };
        trainer.start_over()?;
        Ok(trainer)
    }

    /// Trains from the starting weights until the epochs are done, validation no longer improves, or somebody asks to stop; then
    /// puts the model of the best epoch back. A second run repeats the first.
    ///
    /// # Errors
    /// [`Error::NonFiniteLoss`] names the step, [`Error::SkippedSteps`] says that all of them are skipped; [`Error::Write`] if a checkpoint cannot be
    /// written, the last good one staying; [`Error::Tensor`] if the device fails.
    pub fn fit(&self, outputs: &mut Outputs) -> Result<FitReport, Error> {
        self.start_over()?;
        let log = self.folder(outputs).map(MetricsLog::create).transpose()?;
        self.fit_from(RunState::new(self.config.patience), log, outputs)
    }

    /// Goes on from a checkpoint that a [`fit`](Self::fit) of the same settings left, with the batch after it: the same bits as if it had never ended.
    /// The log of the run's folder, if there is one, goes on.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); [`Error::MissingTensor`], [`Error::TensorMismatch`], [`Error::Metadata`] if the checkpoint is that of another model,
    /// optimizer or seed; [`Error::ShortLog`] if the folder is that of another run.
    pub fn resume(&self, checkpoint: &Checkpoint, outputs: &mut Outputs) -> Result<FitReport, Error> {
        self.start_over()?;
        self.restore(checkpoint)?;
        let run = RunState::of(checkpoint, self.config.patience, self.params)?;
        if let Some(replicas) = self.replicas {
            let stands = format!("epoch {}, step {}, weights {:016x}", run.n_epochs, run.n_steps, checkpoint.fingerprint());
            replicas.agree(vec![Described { what: "the checkpoint that is gone on from".to_owned(), is: stands }])?;
        }
        let log = self.folder(outputs).map(|folder| MetricsLog::resume(folder, run.n_epochs)).transpose()?;
        self.fit_from(run, log, outputs)
    }

    fn fit_from(&self, run: RunState, log: Option<MetricsLog>, outputs: &mut Outputs) -> Result<FitReport, Error> {
        // The threads of streamed rows run as long as the fit does.
        let with_valid = |train: &mut OpenFeed<'_>| {
            self.scorer.feed().open(&self.device, |valid| self.fit_over(run, log, train, valid, outputs))
        };
        self.train.open(&self.device, with_valid)
    }

    fn fit_over(
        &self,
        mut run: RunState,
        mut log: Option<MetricsLog>,
        train: &mut OpenFeed<'_>,
        valid: &mut OpenFeed<'_>,
        outputs: &mut Outputs,
    ) -> Result<FitReport, Error> {
        let Self { config, device, .. } = self;
        let n_batches = self.train.n_batches();
        let (mut history, mut train_seconds, mut n_batches_done) = (Vec::new(), 0.0, 0);
        let mut scaler = self.scaler.report(device)?;
        run.skipped_before = scaler.n_skipped;
        let mut ended = Ended::MaxEpochs;

        for epoch in run.n_epochs..config.max_epochs {
            // What changes from epoch to epoch: the rates, the batch index, and the order of rows, which is the feed's.
            let rate = |batch: usize| config.schedule.rate(run.n_steps + batch / config.accumulate) as f32;
            device.write(&self.inputs.lr, &(0..n_batches).map(rate).collect::<Vec<_>>())?;
            device.write_at(&self.inputs.state, 0, &[run.n_batches as u32])?;
            device.write_at(&self.losses, 0, &run.losses)?;

            self.show(outputs, |progress| progress.epoch_started(epoch));
            let (started, n_before) = (Instant::now(), run.n_batches);
            let n_done = self.run_steps(&mut run, train, outputs)?;
            train_seconds += started.elapsed().as_secs_f64();
            n_batches_done += n_done - n_before;

            let (loss, scaler_now) = self.look_at_losses(&mut run, n_done)?;
            let n_skipped = std::mem::take(&mut run.n_skipped);
            scaler = scaler_now;
            if n_done < n_batches {
                ended = Ended::Stopped;
                break;
            }
            (run.n_batches, run.losses) = (0, Vec::new());
            run.n_steps += n_batches.div_ceil(config.accumulate);
            if let Some(replicas) = self.replicas {
                // Statistics of batches are each replica's own; all score with those of the first.
                replicas.broadcast_buffers(device, self.params)?;
            }
            let auc = roc_auc(&self.scorer.scores_of(valid)?, &self.valid_labels)?;
            history.push((loss, auc));
            run.last_auc = auc;
            run.n_epochs = epoch + 1;
            let mut metrics = vec![("loss", loss), ("valid_auc", auc)];
            if self.scaler.config().enabled {
                metrics.extend([("loss_scale", f64::from(scaler.scale)), ("skipped", f64::from(n_skipped))]);
            }
            self.show(outputs, |progress| progress.epoch_finished(&metrics));
            if let Some(log) = &mut log {
                let lr = config.schedule.rate(run.n_steps.saturating_sub(1));
                metrics[0].0 = "train_loss";
                log.append(&[&[("epoch", (epoch + 1) as f64), ("lr", lr)], &metrics[..]].concat())?;
            }

            let stop = run.early_stopping.check(auc);
            if run.keep_if_best(auc, self.params, device)?
                && let Some(path) = self.path(outputs, RunFolder::best)?
            {
                self.save(self.checkpoint(&run, auc)?, &path)?;
            }
            self.save_last(&run, outputs)?;
            if let Some(reason) = stop.filter(|_| config.patience > 0) {
                ended = Ended::Early(reason);
                break;
            }
        }
        self.show(outputs, Progress::finished);
        if ended == Ended::Stopped {
            self.save_last(&run, outputs)?;
        }
        let best = run.best.ok_or(Error::NoEpoch)?;
        best.write(self.params, device)?;
        let n_rows = n_batches_done as f64 * config.batch_rows.min(self.train.n_rows()) as f64;
        let n_rows = n_rows.min(history.len().max(1) as f64 * self.train.n_rows() as f64);
        Ok(FitReport {
            n_epochs: run.n_epochs,
            best_epoch: best.epoch,
            best_auc: best.auc,
            history,
            ended,
            train_seconds,
            train_rows_per_s: n_rows / train_seconds,
            scaler: self.scaler.config().enabled.then_some(scaler),
        })
    }

    /// Sets parameters, optimizer, scaler and counts to their start, whatever a run before has left on the device.
    fn start_over(&self) -> Result<(), Error> {
        self.params.write_initial(&self.device)?;
        for (_, buffer) in self.optimizer.state() {
            self.device.write(buffer, &vec![0.0_f32; buffer.len()])?;
        }
        self.scaler.write_initial(&self.device)?;
        self.device.write(&self.inputs.state, &[0_u32; STATE_LEN])?;
        self.replicas.map_or(Ok(()), |replicas| replicas.broadcast_model(&self.device, self.params))
    }

    /// Puts on the device what [`checkpoint`](Self::checkpoint) took from there.
    fn restore(&self, checkpoint: &Checkpoint) -> Result<(), Error> {
        let seed: u64 = checkpoint.metadata("seed", "a seed")?;
        if seed != self.config.seed {
            return Err(checkpoint.foreign_metadata("seed", "that of this trainer: the order of rows depends on it"));
        }
        let values = flat::values_of(checkpoint, self.params, str::to_owned)?;
        self.device.write(self.params.values(), &self.params.values_of(&values))?;
        for buffer in self.params.buffers() {
            self.device.write(buffer.values(), checkpoint.f32(buffer.name(), buffer.shape())?)?;
        }
        for (name, buffer) in self.optimizer.state() {
            self.device.write(buffer, &flat::state_of(checkpoint, self.params, &name)?)?;
        }
        self.device.write(&self.inputs.state, checkpoint.u32("run.state", &[STATE_LEN])?)?;
        let kept = checkpoint.all_metadata().filter_map(|(name, _)| name.strip_prefix("scaler."));
        let kept = kept.map(|name| Ok((name, checkpoint.metadata(&format!("scaler.{name}"), "a number")?)));
        let kept = kept.collect::<Result<Vec<(&str, f64)>, Error>>()?;
        // A run in f32 or bf16 has left none; the scale then begins as it does.
        if !kept.is_empty() {
            self.scaler.load_state(&self.device, &kept)?;
        }
        Ok(())
    }

    /// Replays the step for the rest of an epoch, some batches at a time; returns how many of its batches are done, less than all if somebody asked to stop.
    fn run_steps(&self, run: &mut RunState, train: &mut OpenFeed<'_>, outputs: &mut Outputs) -> Result<usize, Error> {
        let Self { config, replicas, .. } = self;
        let (from, epoch) = (run.n_batches, run.n_epochs as u32);
        let saved_every = config.checkpoint_every.saturating_mul(config.accumulate);
        let mut n_done = from;
        train.each_turn_from(from, epoch, Cursor::Epoch, REPLAYS_PER_TURN, |turn| {
            let turn_end = turn.first_batch + turn.n_batches;
            while n_done < turn_end {
                if outputs.stop.is_requested() {
                    match replicas {
                        None => return Ok(ControlFlow::Break(())),
                        Some(replicas) => replicas.ask_to_stop(),
                    }
                }
                // Replicas ask each other with every loss, and all end with the same step.
                let most = if replicas.is_some() { 1 } else { turn_end - n_done };
                let until_saved = n_done.checked_rem(saved_every).map_or(usize::MAX, |n| saved_every - n);
                let n = most.min(until_saved);
                if let Some(replicas) = replicas {
                    let n_batches = u64::from(epoch) * self.train.n_batches() as u64 + n_done as u64;
                    replicas.at_step(n_batches / config.accumulate as u64);
                }
                self.step.run(n)?;
                n_done += n;
                if n == until_saved && n_done < self.train.n_batches() {
                    self.look_at_losses(run, n_done)?;
                    self.save_last(run, outputs)?;
                }
                if replicas.is_some_and(DataParallel::is_stop_agreed) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            self.show(outputs, |progress| progress.advance(turn.n_rows as u64));
            Ok(ControlFlow::Continue(()))
        })?;
        self.device.wait()?;
        Ok(n_done)
    }

    /// Reads the losses of the epoch's batches so far, and notes in `run` where it stands: at the last step that is whole.
    fn look_at_losses(&self, run: &mut RunState, n_done: usize) -> Result<(f64, ScalerReport), Error> {
        let (Self { config, device, .. }, epoch) = (self, run.n_epochs);
        let scaler = self.scaler.report(device)?;
        run.n_skipped += scaler.n_skipped.wrapping_sub(run.skipped_before);
        run.skipped_before = scaler.n_skipped;
        if scaler.n_skipped_in_a_row >= config.max_skipped {
            let ScalerReport { scale, n_skipped_in_a_row: n_skipped, .. } = scaler;
            return Err(Error::SkippedSteps { epoch: epoch + 1, n_skipped, scale });
        }
        let losses: Vec<f32> = device.read(&self.losses)?;
        let loss = mean_loss(&losses[..n_done], run.n_skipped as usize * config.accumulate, epoch)?;
        run.n_batches = n_done - n_done % config.accumulate;
        run.losses = losses[..run.n_batches].to_vec();
        Ok((loss, scaler))
    }

    /// Writes the checkpoint to go on from, with the best model so far.
    fn save_last(&self, run: &RunState, outputs: &Outputs) -> Result<(), Error> {
        let Some(path) = self.path(outputs, RunFolder::last)? else { return Ok(()) };
        let mut last = self.checkpoint(run, run.last_auc)?;
        run.insert_best_into(&mut last, &self.flat())?;
        self.save(last, &path)
    }

    /// The path of a checkpoint, where this replica has a part in writing it.
    fn path(&self, outputs: &Outputs, of: fn(&RunFolder) -> PathBuf) -> Result<Option<PathBuf>, Error> {
        let path = self.folder(outputs).map(of);
        self.replicas.map_or(Ok(path.clone()), |replicas| replicas.path_for_all(path, self.params))
    }

    fn save(&self, checkpoint: Checkpoint, path: &Path) -> Result<(), Error> {
        self.replicas.map_or_else(|| checkpoint.save(path), |replicas| replicas.save(&checkpoint, path))
    }

    /// Where the run's files go: those of replicas are replica 0's.
    fn folder<'o>(&self, outputs: &'o Outputs) -> Option<&'o RunFolder> {
        outputs.folder.as_ref().filter(|_| self.flat().is_first())
    }

    fn show(&self, outputs: &mut Outputs, show: impl FnOnce(&mut Progress)) {
        if self.flat().is_first() {
            show(&mut outputs.progress);
        }
    }

    fn flat(&self) -> Flat<'_> {
        Flat { params: self.params, replicas: self.replicas }
    }

    /// Everything needed to use the weights or go on from them; of several replicas, what this one writes of it.
    fn checkpoint(&self, run: &RunState, auc: f64) -> Result<Checkpoint, Error> {
        let mut checkpoint = Checkpoint::new();
        let (flat, device) = (self.flat(), &self.device);
        flat.insert_values(&mut checkpoint, &device.read::<f32>(self.params.values())?, str::to_owned)?;
        for (name, buffer) in self.optimizer.state() {
            flat.insert_state(&mut checkpoint, &name, &device.read::<f32>(buffer)?)?;
        }
        if !flat.is_first() {
            return Ok(checkpoint);
        }
        for buffer in self.params.buffers() {
            checkpoint.insert(buffer.name(), buffer.shape(), device.read::<f32>(buffer.values())?)?;
        }
        let n_cols = self.scale.mean().len();
        checkpoint.insert("input.mean", &[n_cols], self.scale.mean().to_vec())?;
        checkpoint.insert("input.inv_std", &[n_cols], self.scale.inv_std().to_vec())?;
        checkpoint.insert("run.state", &[STATE_LEN], self.device.read::<u32>(&self.inputs.state)?)?;
        for (name, value) in self.scaler.state(&self.device)? {
            checkpoint.insert_metadata(format!("scaler.{name}"), value);
        }
        run.insert_into(&mut checkpoint)?;
        checkpoint.insert_metadata("valid_auc", auc);
        checkpoint.insert_metadata("seed", self.config.seed);
        checkpoint.insert_metadata("precision", self.config.precision);
        Ok(checkpoint)
    }

    /// The recorded step and evaluation, for [`Graph::planned_peak_bytes`].
    pub fn graphs(&self) -> [&Graph; 2] {
        [&self.graph, self.scorer.graph()]
    }

    /// What the model takes on this device, by the plan: as much as on any, or this replica's part. Rows, and sums of gradients over several batches, come on top.
    ///
    /// # Errors
    /// [`Error::Tensor`].
    pub fn memory(&self) -> Result<StateMemory, Error> {
        StateMemory::of(self.params, self.optimizer, &self.graphs())
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

/// The mean of an epoch's losses. Those that are not finite are left out where they may be those of steps that were skipped.
fn mean_loss(losses: &[f32], n_skipped: usize, epoch: usize) -> Result<f64, Error> {
    let finite = losses.iter().filter(|loss| loss.is_finite());
    let n_finite = finite.clone().count();
    match losses.iter().position(|loss| !loss.is_finite()) {
        Some(step) if losses.len() - n_finite > n_skipped => {
            Err(Error::NonFiniteLoss { epoch: epoch + 1, step: step + 1, loss: losses[step] })
        }
        _ => Ok(finite.map(|&loss| f64::from(loss)).sum::<f64>() / n_finite as f64),
    }
}

/// Several batches a step are steps that are not due.
fn check_skips(optimizer: &dyn Optimizer) -> Result<(), Error> {
    if optimizer.skips() {
        return Ok(());
    }
    let found = "the optimizer does not say that its steps can be skipped".to_owned();
    let expected = "one that does by `Optimizer::skips`, or one batch a step";
    Err(Error::Tensor(brisk_nn::Error::Refused { op: "accumulate", found, expected }))
}

/// Rows scored at a time when evaluating.
pub(crate) const EVALUATION_ROWS: usize = 1024;
