use brisk_kernels::{Interval, Kernel, Number, Rule, StepValue, Update};
use brisk_tensor::{Graph, Persistent};

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
    step: AdamStep,
    is_amsgrad: bool,
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
    fn decay(self) -> f32 {
        let (Self::Gradient(decay) | Self::Decoupled(decay)) = self;
        decay
    }

    pub(crate) fn value(self) -> StepValue {
        StepValue::Decay(self.decay())
    }

    pub(crate) fn setting(self) -> (&'static str, f32, Interval) {
        ("weight_decay", self.decay(), Interval::NonNegative)
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
        Self { elementwise: Elementwise::new(params, "adam", &["m", "v"]), step: AdamStep::DEFAULT, is_amsgrad: false }
    }

    /// The same as AMSGrad, whose steps do not grow when gradients shrink.
    #[track_caller]
    pub fn amsgrad(params: &Parameters) -> Self {
        let elementwise = Elementwise::new(params, "adam", &["m", "v", "max_v"]);
        Self { elementwise, step: AdamStep::DEFAULT, is_amsgrad: true }
    }

    betas_and_eps_setters!(step);

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

    fn all_values(&self) -> [StepValue; 4] {
        let of_v = StepValue::RootBiasCorrection(self.beta2);
        [StepValue::Rate, self.weight_decay.value(), StepValue::BiasCorrection(self.beta1), of_v]
    }

    fn all_settings(&self) -> Vec<(&'static str, f32, Interval)> {
        vec![
            ("beta1", self.beta1, Interval::BelowOne),
            ("beta2", self.beta2, Interval::BelowOne),
            ("eps", self.eps, Interval::NonNegative),
            self.weight_decay.setting(),
        ]
    }

    /// The decayed parameter and the means.
    #[inline(always)]
    fn means<N: Number>(&self, [rate, decay, ..]: [N; 4], grad: N, [param, m, v]: [N; 3]) -> [N; 3] {
        let [grad, param] = self.weight_decay.apply(rate, decay, grad, param);
        let m = m + (grad - m) * (1.0 - self.beta1);
        [param, m, v * self.beta2 + grad * (1.0 - self.beta2) * grad]
    }

    #[inline(always)]
    fn stepped<N: Number>(&self, [rate, _, of_m, of_v]: [N; 4], [param, m, v]: [N; 3]) -> N {
        param - rate * of_m * m / (v.sqrt() * of_v + self.eps)
    }
}

impl Rule<4, 1, 3> for AdamStep {
    fn values(&self) -> [StepValue; 4] {
        self.all_values()
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        self.all_settings()
    }

    #[inline(always)]
    fn update<N: Number>(&self, values: [N; 4], [grad]: [N; 1], replaced: [N; 3]) -> [N; 3] {
        let [param, m, v] = self.means(values, grad, replaced);
        [self.stepped(values, [param, m, v]), m, v]
    }
}

#[derive(Debug, Clone, Copy)]
struct AmsGrad(AdamStep);

impl Rule<4, 1, 4> for AmsGrad {
    fn values(&self) -> [StepValue; 4] {
        self.0.all_values()
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        self.0.all_settings()
    }

    #[inline(always)]
    fn update<N: Number>(&self, values: [N; 4], [grad]: [N; 1], [param, m, v, max_v]: [N; 4]) -> [N; 4] {
        let [param, m, v] = self.0.means(values, grad, [param, m, v]);
        let max_v = (v - max_v).is_positive().select(v, max_v);
        [self.0.stepped(values, [param, m, max_v]), m, v, max_v]
    }
}

impl Optimizer for Adam {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        match self.is_amsgrad {
            true => self.elementwise.record(graph, params, inputs, &AmsGrad(self.step)),
            false => self.elementwise.record(graph, params, inputs, &self.step),
        }
    }

    fn elementwise(&self) -> Option<&Elementwise> {
        Some(&self.elementwise)
    }

    fn state(&self) -> Vec<(String, &Persistent)> {
        self.elementwise.state()
    }
}
