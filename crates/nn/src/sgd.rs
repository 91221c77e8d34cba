use brisk_kernels::{Interval, Kernel, Number, Rule, StepCount, StepValue, Update};
use brisk_tensor::{Error, Graph};
use serde::{Deserialize, Serialize};

use crate::elementwise::{Elementwise, groups_setter, setters};
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
    config: SgdConfig,
}

/// The settings of [`Sgd`]; the numbers are 0 by default.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SgdConfig {
    /// The momentum.
    pub momentum: f32,
    /// Its form: `heavy`, `nesterov` or `folded_nesterov`.
    pub form: Momentum,
    /// The weight decay.
    pub weight_decay: f32,
    /// The dampening.
    pub dampening: f32,
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
        Self::from_config(params, SgdConfig::default())
    }

    /// Gradient descent with these settings.
    #[track_caller]
    pub(crate) fn from_config(params: &Parameters, config: SgdConfig) -> Self {
        Self { elementwise: Elementwise::new(params, "sgd", &["momentum"]), config }
    }

    /// Sets the momentum, from 0 to below 1, and its form; Nesterov momentum is above 0.
    pub fn momentum(mut self, momentum: f32, form: Momentum) -> Self {
        (self.config.momentum, self.config.form) = (momentum, form);
        self
    }

    setters! {
        /// Sets the dampening τ of [heavy](Momentum::Heavy) momentum; without momentum it has no effect.
        dampening: f32,
        /// Sets the weight decay, added to the gradient.
        weight_decay: f32
    }

    groups_setter!();

    /// The kernel of a step over `n` parameters with these defaults, to measure it.
    pub fn kernel(n: usize) -> impl Kernel {
        Update::<_, 2, 1, 2>::new("sgd", SgdConfig::default(), n)
    }
}

/// With a third value, which is 1 in the first step and else 0, momentum is dampened.
impl<const V: usize> Rule<V, 1, 2> for SgdConfig {
    fn values(&self) -> [StepValue; V] {
        const { assert!(V == 2 || V == 3, "dampened momentum reads one more") };
        let is_first = StepValue::UpTo { of: StepCount::Updates, last: 1 };
        let all = [StepValue::Rate, StepValue::Decay(self.weight_decay), is_first];
        std::array::from_fn(|i| all[i])
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        // Without momentum all forms are plain gradient descent.
        let momentum = if self.form == Momentum::Heavy { Interval::BelowOne } else { Interval::Open };
        vec![
            ("momentum", self.momentum, momentum),
            ("weight_decay", self.weight_decay, Interval::NonNegative),
            ("dampening", self.dampening, Interval::Finite),
        ]
    }

    #[inline(always)]
    fn update<N: Number>(&self, values: [N; V], [grad]: [N; 1], [param, momentum]: [N; 2]) -> [N; 2] {
        let [rate, decay] = [values[0], values[1]];
        let grad = grad + decay * param;
        let added = match self.form {
            Momentum::FoldedNesterov => -rate * grad,
            Momentum::Heavy if V == 3 => values[2].select(grad, grad * (1.0 - self.dampening)),
            Momentum::Heavy | Momentum::Nesterov => grad,
        };
        let momentum = momentum * self.momentum + added;
        let param = match self.form {
            Momentum::Heavy => param - rate * momentum,
            Momentum::Nesterov => param - rate * (grad + momentum * self.momentum),
            Momentum::FoldedNesterov => param + (added + momentum * self.momentum),
        };
        [param, momentum]
    }
}

impl Optimizer for Sgd {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        let SgdConfig { momentum, dampening, form, .. } = self.config;
        if dampening == 0.0 || momentum == 0.0 {
            self.elementwise.record::<_, 2, 2>(graph, params, inputs, &self.config);
        } else if form == Momentum::Heavy {
            self.elementwise.record::<_, 3, 2>(graph, params, inputs, &self.config);
        } else {
            let found = format!("dampening = {dampening} with momentum {form:?}");
            graph.fail(Error::Refused { op: "sgd", found, expected: "`Momentum::Heavy`, or no dampening" });
        }
    }

    fn elementwise(&self) -> Option<&Elementwise> {
        Some(&self.elementwise)
    }
}
