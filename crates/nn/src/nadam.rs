use brisk_kernels::{Interval, Number, Rule, StepValue};
use brisk_tensor::{Graph, Persistent};

use crate::adam::WeightDecay;
use crate::elementwise::{Elementwise, betas_and_eps_setters, groups_setter};
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
    step: Step,
}

impl NAdam {
    /// NAdam with PyTorch's defaults: β = (0.9, 0.999), ε = 1e-8, ψ = 0.004, no weight decay.
    #[track_caller]
    pub fn new(params: &Parameters) -> Self {
        let step = Step { beta1: 0.9, beta2: 0.999, eps: 1e-8, momentum_decay: 0.004, weight_decay: WeightDecay::Gradient(0.0) };
        Self { elementwise: Elementwise::new(params, "nadam", &["m", "v", "correction"]), step }
    }

    betas_and_eps_setters!(step);

    /// Sets ψ, above 0: how fast the momentum grows.
    pub fn momentum_decay(mut self, momentum_decay: f32) -> Self {
        self.step.momentum_decay = momentum_decay;
        self
    }

    /// Sets the weight decay.
    pub fn weight_decay(mut self, weight_decay: WeightDecay) -> Self {
        self.step.weight_decay = weight_decay;
        self
    }

    groups_setter!();
}

#[derive(Debug, Clone, Copy)]
struct Step {
    beta1: f32,
    beta2: f32,
    eps: f32,
    momentum_decay: f32,
    weight_decay: WeightDecay,
}

impl Step {
    /// `0.96^ψ`.
    fn growth(&self) -> f32 {
        0.96_f64.powf(self.momentum_decay.into()) as f32
    }
}

impl Rule<4, 1, 4> for Step {
    fn values(&self) -> [StepValue; 4] {
        let growth = StepValue::BiasCorrection(self.growth());
        [StepValue::Rate, self.weight_decay.value(), growth, StepValue::RootBiasCorrection(self.beta2)]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        vec![
            ("beta1", self.beta1, Interval::BelowOne),
            ("beta2", self.beta2, Interval::BelowOne),
            ("eps", self.eps, Interval::NonNegative),
            ("momentum_decay", self.momentum_decay, Interval::Positive),
            self.weight_decay.setting(),
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
        let [grad, param] = self.weight_decay.apply(rate, decay, grad, param);
        // 0.96^(t ψ) and 0.96^((t + 1) ψ).
        let power = -growth.recip() + 1.0;
        let [mu, next_mu] = [power, power * self.growth()].map(|power| (power * -0.5 + 1.0) * self.beta1);
        let correction = -(mu * (-correction + 1.0)) + 1.0;
        let next_correction = -(next_mu * (-correction + 1.0)) + 1.0;
        let m = m + (grad - m) * (1.0 - self.beta1);
        let v = v * self.beta2 + grad * (1.0 - self.beta2) * grad;
        let step = grad * (-mu + 1.0) / correction + m * next_mu / next_correction;
        [param - rate * step / (v.sqrt() * of_v + self.eps), m, v, correction]
    }
}

impl Optimizer for NAdam {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        self.elementwise.record(graph, params, inputs, &self.step);
    }

    fn elementwise(&self) -> Option<&Elementwise> {
        Some(&self.elementwise)
    }

    fn state(&self) -> Vec<(String, &Persistent)> {
        self.elementwise.state()
    }
}
