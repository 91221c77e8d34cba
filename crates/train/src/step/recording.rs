//! How a step is recorded, phase by phase.

use brisk_nn::tensor::program::kernels::SkipWeightless;
use brisk_nn::tensor::program::kernels::expr::Expr;
use brisk_nn::tensor::{DType, EpochRows, Graph, Persistent, Precision, Reduction, Tensor};
use brisk_nn::{Accumulate, Bound, GradScaler, GradScalerConfig, Optimizer, Parameters, Placement, StepInputs};
use brisk_replicate::ReduceOp;

use super::{Frozen, RecordedStep, Trained};
use crate::data_parallel::{DataParallel, PartOfBatch};
use crate::error::Error;
use crate::feed::{BatchTensors, Feed};
use crate::gradient_clip::GradientClip;
use crate::standardisation::Standardisation;
use crate::trainer_config::TrainerConfig;

/// What the phases share.
struct Recording<'r> {
    graph: Graph,
    feed: &'r Feed<'r>,
    scale: &'r Standardisation,
    config: &'r TrainerConfig,
    replicas: &'r DataParallel,
    scaler: GradScaler,
    /// The inputs of each optimizer.
    inputs: Vec<StepInputs>,
    epoch: EpochRows,
    n_batches: usize,
    grad_norms: Option<Persistent>,
}

