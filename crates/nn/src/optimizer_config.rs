use brisk_tensor::Error;
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig, WeightDecay};
use crate::cautious::CautiousAdamW;
use crate::muon::{Muon, MuonConfig};
use crate::nadam::{NAdam, NAdamConfig};
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::rms_prop::{RmsProp, RmsPropConfig};
use crate::schedule_free::ScheduleFreeAdamW;
use crate::sgd::{Sgd, SgdConfig};

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
    Sgd(SgdConfig),
    /// [`Muon`], with AdamW for the parameters that are not its own.
    Muon(MuonConfig),
    /// [`RmsProp`].
    #[serde(rename = "rmsprop")]
    RmsProp(RmsPropConfig),
    /// [`NAdam`].
    #[serde(rename = "nadam")]
    NAdam(NAdamConfig),
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
        let refuse_amsgrad = |op, config: &AdamConfig| match config.amsgrad {
            true => Err(Error::Refused { op, found: "amsgrad".to_owned(), expected: "`adam` or `adamw` for it" }),
            false => Ok(()),
        };
        Ok(match self {
            Self::Adam(config) => {
                Box::new(Adam::from_config(params, *config, WeightDecay::Gradient(config.weight_decay.unwrap_or(0.0))))
            }
            Self::AdamW(config) => Box::new(Adam::from_config(params, *config, config.decoupled())),
            Self::CautiousAdamW(config) => {
                refuse_amsgrad("cautious_adamw", config)?;
                Box::new(CautiousAdamW::from_config(params, *config).weight_decay(config.decoupled().decay()))
            }
            Self::ScheduleFreeAdamW(config) => {
                refuse_amsgrad("schedule_free_adamw", config)?;
                Box::new(ScheduleFreeAdamW::from_config(params, *config))
            }
            Self::Sgd(config) => Box::new(Sgd::from_config(params, *config)),
            Self::Muon(config) => Box::new(Muon::from_config(params, config)?),
            Self::RmsProp(config) => Box::new(RmsProp::from_config(params, *config)),
            Self::NAdam(config) => Box::new(NAdam::from_config(params, *config)),
        })
    }
}
