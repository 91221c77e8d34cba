use serde::{Deserialize, Serialize};

use crate::adam::{Adam, WeightDecay};
use crate::cautious::CautiousAdamW;
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::sgd::{Momentum, Sgd};

/// An optimizer as a value, such as one of a file of settings; the learning rate is that of the schedule. Parameter groups and
/// other optimizers are set in code.
///
/// # In files of settings
/// A table with the `name` of the optimizer and its values, which have PyTorch's names and defaults:
/// `{ name = "adamw", weight_decay = 0.05 }`.
/// # Examples
/// ```
/// use brisk_nn::{Activation, AdamConfig, Linear, OptimizerConfig, ParametersBuilder};
///
/// let mut builder = ParametersBuilder::new();
/// Linear::new(&mut builder, "linear", 3, 1, Activation::identity());
/// let config = AdamConfig { weight_decay: Some(0.05), ..AdamConfig::default() };
/// let optimizer = OptimizerConfig::AdamW(config).build(&builder.build(7));
/// assert!(optimizer.skips());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum OptimizerConfig {
    /// [`Adam`]; the decay, 0 by default, is added to the gradient.
    Adam(AdamConfig),
    /// [`Adam`] with [decoupled](WeightDecay::Decoupled) decay, 0.01 by default.
    #[serde(rename = "adamw")]
    AdamW(AdamConfig),
    /// [`CautiousAdamW`]; the decay is 0.01 by default.
    #[serde(rename = "cautious_adamw")]
    CautiousAdamW(AdamConfig),
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
}

impl Default for AdamConfig {
    /// PyTorch's: β = (0.9, 0.999), ε = 1e-8.
    fn default() -> Self {
        Self { betas: [0.9, 0.999], eps: 1e-8, weight_decay: None }
    }
}

impl Default for OptimizerConfig {
    /// Adam with PyTorch's defaults.
    fn default() -> Self {
        Self::Adam(AdamConfig::default())
    }
}

impl OptimizerConfig {
    /// The optimizer, for these parameters.
    pub fn build(self, params: &Parameters) -> Box<dyn Optimizer> {
        // PyTorch's of AdamW.
        const DECOUPLED: f32 = 0.01;
        let adam = |AdamConfig { betas: [beta1, beta2], eps, .. }: AdamConfig, decay: WeightDecay| {
            Box::new(Adam::new(params).betas(beta1, beta2).eps(eps).weight_decay(decay))
        };
        match self {
            Self::Adam(config) => adam(config, WeightDecay::Gradient(config.weight_decay.unwrap_or(0.0))),
            Self::AdamW(config) => adam(config, WeightDecay::Decoupled(config.weight_decay.unwrap_or(DECOUPLED))),
            Self::CautiousAdamW(AdamConfig { betas: [beta1, beta2], eps, weight_decay }) => {
                let decay = weight_decay.unwrap_or(DECOUPLED);
                Box::new(CautiousAdamW::new(params).betas(beta1, beta2).eps(eps).weight_decay(decay))
            }
            Self::Sgd { momentum, form, weight_decay } => {
                Box::new(Sgd::new(params).momentum(momentum, form).weight_decay(weight_decay))
            }
        }
    }
}
