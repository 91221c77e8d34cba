use serde::{Deserialize, Serialize};

use crate::adam::{Adam, WeightDecay};
use crate::cautious::CautiousAdamW;
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::sgd::{Momentum, Sgd};

/// An optimizer as a value, such as one of a file of settings; the learning rate is that of the schedule. Parameter groups and other optimizers are set in code.
///
/// # In files of settings
/// A table with the `name` of the optimizer and its values, which have PyTorch's names and defaults: `{ name = "adamw", weight_decay = 0.05 }`.
/// # Examples
/// ```
/// use brisk_nn::{Activation, Linear, OptimizerConfig, ParametersBuilder};
///
/// let mut builder = ParametersBuilder::new();
/// Linear::new(&mut builder, "linear", 3, 1, Activation::identity());
/// let optimizer = OptimizerConfig::AdamW { betas: [0.9, 0.99], eps: 1e-8, weight_decay: 0.05 }.build(&builder.build(7));
/// assert!(optimizer.skips());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum OptimizerConfig {
    /// [`Adam`]; the decay is added to the gradient.
    Adam {
        /// β₁ and β₂.
        #[serde(default = "betas")]
        betas: [f32; 2],
        /// ε.
        #[serde(default = "eps")]
        eps: f32,
        /// The weight decay.
        #[serde(default)]
        weight_decay: f32,
    },
    /// [`Adam`] with [decoupled](WeightDecay::Decoupled) decay.
    #[serde(rename = "adamw")]
    AdamW {
        /// β₁ and β₂.
        #[serde(default = "betas")]
        betas: [f32; 2],
        /// ε.
        #[serde(default = "eps")]
        eps: f32,
        /// The weight decay.
        #[serde(default = "decoupled_decay")]
        weight_decay: f32,
    },
    /// [`CautiousAdamW`].
    #[serde(rename = "cautious_adamw")]
    CautiousAdamW {
        /// β₁ and β₂.
        #[serde(default = "betas")]
        betas: [f32; 2],
        /// ε.
        #[serde(default = "eps")]
        eps: f32,
        /// The weight decay.
        #[serde(default = "decoupled_decay")]
        weight_decay: f32,
    },
    /// [`Sgd`].
    Sgd {
        /// The momentum.
        #[serde(default)]
        momentum: f32,
        /// Its form: `heavy`, `nesterov` or `folded_nesterov`.
        #[serde(default)]
        form: Momentum,
        /// The weight decay.
        #[serde(default)]
        weight_decay: f32,
    },
}

const fn betas() -> [f32; 2] {
    [0.9, 0.999]
}

const fn eps() -> f32 {
    1e-8
}

/// PyTorch's of AdamW.
const fn decoupled_decay() -> f32 {
    0.01
}

impl Default for OptimizerConfig {
    /// Adam with PyTorch's defaults.
    fn default() -> Self {
        Self::Adam { betas: betas(), eps: eps(), weight_decay: 0.0 }
    }
}

impl OptimizerConfig {
    /// The optimizer, for these parameters.
    pub fn build(self, params: &Parameters) -> Box<dyn Optimizer> {
        let adam = |[beta1, beta2]: [f32; 2], eps: f32, decay: WeightDecay| {
            Box::new(Adam::new(params).betas(beta1, beta2).eps(eps).weight_decay(decay))
        };
        match self {
            Self::Adam { betas, eps, weight_decay } => adam(betas, eps, WeightDecay::Gradient(weight_decay)),
            Self::AdamW { betas, eps, weight_decay } => adam(betas, eps, WeightDecay::Decoupled(weight_decay)),
            Self::CautiousAdamW { betas: [beta1, beta2], eps, weight_decay } => {
                Box::new(CautiousAdamW::new(params).betas(beta1, beta2).eps(eps).weight_decay(weight_decay))
            }
            Self::Sgd { momentum, form, weight_decay } => {
                Box::new(Sgd::new(params).momentum(momentum, form).weight_decay(weight_decay))
            }
        }
    }
}
