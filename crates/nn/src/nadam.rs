use brisk_kernels::{Interval, Number, Rule, StepValue};
use brisk_tensor::Graph;
use serde::{Deserialize, Serialize};

use crate::adam::{WeightDecay, moments};
use crate::elementwise::{Elementwise, betas_and_eps_setters, groups_setter, setters};
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::step_inputs::StepInputs;

/// NAdam: Adam with Nesterov momentum, which grows with the number of steps.
///
/// With `t` the number of steps that were not skipped: `μₜ = β₁ (1 - ½ 0.96^(t ψ))`, `m` and `v` as in [`Adam`](crate::Adam),
/// `p -= lr ((1 - μₜ) / (1 - μ₁ … μₜ) g + μₜ₊₁ / (1 - μ₁ … μₜ₊₁) m) / (√v / √(1 - β₂ᵗ) + ε)`.
///
/// # Reference
/// Dozat 2016, *Incorporating Nesterov Momentum into Adam*; `torch.optim.NAdam`.
#[derive(Debug, Clone)]
pub struct NAdam {
    elementwise: Elementwise,
    config: NAdamConfig,
}

/// The settings of [`NAdam`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NAdamConfig {
    /// β₁ and β₂.
    pub betas: [f32; 2],
    /// ε.
    pub eps: f32,
    /// ψ.
    pub momentum_decay: f32,
    /// The weight decay.
    pub weight_decay: f32,
    /// Whether it is [decoupled](WeightDecay::Decoupled).
    pub decoupled_weight_decay: bool,
}

impl Default for NAdamConfig {
    /// PyTorch's: β = (0.9, 0.999), ε = 1e-8, ψ = 0.004.
    fn default() -> Self {
        Self { betas: [0.9, 0.999], eps: 1e-8, momentum_decay: 0.004, weight_decay: 0.0, decoupled_weight_decay: false }
    }
}

impl NAdam {
    /// NAdam with PyTorch's defaults: β = (0.9, 0.999), ε = 1e-8, ψ = 0.004, no weight decay.
    #[track_caller]
    pub fn new(params: &Parameters) -> Self {
        Self::from_config(params, NAdamConfig::default())
    }

    /// NAdam with these settings.
    #[track_caller]
    pub(crate) fn from_config(params: &Parameters, config: NAdamConfig) -> Self {
        Self { elementwise: Elementwise::new(params, "nadam", &["m", "v", "correction"]), config }
    }

    betas_and_eps_setters!();

    setters! {
        /// Sets ψ, above 0: how fast the momentum grows.
        momentum_decay: f32
    }

    /// Sets the weight decay.
    pub fn weight_decay(mut self, weight_decay: WeightDecay) -> Self {
        self.config.weight_decay = weight_decay.decay();
        self.config.decoupled_weight_decay = matches!(weight_decay, WeightDecay::Decoupled(_));
        self
    }

    groups_setter!();
}

impl NAdamConfig {
    const fn decay(&self) -> WeightDecay {
        if self.decoupled_weight_decay {
            WeightDecay::Decoupled(self.weight_decay)
        } else {
            WeightDecay::Gradient(self.weight_decay)
        }
    }

    /// `0.96^ψ`.
    fn growth(&self) -> f32 {
        0.96_f64.powf(self.momentum_decay.into()) as f32
    }
}

impl Rule<4, 1, 4> for NAdamConfig {
    fn values(&self) -> [StepValue; 4] {
        let growth = StepValue::BiasCorrection(self.growth());
        [StepValue::Rate, StepValue::Decay(self.weight_decay), growth, StepValue::RootBiasCorrection(self.betas[1])]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        vec![
            ("beta1", self.betas[0], Interval::BelowOne),
            ("beta2", self.betas[1], Interval::BelowOne),
            ("eps", self.eps, Interval::NonNegative),
            ("momentum_decay", self.momentum_decay, Interval::Positive),
            ("weight_decay", self.weight_decay, Interval::NonNegative),
        ]
    }

    /// `correction` is `1 - μ₁ … μₜ`, which is 0 at the start.
    #[inline(always)]
    fn update<N: Number>(
        &self,
        [rate, decay, growth, of_v]: [N; 4],
        [grad]: [N; 1],
        [param, m, v, correction]: [N; 4],
    ) -> [N; 4] {
        let [grad, param] = self.decay().apply(rate, decay, grad, param);
        // 0.96^(t ψ) and 0.96^((t + 1) ψ).
        let power = -growth.recip() + 1.0;
        let [mu, next_mu] = [power, power * self.growth()].map(|power| (power * -0.5 + 1.0) * self.betas[0]);
        let correction = -(mu * (-correction + 1.0)) + 1.0;
        let next_correction = -(next_mu * (-correction + 1.0)) + 1.0;
        let [m, v] = moments(self.betas, grad, [m, v]);
        let step = grad * (-mu + 1.0) / correction + m * next_mu / next_correction;
        [param - rate * step / (v.sqrt() * of_v + self.eps), m, v, correction]
    }
}

impl Optimizer for NAdam {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        self.elementwise.record(graph, params, inputs, &self.config);
    }

    fn elementwise(&self) -> Option<&Elementwise> {
        Some(&self.elementwise)
    }
}
