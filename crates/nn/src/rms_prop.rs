use brisk_kernels::{Interval, Number, Rule, StepValue};
use brisk_tensor::Graph;
use serde::{Deserialize, Serialize};

use crate::elementwise::{Elementwise, groups_setter, setters};
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
    config: RmsPropConfig,
}

/// The settings of [`RmsProp`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RmsPropConfig {
    /// α.
    pub alpha: f32,
    /// ε.
    pub eps: f32,
    /// The momentum.
    pub momentum: f32,
    /// The weight decay.
    pub weight_decay: f32,
    /// Whether it is [centered](RmsProp::centered).
    pub centered: bool,
}

impl Default for RmsPropConfig {
    /// PyTorch's: α = 0.99, ε = 1e-8.
    fn default() -> Self {
        Self { alpha: 0.99, eps: 1e-8, momentum: 0.0, weight_decay: 0.0, centered: false }
    }
}

impl RmsProp {
    /// RMSprop with PyTorch's defaults: α = 0.99, ε = 1e-8, no momentum, no weight decay.
    #[track_caller]
    pub fn new(params: &Parameters) -> Self {
        Self::from_config(params, RmsPropConfig::default())
    }

    /// RMSprop with PyTorch's defaults that divides gradients by an estimate of their standard deviation, not of their root mean
    /// square.
    #[track_caller]
    pub fn centered(params: &Parameters) -> Self {
        Self::from_config(params, RmsPropConfig { centered: true, ..RmsPropConfig::default() })
    }

    /// RMSprop with these settings.
    #[track_caller]
    pub(crate) fn from_config(params: &Parameters, config: RmsPropConfig) -> Self {
        let state: &[&str] = if config.centered { &["v", "momentum", "m"] } else { &["v", "momentum"] };
        Self { elementwise: Elementwise::new(params, "rms_prop", state), config }
    }

    setters! {
        /// Sets α, the decay of the mean of squared gradients.
        alpha: f32,
        /// Sets ε.
        eps: f32,
        /// Sets the momentum μ.
        momentum: f32,
        /// Sets the weight decay λ, added to the gradient.
        weight_decay: f32
    }

    groups_setter!();
}

/// Replaces the parameter, `v`, the momentum and, centered, `m`.
impl<const O: usize> Rule<2, 1, O> for RmsPropConfig {
    fn values(&self) -> [StepValue; 2] {
        [StepValue::Rate, StepValue::Decay(self.weight_decay)]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        vec![
            ("alpha", self.alpha, Interval::BelowOne),
            ("eps", self.eps, Interval::NonNegative),
            ("momentum", self.momentum, Interval::BelowOne),
            ("weight_decay", self.weight_decay, Interval::NonNegative),
        ]
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate, decay]: [N; 2], [grad]: [N; 1], mut replaced: [N; O]) -> [N; O] {
        const { assert!(O == 3 || O == 4, "the centered version replaces one more") };
        let grad = grad + decay * replaced[0];
        replaced[1] = replaced[1] * self.alpha + grad * (1.0 - self.alpha) * grad;
        let mut variance = replaced[1];
        if O == 4 {
            replaced[3] = replaced[3] + (grad - replaced[3]) * (1.0 - self.alpha);
            variance = variance - replaced[3] * replaced[3];
        }
        replaced[2] = replaced[2] * self.momentum + grad / (variance.sqrt() + self.eps);
        replaced[0] = replaced[0] - rate * replaced[2];
        replaced
    }
}

impl Optimizer for RmsProp {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        match self.config.centered {
            true => self.elementwise.record::<_, 2, 4>(graph, params, inputs, &self.config),
            false => self.elementwise.record::<_, 2, 3>(graph, params, inputs, &self.config),
        }
    }

    fn elementwise(&self) -> Option<&Elementwise> {
        Some(&self.elementwise)
    }
}
