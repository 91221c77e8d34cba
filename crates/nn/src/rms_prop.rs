use brisk_kernels::{Interval, Number, Rule, StepValue};
use brisk_tensor::{Graph, Persistent};

use crate::elementwise::Elementwise;
use crate::elementwise::groups_setter;
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::step_inputs::StepInputs;

/// RMSprop, with momentum and centered if asked for.
///
/// `g += λ p`, `v = α v + (1 - α) g²`, `u = μ u + g / (√v + ε)`, `p -= lr u`. Centered, `m = α m + (1 - α) g` and `√(v - m²)`
/// replaces `√v`.
///
/// # Reference
/// Tieleman & Hinton 2012, lecture 6.5 of *Neural Networks for Machine Learning*; Graves 2013, arXiv:1308.0850, for the centered
/// version; `torch.optim.RMSprop`.
#[derive(Debug, Clone)]
pub struct RmsProp {
    elementwise: Elementwise,
    step: Step,
    is_centered: bool,
}

impl RmsProp {
    /// RMSprop with PyTorch's defaults: α = 0.99, ε = 1e-8, no momentum, no weight decay.
    #[track_caller]
    pub fn new(params: &Parameters) -> Self {
        Self { elementwise: Elementwise::new(params, "rms_prop", &["v", "momentum"]), step: Step::DEFAULT, is_centered: false }
    }

    /// The same, with gradients normalised by an estimate of their standard deviation.
    #[track_caller]
    pub fn centered(params: &Parameters) -> Self {
        let elementwise = Elementwise::new(params, "rms_prop", &["v", "momentum", "m"]);
        Self { elementwise, step: Step::DEFAULT, is_centered: true }
    }

    /// Sets α, the decay of the mean of squared gradients.
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.step.alpha = alpha;
        self
    }

    /// Sets ε.
    pub fn eps(mut self, eps: f32) -> Self {
        self.step.eps = eps;
        self
    }

    /// Sets the momentum μ.
    pub fn momentum(mut self, momentum: f32) -> Self {
        self.step.momentum = momentum;
        self
    }

    /// Sets the weight decay λ, added to the gradient.
    pub fn weight_decay(mut self, weight_decay: f32) -> Self {
        self.step.weight_decay = weight_decay;
        self
    }

    groups_setter!();
}

#[derive(Debug, Clone, Copy)]
struct Step {
    alpha: f32,
    eps: f32,
    momentum: f32,
    weight_decay: f32,
}

impl Step {
    const DEFAULT: Self = Self { alpha: 0.99, eps: 1e-8, momentum: 0.0, weight_decay: 0.0 };

    fn all_settings(&self) -> Vec<(&'static str, f32, Interval)> {
        vec![
            ("alpha", self.alpha, Interval::BelowOne),
            ("eps", self.eps, Interval::NonNegative),
            ("momentum", self.momentum, Interval::BelowOne),
            ("weight_decay", self.weight_decay, Interval::NonNegative),
        ]
    }

    #[inline(always)]
    fn squares<N: Number>(&self, v: N, grad: N) -> N {
        v * self.alpha + grad * (1.0 - self.alpha) * grad
    }

    #[inline(always)]
    fn momentum<N: Number>(&self, momentum: N, grad: N, deviation: N) -> N {
        momentum * self.momentum + grad / (deviation + self.eps)
    }
}

impl Rule<2, 1, 3> for Step {
    fn values(&self) -> [StepValue; 2] {
        [StepValue::Rate, StepValue::Decay(self.weight_decay)]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        self.all_settings()
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate, decay]: [N; 2], [grad]: [N; 1], [param, v, momentum]: [N; 3]) -> [N; 3] {
        let grad = grad + decay * param;
        let v = self.squares(v, grad);
        let momentum = self.momentum(momentum, grad, v.sqrt());
        [param - rate * momentum, v, momentum]
    }
}

/// The centered version.
#[derive(Debug, Clone, Copy)]
struct Centered(Step);

impl Rule<2, 1, 4> for Centered {
    fn values(&self) -> [StepValue; 2] {
        [StepValue::Rate, StepValue::Decay(self.0.weight_decay)]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        self.0.all_settings()
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate, decay]: [N; 2], [grad]: [N; 1], [param, v, momentum, m]: [N; 4]) -> [N; 4] {
        let grad = grad + decay * param;
        let v = self.0.squares(v, grad);
        let m = m + (grad - m) * (1.0 - self.0.alpha);
        let momentum = self.0.momentum(momentum, grad, (v - m * m).sqrt());
        [param - rate * momentum, v, momentum, m]
    }
}

impl Optimizer for RmsProp {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        match self.is_centered {
            true => self.elementwise.record(graph, params, inputs, &Centered(self.step)),
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
