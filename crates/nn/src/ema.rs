use brisk_kernels::DType;
use brisk_tensor::{Graph, Persistent};

use crate::Parameters;

/// An exponential moving average of a model's parameters, kept on the device; often the better model to evaluate.
///
/// # Reference
/// `torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`: the first time the parameters are copied, then
/// `average = decay average + (1 - decay) parameters`.
#[derive(Debug, Clone)]
pub struct Ema {
    average: Persistent,
    decay: f32,
    every: u32,
}

impl Ema {
    /// An average that keeps the fraction `decay` of itself at each step.
    pub fn new(params: &Parameters, decay: f32) -> Self {
        Self { average: Persistent::new("ema.average", DType::F32, params.len()), decay, every: 1 }
    }

    /// Updates it only after every `n_steps`th step.
    pub fn every(mut self, n_steps: u32) -> Self {
        self.every = n_steps;
        self
    }

    /// Records an update, after the optimizer and before the step ends; `state` is that of the run.
    ///
    /// # Errors
    /// [`Error::Program`](brisk_tensor::Error::Program) if the decay is not within 0 to 1, or the interval is 0 steps;
    /// [`Error::Refused`](brisk_tensor::Error::Refused) for parameters that are sharded across replicas.
    #[track_caller]
    pub fn record(&self, graph: &Graph, params: &Parameters, state: &Persistent) {
        if let Err(error) = params.check_whole("ema") {
            return graph.fail(error);
        }
        let kernel = brisk_kernels::Ema { n: params.len(), decay: self.decay, every: self.every };
        graph.push(kernel, &[params.values(), state, &self.average].map(|persistent| graph.buffer(persistent)));
    }

    /// The same model with the averaged values, to bind in a graph that evaluates.
    pub fn averaged(&self, params: &Parameters) -> Parameters {
        params.with_values(&self.average)
    }

    /// The averaged values, in the layout of the parameters; a checkpoint must contain them.
    pub fn average(&self) -> &Persistent {
        &self.average
    }
}
