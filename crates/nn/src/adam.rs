use brisk_kernels::{Interval, Kernel, Number, Rule, StepValue, Update};
use brisk_tensor::{Graph, Persistent};

use crate::elementwise::Elementwise;
use crate::elementwise::groups_setter;
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::step_inputs::StepInputs;

/// Adam and AdamW with their two running means.
///
/// With `t` the number of steps that were not skipped: `m = β₁ m + (1 - β₁) g`, `v = β₂ v + (1 - β₂) g²`,
/// `p -= lr / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε)`.
///
/// # Reference
/// Kingma & Ba 2015, arXiv:1412.6980; Loshchilov & Hutter 2019, arXiv:1711.05101; `torch.optim.{Adam, AdamW}`.
#[derive(Debug, Clone)]
pub struct Adam {
    elementwise: Elementwise,
    step: AdamStep,
}

/// How the weight decay is applied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WeightDecay {
    /// `g += λ p`, as in Adam; 0 for none.
    Gradient(f32),
    /// `p -= lr λ p` in addition to the step, as in AdamW.
    Decoupled(f32),
}

impl Adam {
    /// Adam with PyTorch's defaults: β = (0.9, 0.999), ε = 1e-8, no weight decay.
    #[track_caller]
    pub fn new(params: &Parameters) -> Self {
        Self { elementwise: Elementwise::new(params, "adam", &["m", "v"]), step: AdamStep::DEFAULT }
    }

    /// Sets β₁ and β₂.
    pub fn betas(mut self, beta1: f32, beta2: f32) -> Self {
        (self.step.beta1, self.step.beta2) = (beta1, beta2);
        self
    }

    /// Sets ε.
    pub fn eps(mut self, eps: f32) -> Self {
        self.step.eps = eps;
        self
    }

    /// Sets the weight decay; [`WeightDecay::Decoupled`] makes it AdamW.
    pub fn weight_decay(mut self, weight_decay: WeightDecay) -> Self {
        self.step.weight_decay = weight_decay;
        self
    }

    groups_setter!();

    /// The kernel of a step over `n` parameters with these defaults, to measure it.
    pub fn kernel(n: usize) -> impl Kernel {
        Update::new("adam", AdamStep::DEFAULT, n)
    }
}

#[derive(Debug, Clone, Copy)]
struct AdamStep {
    beta1: f32,
    beta2: f32,
    eps: f32,
    weight_decay: WeightDecay,
}

impl AdamStep {
    const DEFAULT: Self = Self { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: WeightDecay::Gradient(0.0) };
}

impl Rule<4, 1, 3> for AdamStep {
    fn values(&self) -> [StepValue; 4] {
        let (WeightDecay::Gradient(decay) | WeightDecay::Decoupled(decay)) = self.weight_decay;
        let of_v = StepValue::RootBiasCorrection(self.beta2);
        [StepValue::Rate, StepValue::Decay(decay), StepValue::BiasCorrection(self.beta1), of_v]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        let (WeightDecay::Gradient(decay) | WeightDecay::Decoupled(decay)) = self.weight_decay;
        vec![
            ("beta1", self.beta1, Interval::BelowOne),
            ("beta2", self.beta2, Interval::BelowOne),
            ("eps", self.eps, Interval::NonNegative),
            ("weight_decay", decay, Interval::NonNegative),
        ]
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate, decay, of_m, of_v]: [N; 4], [grad]: [N; 1], [param, m, v]: [N; 3]) -> [N; 3] {
        let (grad, param) = match self.weight_decay {
            WeightDecay::Gradient(_) => (grad + decay * param, param),
            WeightDecay::Decoupled(_) => (grad, param - rate * decay * param),
        };
        let m = m + (grad - m) * (1.0 - self.beta1);
        let v = v * self.beta2 + grad * (1.0 - self.beta2) * grad;
        [param - rate * of_m * m / (v.sqrt() * of_v + self.eps), m, v]
    }
}

impl Optimizer for Adam {
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
