use brisk_kernels::DType;
use brisk_tensor::{Error, Graph, Persistent};

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
    /// An average of which `decay` stays at each step.
    pub fn new(params: &Parameters, decay: f32) -> Self {
        Self { average: Persistent::new("ema.average", DType::F32, params.len()), decay, every: 1 }
    }

    /// Takes it only after every `n_steps`th step.
    pub fn every(mut self, n_steps: u32) -> Self {
        self.every = n_steps;
        self
    }

    /// Records an update, behind the optimizer and before the step ends; `state` is the run's.
    ///
    /// # Errors
    /// [`Error::Program`] if the decay is not within 0 to 1, or it is to be taken every 0 steps.
    pub fn record(&self, graph: &Graph, params: &Parameters, state: &Persistent) -> Result<(), Error> {
        params.check_whole("ema")?;
        let kernel = brisk_kernels::Ema { n: params.len(), decay: self.decay, every: self.every };
        Ok(graph.with_program(|program| {
            let args = [params.values(), state, &self.average].map(|persistent| program.persistent(persistent));
            program.push(kernel, &args)
        })?)
    }

    /// The same model with the averaged values, to bind in a graph that evaluates.
    pub fn averaged(&self, params: &Parameters) -> Parameters {
        params.with_values(&self.average)
    }

    /// The averaged values, laid out as the parameters; a checkpoint must keep them.
    pub fn average(&self) -> &Persistent {
        &self.average
    }
}
