use brisk_tensor::Error;
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, WeightDecay};
use crate::cautious::CautiousAdamW;
use crate::muon::{Muon, MuonScale};
use crate::nadam::NAdam;
use crate::optimizer::Optimizer;
use crate::parameter_group::ParameterGroup;
use crate::parameters::Parameters;
use crate::rms_prop::RmsProp;
use crate::schedule_free::ScheduleFreeAdamW;
use crate::sgd::{Momentum, Sgd};
use crate::together::CombinedOptimizer;

/// An optimizer as a value, such as one of a file of settings; the learning rate is that of the schedule. Parameter groups and
/// other optimizers are set in code.
///
/// # In files of settings
/// A table with the `name` of the optimizer and its values, which have PyTorch's names and defaults:
/// `{ name = "adamw", weight_decay = 0.05 }`, `{ name = "muon", matrices = ["layers.1.weight"], rest_lr_factor = 0.1 }`.
/// # Examples
/// ```
/// use brisk_nn::{Activation, AdamConfig, Linear, OptimizerConfig, ParametersBuilder};
///
/// let mut builder = ParametersBuilder::new();
/// Linear::new(&mut builder, "linear", 3, 1, Activation::identity());
/// let config = AdamConfig { weight_decay: Some(0.05), ..AdamConfig::default() };
/// let optimizer = OptimizerConfig::AdamW(config).build(&builder.build(7))?;
/// assert!(optimizer.skips());
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// [`ScheduleFreeAdamW`]; the decay is 0 by default.
    #[serde(rename = "schedule_free_adamw")]
    ScheduleFreeAdamW(AdamConfig),
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
        /// The dampening.
        #[serde(default)]
        dampening: f32,
    },
    /// [`Muon`], with AdamW for the parameters that are not its own.
    Muon(MuonConfig),
    /// [`RmsProp`].
    #[serde(rename = "rmsprop")]
    RmsProp(RmsPropConfig),
    /// [`NAdam`].
    #[serde(rename = "nadam")]
    NAdam(NAdamConfig),
}

/// The settings of [`NAdam`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NAdamConfig {
    /// β₁ and β₂.
    pub betas: [f32; 2],
    /// ε.
    pub eps: f32,
    /// ψ.
    pub momentum_decay: f32,
    /// The weight decay.
    pub weight_decay: f32,
    /// Whether it is [decoupled](WeightDecay::Decoupled).
    pub decoupled_weight_decay: bool,
}

impl Default for NAdamConfig {
    /// PyTorch's: β = (0.9, 0.999), ε = 1e-8, ψ = 0.004.
    fn default() -> Self {
        Self { betas: [0.9, 0.999], eps: 1e-8, momentum_decay: 0.004, weight_decay: 0.0, decoupled_weight_decay: false }
    }
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

/// The settings of [`Muon`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MuonConfig {
    /// The names of its parameters: the matrices of hidden layers and the filters of convolutions.
    pub matrices: Vec<String>,
    /// The momentum.
    pub momentum: f32,
    /// Its form, `nesterov` or `heavy`.
    pub form: Momentum,
    /// The weight decay.
    pub weight_decay: f32,
    /// The size of a step: `original`, `match_rms_adamw`, `spectral_unclamped` or `plain`.
    pub scale: MuonScale,
    /// AdamW, for all other parameters.
    pub rest: AdamConfig,
    /// What its learning rate is multiplied by.
    pub rest_lr_factor: f32,
}

