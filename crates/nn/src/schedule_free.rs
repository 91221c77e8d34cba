use brisk_kernels::{DType, Interval, Number, Rule, StepCount, StepValue, Update};
use brisk_tensor::{Graph, Persistent};

use crate::adam::AdamConfig;
use crate::elementwise::{Elementwise, groups_setter, setters};
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::step_inputs::StepInputs;

/// AdamW without a schedule: instead of decaying the learning rate, it averages the iterates, so the number of steps need not be
/// known. Use a constant rate, after a warm-up.
///
/// The parameters are the points `y` at which gradients are computed, between the iterates `z` and their average `x`. With
/// `γ = lr √(1 - β₂ᵗ)`: `v = β₂ v + (1 - β₂) g²`, `z -= γ g / (√v + ε) + γ λ y`, `x += c (z - x)` with `c = γ² / Σ γ²`, and
/// `y = (1 - β₁) z + β₁ x`.
///
/// A trainer of whole runs validates and keeps the average; in a loop of your own, evaluate
/// [`record_averaged`](Optimizer::record_averaged), not the parameters. The running statistics of batch normalisation belong to
/// the parameters; to use the average with them, run some batches of training data through it in training mode first.
///
/// # Cost
/// One kernel, and 36 bytes a parameter, where Adam moves 28. The sum of squared rates is kept for each parameter, so that groups
/// have their own and parameters may be sharded.
/// # Reference
/// Defazio et al. 2024, *The Road Less Scheduled*, arXiv:2405.15682, algorithm 1.
/// # Examples
/// ```
/// use brisk_nn::{Activation, Linear, ParametersBuilder, ScheduleFreeAdamW};
///
/// let mut builder = ParametersBuilder::new();
/// Linear::new(&mut builder, "head", 8, 2, Activation::identity());
/// let params = builder.build(0);
/// let optimizer = ScheduleFreeAdamW::new(&params).weight_decay(0.01);
/// ```
#[derive(Debug, Clone)]
pub struct ScheduleFreeAdamW {
    elementwise: Elementwise,
    average: Persistent,
    config: AdamConfig,
}

impl ScheduleFreeAdamW {
    /// β = (0.9, 0.999), ε = 1e-8, no weight decay, as in the authors' implementation.
    #[track_caller]
    pub fn new(params: &Parameters) -> Self {
        Self::from_config(params, AdamConfig::default())
    }

    /// Schedule-free AdamW with these settings, of which `amsgrad` has no effect; the decay is 0 by default.
    #[track_caller]
    pub(crate) fn from_config(params: &Parameters, config: AdamConfig) -> Self {
        let elementwise = Elementwise::new(params, "schedule_free", &["z", "v", "weights"]);
        let average = Persistent::new("schedule_free.average", DType::F32, params.len());
        Self { elementwise, average, config }.weight_decay(config.weight_decay.unwrap_or(0.0))
    }

    /// Sets β₁, the weight of the average in the points at which gradients are computed, above 0, and β₂, the decay of the mean
    /// of squared gradients.
    pub fn betas(mut self, beta1: f32, beta2: f32) -> Self {
        self.config.betas = [beta1, beta2];
        self
    }

    setters! {
        /// Sets ε.
        eps: f32
    }

    /// Sets the decoupled weight decay λ.
    pub fn weight_decay(mut self, weight_decay: f32) -> Self {
        self.config.weight_decay = Some(weight_decay);
        self
    }

    groups_setter!();
}

#[derive(Debug, Clone, Copy)]
struct Step(AdamConfig);

impl Rule<4, 1, 4> for Step {
    fn values(&self) -> [StepValue; 4] {
        let is_first = StepValue::UpTo { of: StepCount::Updates, last: 1 };
        let decay = StepValue::Decay(self.0.weight_decay.unwrap_or(0.0));
        [StepValue::Rate, decay, StepValue::RootBiasCorrection(self.0.betas[1]), is_first]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        self.0.settings(Interval::Open, self.0.weight_decay.unwrap_or(0.0))
    }

    #[inline(always)]
    fn update<N: Number>(&self, values: [N; 4], [grad]: [N; 1], [y, z, v, weights]: [N; 4]) -> [N; 4] {
        let [rate, decay, of_v, is_first] = values;
        let AdamConfig { betas: [beta1, beta2], eps, .. } = self.0;
        let z = is_first.select(y, z);
        let x = z + (y - z) / beta1;
        let rate = rate / of_v;
        let v = v * beta2 + grad * (1.0 - beta2) * grad;
        let z = z - rate * (grad / (v.sqrt() + eps) + decay * y);
        let weight = rate * rate;
        let weights = weights + weight;
        // While all rates were 0, nothing has moved.
        let x = x + weights.is_positive().select(weight / weights, weights) * (z - x);
        [z + (x - z) * beta1, z, v, weights]
    }
}

/// `x`, from `y` and `z`.
#[derive(Debug, Clone, Copy)]
struct Average {
    beta1: f32,
}

impl Rule<0, 3, 1> for Average {
    fn values(&self) -> [StepValue; 0] {
        []
    }

    #[inline(always)]
    fn update<N: Number>(&self, []: [N; 0], [y, z, weights]: [N; 3], _: [N; 1]) -> [N; 1] {
        [weights.is_positive().select(z + (y - z) / self.beta1, y)]
    }
}

impl Optimizer for ScheduleFreeAdamW {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        self.elementwise.record(graph, params, inputs, &Step(self.config));
    }

    fn elementwise(&self) -> Option<&Elementwise> {
        Some(&self.elementwise)
    }

    /// Before the first step the average is the parameters. Fails for parameters that are sharded across replicas, and for those
    /// of another model.
    #[track_caller]
    fn record_averaged(&self, graph: &Graph, params: &Parameters) -> Option<Parameters> {
        let buffers: Vec<_> = params.buffers().iter().map(|buffer| buffer.values().clone()).collect();
        let averaged = params.with_values(&self.average, &buffers);
        let rule = Average { beta1: self.config.betas[0] };
        if let Err(error) = params.check_whole("schedule_free").and_then(|()| self.elementwise.check(params)) {
            graph.fail(error);
            return Some(averaged);
        }
        let state = self.elementwise.state();
        let [z, weights] = [0, 2].map(|i| graph.buffer(state[i].1));
        let kernel = Update::new("schedule_free.average", rule, params.len());
        // The step of the graph does not matter: the average is computed whenever the graph runs.
        let of_run = graph.buffer(&Graph::state_buffer());
        graph.push(kernel, &[graph.buffer(params.values()), z, weights, of_run, graph.buffer(&self.average)]);
        Some(averaged)
    }
}