impl RecordedStep {
    /// Records the step over the batches of `feed`, within the limit of the settings. `loss` receives the batch, how losses of
    /// rows are reduced, and the parameters: those that are trained, then the frozen ones. Replicas train one set.
    #[track_caller]
    pub(crate) fn record(
        feed: &Feed<'_>,
        scale: &Standardisation,
        config: &TrainerConfig,
        trained: &[Trained<'_>],
        frozen: &[Frozen<'_>],
        replicas: &DataParallel,
        loss: impl FnOnce(&BatchTensors, Reduction, &[Bound]) -> Tensor,
    ) -> Result<Self, Error> {
        let recording = Recording::new(feed, scale, config, trained.len(), replicas)?;
        let graph = &recording.graph;
        let _caller = graph.enter_from_caller();
        let bound = recording.bind(trained, frozen)?;
        let (batch, weight) = recording.batch()?;
        let n_readers = batch.n_readers_of_weights();
        let loss = graph.autocast(config.precision, || loss(&batch, replicas.reduction(), &bound));
        if !loss.is_failed() && batch.n_readers_of_weights() == n_readers {
            recording.check_unweighted()?;
        }
        let or_zero = |weight: &Tensor| loss.map2(weight, |loss, weight| Expr::eq(&weight, 0.0).select(0.0, loss));
        let loss = weight.as_ref().map_or_else(|| loss.clone(), or_zero);
        recording.scaler.backward(&loss)?;
        for ((trained, inputs), bound) in trained.iter().zip(&recording.inputs).zip(&bound) {
            recording.optimize(trained, inputs, bound, weight.as_ref())?;
        }
        recording.scaler.update(graph);
        Ok(recording.finish(&loss, weight.as_ref()))
    }
}

impl<'r> Recording<'r> {
    fn new(
        feed: &'r Feed<'_>,
        scale: &'r Standardisation,
        config: &'r TrainerConfig,
        n_trained: usize,
        replicas: &'r DataParallel,
    ) -> Result<Self, Error> {
        if !(1..=u32::MAX as usize).contains(&config.accumulate) {
            let (found, expected) = (config.accumulate.to_string(), "at least one batch per step, and fewer than 2^32");
            return Err(Error::setting("accumulate", found, expected));
        }
        if n_trained == 0 {
            let expected = "parameters to train (`StepBuilder::train`)";
            return Err(Error::refused("step", "a step without parameters".to_owned(), expected));
        }
        let n_batches = config.train_batches(feed.n_batches())?;
        let graph = Graph::training("train");
        graph.seed(config.seed);
        // The batch, and the random numbers, are those of the first optimizer's state; others may skip more steps.
        let first = StepInputs::new(&graph, n_batches);
        let others = (1..n_trained).map(|_| StepInputs { state: Graph::state_buffer(), ..StepInputs::new(&graph, n_batches) });
        let inputs = std::iter::once(first).chain(others).collect();
        let is_scaled = config.precision == Precision::F16 && config.scaler.enabled;
        let scaler = GradScaler::new(GradScalerConfig { enabled: is_scaled, ..config.scaler })?;
        if config.detect_anomaly {
            graph.detect_anomaly();
        }
        replicas.prepare(&graph);
        let batch_rows = feed.batch_rows();
        let part = replicas.part_of(batch_rows);
        let epoch = EpochRows { n_rows: feed.n_rows().min(n_batches * batch_rows), batch_rows, part };
        let grad_norms = config.record_grad_norms.then(|| Persistent::new("grad_norms", DType::F32, n_batches));
        Ok(Self { graph, feed, scale, config, replicas, scaler, inputs, epoch, n_batches, grad_norms })
    }

    /// The parameters in the graph: those that are trained, then the frozen ones.
    fn bind(&self, trained: &[Trained<'_>], frozen: &[Frozen<'_>]) -> Result<Vec<Bound>, Error> {
        let Self { graph, replicas, .. } = self;
        trained.iter().try_for_each(|&Trained { params, .. }| replicas.check_shards(params))?;
        trained.iter().try_for_each(check_trains)?;
        let trained = trained.iter().map(|trained| trained.params.bind(graph).freeze_where(|id| !trained.optimizer.trains(id)));
        let frozen = frozen.iter().map(|frozen| match frozen {
            Frozen { params, updates_buffers: false } => params.bind_frozen(graph),
            Frozen { params, updates_buffers: true } => params.bind_frozen(graph).updating_buffers(),
        });
        Ok(trained.chain(frozen).collect())
    }

    fn has_padding(&self) -> bool {
        self.epoch.n_rows < self.n_batches * self.epoch.batch_rows
    }

    /// The rows of the batch, or of this replica's part of it, with the weights by which their losses are averaged; and the sum
    /// of the weights of the whole batch, if rows have weights.
    fn batch(&self) -> Result<(BatchTensors, Option<Tensor>), Error> {
        let Self { graph, feed, scale, replicas, inputs, epoch, .. } = self;
        let PartOfBatch { batch, counts, weight } = replicas.record_part(graph, feed, scale, &inputs[0].state, epoch)?;
        if self.has_padding() || feed.has_weights() {
            graph.set_row_weights(&counts, epoch);
        }
        Ok((batch, weight))
    }

    /// Checks that a loss that ignores the weights of rows is of rows that all count the same.
    fn check_unweighted(&self) -> Result<(), Error> {
        let EpochRows { n_rows, batch_rows, .. } = self.epoch;
        let found = if self.has_padding() {
            format!("a loss that ignores them, and {n_rows} rows in batches of {batch_rows}, the last of which is padded")
        } else if self.feed.has_weights() {
            "a loss that ignores them, and rows with weights".to_owned()
        } else {
            return Ok(());
        };
        let expected = "a loss weighted by them (`BatchTensors::mean`, `LabelledRows::reduce`), or batches of equal length \
                        (`drop_last`, another batch size) of rows without weights";
        Err(Error::refused("weights of rows", found, expected))
    }

    /// Accumulation, exchange between replicas, unscaling, clipping and the step of one optimizer. `weight` is the sum of the
    /// weights of the batch, if rows have weights.
    fn optimize(
        &self,
        &Trained { params, optimizer, ema }: &Trained<'_>,
        inputs: &StepInputs,
        bound: &Bound,
        weight: Option<&Tensor>,
    ) -> Result<(), Error> {
        let Self { graph, config, replicas, scaler, n_batches, .. } = self;
        let n_accumulated = config.accumulate as u32;
        let accumulate = (n_accumulated != 1).then(|| Accumulate::new(params, n_accumulated).ending_after(*n_batches as u32));
        if accumulate.is_some() {
            check_skips(optimizer)?;
        }
        // An optimizer that cannot skip takes a step with gradients of 0.
        let weight = weight.filter(|_| optimizer.skips());
        if let Some(weight) = weight {
            let sum = Persistent::new("weight.sum", DType::F32, 1);
            let kernel = SkipWeightless { every: n_accumulated, n_batches: *n_batches as u32 };
            graph.push(kernel, &[weight.slice(), graph.buffer(&sum), graph.buffer(&inputs.state)]);
        }
        // Gradients are accumulated where they are kept: all of them before the reduction, or a replica's own after it.
        let keeps_own = params.sharding().is_some_and(|sharding| sharding.gradients == Placement::Sharded);
        let [before, after] = [!keeps_own, keeps_own].map(|is_here| accumulate.as_ref().filter(|_| is_here));
        if let Some(accumulate) = before {
            accumulate.record(graph, params, &inputs.state);
        }
        replicas.gather_parameters(graph, params, bound);
        replicas.reduce_gradients(graph, params, bound, ReduceOp::Sum, before.map(|_| &inputs.state));
        if let Some(accumulate) = after {
            accumulate.record(graph, params, &inputs.state);
        }
        let unscaled = scaler.unscale(graph, params, inputs);
        replicas.agree_on_skip(graph, params, scaler, &inputs.state);
        self.clip(params);
        unscaled.step(optimizer);
        let may_skip = accumulate.is_some() || scaler.config().enabled || weight.is_some();
        replicas.gather_stepped(graph, params, may_skip.then_some(&inputs.state));
        if let Some(ema) = ema {
            ema.record(graph, params, &inputs.state);
        }
        Ok(())
    }

    /// Clips the gradients, and keeps their norm.
    fn clip(&self, params: &Parameters) {
        let Self { graph, config, replicas, inputs, grad_norms, .. } = self;
        let needs_norm = grad_norms.is_some() || matches!(config.clip, Some(GradientClip::Norm(_)));
        let norm = needs_norm.then(|| replicas.grad_norm(graph, params));
        if let (Some(norm), Some(grad_norms)) = (&norm, grad_norms) {
            graph.store(norm, &inputs[0].state, grad_norms);
        }
        match (config.clip, norm) {
            (Some(GradientClip::Norm(max_norm)), Some(norm)) => params.clip_grads_with_norm(graph, &norm, max_norm),
            (Some(GradientClip::Value(limit)), _) => params.clip_grad_value(graph, limit),
            _ => {}
        }
    }

    /// Keeps the loss of the batch, and moves on to the next.
    fn finish(self, loss: &Tensor, weight: Option<&Tensor>) -> RecordedStep {
        let Self { graph, replicas, scaler, inputs, epoch, n_batches, grad_norms, .. } = self;
        let state = &inputs[0].state;
        let loss = replicas.all_reduce_and_ask(&graph, loss, ReduceOp::Sum);
        let losses = Persistent::new("losses", DType::F32, n_batches);
        graph.store(&loss, state, &losses);
        let loss_weights = weight.map(|weight| {
            let loss_weights = Persistent::new("loss_weights", DType::F32, n_batches);
            graph.store(weight, state, &loss_weights);
            loss_weights
        });
        inputs.iter().for_each(|inputs| graph.advance(&inputs.state));
        RecordedStep { graph, inputs, losses, loss_weights, epoch, grad_norms, scaler }
    }
}

/// Checks that an optimizer trains some of the parameters.
fn check_trains(&Trained { params, optimizer, .. }: &Trained<'_>) -> Result<(), Error> {
    let ids = params.ids_where(|_| true);
    if ids.is_empty() || ids.iter().any(|&id| optimizer.trains(id)) {
        return Ok(());
    }
    let found = format!("an optimizer that trains none of the {} parameters", ids.len());
    let expected = "groups with some of them, at rates above 0; check the names by which `Parameters::ids_where` chooses them";
    Err(Error::refused("step", found, expected))
}

/// With several batches per step, the recorded step is skipped for all batches but the last.
fn check_skips(optimizer: &dyn Optimizer) -> Result<(), Error> {
    if optimizer.skips() {
        return Ok(());
    }
    let found = "the optimizer does not say that its steps can be skipped".to_owned();
    Err(Error::refused("accumulate", found, "an optimizer that does (`Optimizer::skips`), or one batch per step"))
}
