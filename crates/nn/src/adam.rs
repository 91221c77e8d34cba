use brisk_kernels::{Interval, Kernel, Number, Rule, StepValue, Update};
use brisk_tensor::Graph;
use serde::{Deserialize, Serialize};

use crate::elementwise::{Elementwise, betas_and_eps_setters, groups_setter};
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::step_inputs::StepInputs;

/// Adam and AdamW with their two running means.
///
/// With `t` the number of steps that were not skipped: `m = β₁ m + (1 - β₁) g`, `v = β₂ v + (1 - β₂) g²`,
/// `p -= lr / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε)`. With [AMSGrad](Self::amsgrad), the largest `v` so far replaces `v` there.
///
/// # Reference
/// Kingma & Ba 2015, arXiv:1412.6980; Loshchilov & Hutter 2019, arXiv:1711.05101; Reddi et al. 2018, arXiv:1904.09237, for
/// AMSGrad; `torch.optim.{Adam, AdamW}`.
#[derive(Debug, Clone)]
pub struct Adam {
    elementwise: Elementwise,
    config: AdamConfig,
    weight_decay: WeightDecay,
}

/// The settings of Adam and its variants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// β₁ and β₂.
    pub betas: [f32; 2],
    /// ε.
    pub eps: f32,
    /// The weight decay; `None` for PyTorch's default of the optimizer.
    pub weight_decay: Option<f32>,
    /// Whether it is [AMSGrad](Adam::amsgrad); only Adam and AdamW can be.
    pub amsgrad: bool,
}

impl Default for AdamConfig {
    /// PyTorch's: β = (0.9, 0.999), ε = 1e-8.
    fn default() -> Self {
        Self { betas: [0.9, 0.999], eps: 1e-8, weight_decay: None, amsgrad: false }
    }
}

/// How the weight decay is applied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WeightDecay {
    /// `g += λ p`, as in Adam; 0 for none.
    Gradient(f32),
    /// `p -= lr λ p` in addition to the step, as in AdamW.
    Decoupled(f32),
}

impl WeightDecay {
    pub(crate) const fn decay(self) -> f32 {
        let (Self::Gradient(decay) | Self::Decoupled(decay)) = self;
        decay
    }

    /// The gradient and the parameter, one of which has decayed.
    #[inline(always)]
    pub(crate) fn apply<N: Number>(self, rate: N, decay: N, grad: N, param: N) -> [N; 2] {
        match self {
            Self::Gradient(_) => [grad + decay * param, param],
            Self::Decoupled(_) => [grad, param - rate * decay * param],
        }
    }
}

impl Adam {
    /// Adam with PyTorch's defaults: β = (0.9, 0.999), ε = 1e-8, no weight decay.
    #[track_caller]
    pub fn new(params: &Parameters) -> Self {
        Self::from_config(params, AdamConfig::default(), WeightDecay::Gradient(0.0))
    }

    /// Adam with PyTorch's defaults as AMSGrad, whose steps do not grow when gradients shrink.
    #[track_caller]
    pub fn amsgrad(params: &Parameters) -> Self {
        Self::from_config(params, AdamConfig { amsgrad: true, ..AdamConfig::default() }, WeightDecay::Gradient(0.0))
    }

    /// Adam with these settings, and this decay instead of theirs.
    #[track_caller]
    pub(crate) fn from_config(params: &Parameters, config: AdamConfig, weight_decay: WeightDecay) -> Self {
        let state: &[&str] = if config.amsgrad { &["m", "v", "max_v"] } else { &["m", "v"] };
        let config = AdamConfig { weight_decay: None, ..config };
        Self { elementwise: Elementwise::new(params, "adam", state), config, weight_decay }
    }

    betas_and_eps_setters!();

    /// Sets the weight decay; [`WeightDecay::Decoupled`] makes it AdamW.
    pub fn weight_decay(mut self, weight_decay: WeightDecay) -> Self {
        self.weight_decay = weight_decay;
        self
    }

    groups_setter!();

    /// The kernel of a step over `n` parameters with these defaults, to measure it.
    pub fn kernel(n: usize) -> impl Kernel {
        let step = AdamStep { config: AdamConfig::default(), weight_decay: WeightDecay::Gradient(0.0) };
        Update::<_, 4, 1, 3>::new("adam", step, n)
    }
}

impl AdamConfig {
    /// The settings of a rule with this decay; β₁ must be in this interval.
    pub(crate) fn settings(&self, beta1: Interval, weight_decay: f32) -> Vec<(&'static str, f32, Interval)> {
        vec![
            ("beta1", self.betas[0], beta1),
            ("beta2", self.betas[1], Interval::BelowOne),
            ("eps", self.eps, Interval::NonNegative),
            ("weight_decay", weight_decay, Interval::NonNegative),
        ]
    }

    /// The decay of AdamW, by default PyTorch's.
    pub(crate) fn decoupled(&self) -> WeightDecay {
        WeightDecay::Decoupled(self.weight_decay.unwrap_or(0.01))
    }
}

/// The means of gradients and of their squares after another gradient.
#[inline(always)]
pub(crate) fn moments<N: Number>([beta1, beta2]: [f32; 2], grad: N, [m, v]: [N; 2]) -> [N; 2] {
    [m + (grad - m) * (1.0 - beta1), v * beta2 + grad * (1.0 - beta2) * grad]
}

/// A step; the decay of the settings is not read.
#[derive(Debug, Clone, Copy)]
struct AdamStep {
    config: AdamConfig,
    weight_decay: WeightDecay,
}

/// Replaces the parameter, `m`, `v` and, as AMSGrad, the largest `v`.
impl<const O: usize> Rule<4, 1, O> for AdamStep {
    fn values(&self) -> [StepValue; 4] {
        let [beta1, beta2] = self.config.betas;
        let corrections = [StepValue::BiasCorrection(beta1), StepValue::RootBiasCorrection(beta2)];
        [StepValue::Rate, StepValue::Decay(self.weight_decay.decay()), corrections[0], corrections[1]]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        self.config.settings(Interval::BelowOne, self.weight_decay.decay())
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate, decay, of_m, of_v]: [N; 4], [grad]: [N; 1], mut replaced: [N; O]) -> [N; O] {
        let [grad, param] = self.weight_decay.apply(rate, decay, grad, replaced[0]);
        let [m, v] = moments(self.config.betas, grad, [replaced[1], replaced[2]]);
        let mut divisor = v;
        if O == 4 {
            divisor = (v - replaced[3]).is_positive().select(v, replaced[3]);
            replaced[3] = divisor;
        }
        replaced[0] = param - rate * of_m * m / (divisor.sqrt() * of_v + self.config.eps);
        [replaced[1], replaced[2]] = [m, v];
        replaced
    }
}

impl Optimizer for Adam {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        let step = AdamStep { config: self.config, weight_decay: self.weight_decay };
        match self.config.amsgrad {
            true => self.elementwise.record::<_, 4, 4>(graph, params, inputs, &step),
            false => self.elementwise.record::<_, 4, 3>(graph, params, inputs, &step),
        }
    }

    fn elementwise(&self) -> Option<&Elementwise> {
        Some(&self.elementwise)
    }
}
