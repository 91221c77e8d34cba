use brisk_kernels::{Interval, Kernel, Number, Rule, StepCount, StepValue, Update};
use brisk_tensor::{Error, Graph, Persistent};
use serde::{Deserialize, Serialize};

use crate::elementwise::Elementwise;
use crate::elementwise::groups_setter;
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::step_inputs::StepInputs;

/// Stochastic gradient descent with momentum.
///
/// `g += λ p`, `u = μ u + g`, `p -= lr u`, or `p -= lr (g + μ u)` with Nesterov momentum; with the rate folded in,
/// `u = μ u - lr g`, `p += μ u - lr g`; with dampening τ, `u = μ u + (1 - τ) g` after the first step.
///
/// # Reference
/// Sutskever et al. 2013; `torch.optim.SGD`.
#[derive(Debug, Clone)]
pub struct Sgd {
    elementwise: Elementwise,
    step: SgdStep,
}

/// Which form of momentum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Momentum {
    /// The step is the accumulated momentum.
    #[default]
    Heavy,
    /// Nesterov momentum: the step is the gradient plus μ times the accumulated momentum.
    Nesterov,
    /// Nesterov momentum with the learning rate in the accumulated sum, which is a velocity. It differs from the other form while
    /// the rate changes: earlier gradients keep the rate of their step. As in Page 2018, *How to train your ResNet*, and in the
    /// paper. [`Muon`](crate::Muon) refuses it, because its momentum does not read the learning rate.
    FoldedNesterov,
}

impl Sgd {
    /// Plain gradient descent: no momentum, no weight decay.
    #[track_caller]
    pub fn new(params: &Parameters) -> Self {
        Self { elementwise: Elementwise::new(params, "sgd", &["momentum"]), step: SgdStep::DEFAULT }
    }

    /// Sets the momentum, from 0 to below 1, and its form; Nesterov momentum is above 0.
    pub fn momentum(mut self, momentum: f32, form: Momentum) -> Self {
        (self.step.momentum, self.step.form) = (momentum, form);
        self
    }

    /// Sets the dampening τ of [heavy](Momentum::Heavy) momentum; without momentum it has no effect.
    pub fn dampening(mut self, dampening: f32) -> Self {
        self.step.dampening = dampening;
        self
    }

    /// Sets the weight decay, added to the gradient.
    pub fn weight_decay(mut self, weight_decay: f32) -> Self {
        self.step.weight_decay = weight_decay;
        self
    }

    groups_setter!();

    /// The kernel of a step over `n` parameters with these defaults, to measure it.
    pub fn kernel(n: usize) -> impl Kernel {
        Update::new("sgd", SgdStep::DEFAULT, n)
    }
}

#[derive(Debug, Clone, Copy)]
struct SgdStep {
    momentum: f32,
    dampening: f32,
    weight_decay: f32,
    form: Momentum,
}

impl SgdStep {
    const DEFAULT: Self = Self { momentum: 0.0, dampening: 0.0, weight_decay: 0.0, form: Momentum::Heavy };
}

impl Rule<2, 1, 2> for SgdStep {
    fn values(&self) -> [StepValue; 2] {
        [StepValue::Rate, StepValue::Decay(self.weight_decay)]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        // Without momentum all forms are plain gradient descent.
        let momentum = if self.form == Momentum::Heavy { Interval::BelowOne } else { Interval::Open };
        vec![("momentum", self.momentum, momentum), ("weight_decay", self.weight_decay, Interval::NonNegative)]
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate, decay]: [N; 2], [grad]: [N; 1], [param, momentum]: [N; 2]) -> [N; 2] {
        let grad = grad + decay * param;
        let added = if self.form == Momentum::FoldedNesterov { -rate * grad } else { grad };
        let momentum = momentum * self.momentum + added;
        let param = match self.form {
            Momentum::Heavy => param - rate * momentum,
            Momentum::Nesterov => param - rate * (grad + momentum * self.momentum),
            Momentum::FoldedNesterov => param + (added + momentum * self.momentum),
        };
        [param, momentum]
    }
}

/// Heavy momentum with dampening.
#[derive(Debug, Clone, Copy)]
struct Dampened(SgdStep);

impl Rule<3, 1, 2> for Dampened {
    fn values(&self) -> [StepValue; 3] {
        let is_first = StepValue::UpTo { of: StepCount::Updates, last: 1 };
        [StepValue::Rate, StepValue::Decay(self.0.weight_decay), is_first]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        let dampening = ("dampening", self.0.dampening, Interval::Finite);
        self.0.settings().into_iter().chain([dampening]).collect()
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate, decay, is_first]: [N; 3], [grad]: [N; 1], [param, momentum]: [N; 2]) -> [N; 2] {
        let grad = grad + decay * param;
        let momentum = momentum * self.0.momentum + is_first.select(grad, grad * (1.0 - self.0.dampening));
        [param - rate * momentum, momentum]
    }
}

impl Optimizer for Sgd {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        let SgdStep { momentum, dampening, form, .. } = self.step;
        if dampening == 0.0 || momentum == 0.0 {
            self.elementwise.record(graph, params, inputs, &self.step);
        } else if form == Momentum::Heavy {
            self.elementwise.record(graph, params, inputs, &Dampened(self.step));
        } else {
            let found = format!("dampening = {dampening} with momentum {form:?}");
            graph.fail(Error::Refused { op: "sgd", found, expected: "`Momentum::Heavy`, or no dampening" });
        }
    }

    fn elementwise(&self) -> Option<&Elementwise> {
        Some(&self.elementwise)
    }

    fn state(&self) -> Vec<(String, &Persistent)> {
        self.elementwise.state()
    }
}
