//! The recorded training step: batch, forward, loss, backward, exchange between replicas, optimizer.

use brisk_nn::tensor::program::{Device, Executable};
use brisk_nn::tensor::{DType, Graph, Persistent, Precision, Reduction};
use brisk_nn::{Accumulate, GradScaler, GradScalerConfig, Kept, Module, Optimizer, Parameters, StepInputs};

use super::{GradientClip, TrainerConfig};
use crate::data_parallel::check_batch;
use crate::feed::Feed;
use crate::flat::Flat;
use crate::{BatchTensors, DataParallel, Error, ReduceOp, Standardisation};

/// A step that has been recorded, and takes no memory yet.
#[derive(Debug)]
pub(super) struct RecordedStep {
    pub(super) graph: Graph,
    inputs: StepInputs,
    losses: Persistent,
    scaler: GradScaler,
}

/// The compiled step with its inputs and outputs.
#[derive(Debug)]
pub(super) struct TrainingStep {
    pub(super) graph: Graph,
    pub(super) executable: Executable,
    pub(super) inputs: StepInputs,
    pub(super) losses: Persistent,
    pub(super) scaler: GradScaler,
}

impl RecordedStep {
    #[track_caller]
    pub(super) fn record(
        model: &dyn Module,
        params: &Parameters,
        optimizer: &dyn Optimizer,
        train: &Feed<'_>,
        scale: &Standardisation,
        config: &TrainerConfig,
        replicas: Option<&DataParallel>,
    ) -> Result<Self, Error> {
        let n_batches = train.n_batches();
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, n_batches), state: Graph::state_buffer() };
        let losses = Persistent::new("losses", DType::F32, n_batches);
        let is_scaled = config.precision == Precision::F16 && config.scaler.enabled;
        let scaler = GradScaler::new(GradScalerConfig { enabled: is_scaled, ..config.scaler })?;

        let graph = Graph::training("train");
        let _caller = graph.enter_from_caller();
        if let Some(replicas) = replicas {
            replicas.prepare(&graph);
        }
        Flat { params, replicas }.check()?;
        let bound = params.bind(&graph);
        let batch = match replicas {
            None => train.record(&graph, scale, &inputs.state),
            Some(replicas) => {
                check_batch(train.batch_rows(), replicas.world_size())?;
                let part = replicas.part_of(train.batch_rows());
                let shares = train.record_shares(&graph, scale, &inputs.state).narrow(0, part.clone());
                BatchTensors { weights: shares, ..train.record_part(&graph, scale, &inputs.state, part) }
            }
        };
        // Losses of parts, weighted by their shares of the whole batch, add up to its mean.
        let reduction = if replicas.is_some() { Reduction::Sum } else { Reduction::Mean };
        let loss = graph.autocast(config.precision, || {
            let logits = batch.forward(model, &bound);
            logits.bce_with_logits(&batch.labels, &batch.weights, reduction, 1.0)
        });
        scaler.backward(&loss)?;
        let accumulate = (config.accumulate != 1).then(|| Accumulate::new(params, config.accumulate as u32));
        let accumulate = accumulate.map(|accumulate| accumulate.ending_after(n_batches as u32));
        accumulate.iter().try_for_each(|_| check_skips(optimizer))?;
        // Gradients are accumulated where they are kept: all of them before they are reduced, or a replica's own after that.
        let keeps_own = params.division().is_some_and(|division| division.gradients == Kept::Own);
        let [before, after] = [!keeps_own, keeps_own].map(|is_here| accumulate.as_ref().filter(|_| is_here));
        if let Some(accumulate) = before {
            accumulate.record(&graph, params, &inputs.state);
        }
        if let Some(replicas) = replicas {
            replicas.gather_parameters(&graph, params, &bound);
            replicas.reduce_gradients(&graph, params, &bound, ReduceOp::Sum, before.map(|_| &inputs.state));
        }
        if let Some(accumulate) = after {
            accumulate.record(&graph, params, &inputs.state);
        }
        scaler.unscale(&graph, params.grads(), &inputs.state);
        if let Some(replicas) = replicas {
            replicas.agree_on_skip(&graph, params, &scaler, &inputs.state);
        }
        match config.clip {
            None => {}
            Some(GradientClip::Norm(max_norm)) => {
                let norm = replicas.map_or_else(|| params.grad_norm(&graph), |replicas| replicas.grad_norm(&graph, params));
                params.clip_grads_with_norm(&graph, &norm, max_norm);
            }
            Some(GradientClip::Value(limit)) => params.clip_grad_value(&graph, limit),
        }
        scaler.step(&graph, optimizer, params, &inputs);
        if let Some(replicas) = replicas {
            let may_skip = accumulate.is_some() || is_scaled;
            replicas.gather_stepped(&graph, params, may_skip.then_some(&inputs.state));
        }
        scaler.update(&graph);
        let loss = match replicas {
            None => loss,
            Some(replicas) => replicas.all_reduce_and_ask(&graph, &loss, ReduceOp::Sum),
        };
        graph.store(&loss, &inputs.state, &losses);
        graph.advance(&inputs.state);
        Ok(Self { graph, inputs, losses, scaler })
    }

    pub(super) fn compile(self, device: &Device) -> Result<TrainingStep, Error> {
        let Self { graph, inputs, losses, scaler } = self;
        let executable = graph.compile(device)?;
        Ok(TrainingStep { graph, executable, inputs, losses, scaler })
    }
}

/// With several batches per step, the recorded step is skipped for all batches but the last.
fn check_skips(optimizer: &dyn Optimizer) -> Result<(), Error> {
    if optimizer.skips() {
        return Ok(());
    }
    let found = "the optimizer does not say that its steps can be skipped".to_owned();
    let expected = "an optimizer that does (`Optimizer::skips`), or one batch per step";
    Err(Error::Tensor(brisk_nn::Error::Refused { op: "accumulate", found, expected }))
}