impl Default for MuonConfig {
    /// PyTorch's, without matrices.
    fn default() -> Self {
        Self {
            matrices: Vec::new(),
            momentum: 0.95,
            form: Momentum::Nesterov,
            weight_decay: 0.1,
            scale: MuonScale::Original,
            rest: AdamConfig::default(),
            rest_lr_factor: 1.0,
        }
    }
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

impl Default for OptimizerConfig {
    /// Adam with PyTorch's defaults.
    fn default() -> Self {
        Self::Adam(AdamConfig::default())
    }
}

impl OptimizerConfig {
    /// The optimizer, for these parameters.
    ///
    /// # Errors
    /// For Muon, [`Error::Refused`] if there is no parameter of one of the names, and those of [`Muon::new`];
    /// [`Error::Refused`] for a variant of Adam that cannot be AMSGrad.
    pub fn build(&self, params: &Parameters) -> Result<Box<dyn Optimizer>, Error> {
        Ok(match self {
            Self::Adam(config) => Box::new(config.adam(params, WeightDecay::Gradient(config.weight_decay.unwrap_or(0.0)))),
            Self::AdamW(config) => Box::new(config.adamw(params)),
            Self::CautiousAdamW(config) => {
                config.check_plain("cautious_adamw")?;
                let AdamConfig { betas: [beta1, beta2], eps, .. } = *config;
                Box::new(CautiousAdamW::new(params).betas(beta1, beta2).eps(eps).weight_decay(config.decoupled()))
            }
            Self::ScheduleFreeAdamW(config) => {
                config.check_plain("schedule_free_adamw")?;
                let AdamConfig { betas: [beta1, beta2], eps, weight_decay, .. } = *config;
                let optimizer = ScheduleFreeAdamW::new(params).betas(beta1, beta2).eps(eps);
                Box::new(optimizer.weight_decay(weight_decay.unwrap_or(0.0)))
            }
            Self::Sgd { momentum, form, weight_decay, dampening } => {
                Box::new(Sgd::new(params).momentum(*momentum, *form).weight_decay(*weight_decay).dampening(*dampening))
            }
            Self::Muon(config) => Box::new(config.build(params)?),
            Self::RmsProp(RmsPropConfig { alpha, eps, momentum, weight_decay, centered }) => {
                let optimizer = if *centered { RmsProp::centered(params) } else { RmsProp::new(params) };
                Box::new(optimizer.alpha(*alpha).eps(*eps).momentum(*momentum).weight_decay(*weight_decay))
            }
            Self::NAdam(NAdamConfig { betas: [beta1, beta2], eps, momentum_decay, weight_decay, decoupled_weight_decay }) => {
                let decay = if *decoupled_weight_decay { WeightDecay::Decoupled } else { WeightDecay::Gradient };
                let optimizer = NAdam::new(params).betas(*beta1, *beta2).eps(*eps).momentum_decay(*momentum_decay);
                Box::new(optimizer.weight_decay(decay(*weight_decay)))
            }
        })
    }
}

impl AdamConfig {
    fn adam(&self, params: &Parameters, decay: WeightDecay) -> Adam {
        let [beta1, beta2] = self.betas;
        let optimizer = if self.amsgrad { Adam::amsgrad(params) } else { Adam::new(params) };
        optimizer.betas(beta1, beta2).eps(self.eps).weight_decay(decay)
    }

    /// Refuses AMSGrad.
    fn check_plain(&self, op: &'static str) -> Result<(), Error> {
        let found = "amsgrad".to_owned();
        if self.amsgrad { Err(Error::Refused { op, found, expected: "`adam` or `adamw` for it" }) } else { Ok(()) }
    }

    fn adamw(&self, params: &Parameters) -> Adam {
        self.adam(params, WeightDecay::Decoupled(self.decoupled()))
    }

    /// The decay, by default PyTorch's of AdamW.
    fn decoupled(&self) -> f32 {
        self.weight_decay.unwrap_or(0.01)
    }
}

impl MuonConfig {
    fn build(&self, params: &Parameters) -> Result<CombinedOptimizer, Error> {
        let unknown: Vec<_> = self.matrices.iter().filter(|name| params.id_of(name).is_none()).collect();
        if self.matrices.is_empty() || !unknown.is_empty() {
            let known: Vec<_> = params.entries().iter().filter(|entry| entry.shape.len() > 1).map(|entry| &entry.name).collect();
            let found = if unknown.is_empty() { "no matrices".to_owned() } else { format!("unknown matrices {unknown:?}") };
            let found = format!("{found} in a model with {known:?}");
            return Err(Error::Refused { op: "muon", found, expected: "the names of some parameters of the model" });
        }
        let ids: Vec<_> = self.matrices.iter().filter_map(|name| params.id_of(name)).collect();
        let muon = Muon::new(params, &ids)?.momentum(self.momentum, self.form).weight_decay(self.weight_decay).scale(self.scale);
        let rest = params.ids_where(|entry| !self.matrices.contains(&entry.name));
        let optimizer = CombinedOptimizer::new().and(muon);
        if rest.is_empty() {
            return Ok(optimizer);
        }
        let rest = ParameterGroup::new(rest).lr_factor(self.rest_lr_factor);
        Ok(optimizer.and(self.rest.adamw(params).groups(params, &[rest])?))
    }
}
