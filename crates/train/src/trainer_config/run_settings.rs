use std::num::NonZeroUsize;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::TrainerConfig;
use crate::data_parallel::DataParallelConfig;
use crate::error::Error;
use crate::settings;

/// All settings of a run in one TOML file: those of the trainer, and how many replicas share it.
///
/// # Examples
/// ```
/// use brisk_train::{RunSettings, ZeroStage, run_threads};
///
/// let settings = RunSettings::from_toml(
///     r#"
///     batch_rows = 1024
///     replicas = 2
///
///     [data_parallel]
///     zero = 1
///     "#,
/// )?;
/// assert_eq!(settings.data_parallel.zero, ZeroStage::Optimizer);
/// let ranks = run_threads::<_, brisk_train::Error>(
///     settings.replicas.get(),
///     &settings.data_parallel,
///     |replica| Ok(replica.rank()),
/// )?;
/// assert_eq!(ranks, [0, 1]);
/// # Ok::<(), brisk_train::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunSettings {
    /// The settings of [`TrainerConfig::from_toml`].
    #[serde(flatten, deserialize_with = "all_others")]
    pub trainer: TrainerConfig,
    /// The number of replicas, `replicas`; 1 by default.
    #[serde(default = "one")]
    pub replicas: NonZeroUsize,
    /// How they share the run, `[data_parallel]`.
    #[serde(default)]
    pub data_parallel: DataParallelConfig,
}

fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

/// The settings that are not those of replicas, of which an unknown one is an error, as it is not for a flattened structure.
fn all_others<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TrainerConfig, D::Error> {
    toml::Table::deserialize(deserializer)?.try_into().map_err(D::Error::custom)
}

impl RunSettings {
    /// Reads settings from a TOML file.
    ///
    /// # Errors
    /// [`Error::Io`]; as [`from_toml`](Self::from_toml).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        settings::load(path.as_ref())
    }

    /// Settings from the text of a TOML file: those of [`TrainerConfig::from_toml`], `replicas`, and a table `[data_parallel]`
    /// with `zero` (the [stage](brisk_replicate::ZeroStage), 0 to 3), `wire` (`"f32"`, `"f16"` or `"bf16"`), `batch_norm`
    /// (`"of_replica"` or `"of_all"`), `files` (`"one"` or `"one_a_replica"`) and `buckets`
    /// (`{ first_bytes = 1048576, bytes = 4194304 }`).
    ///
    /// # Errors
    /// As [`TrainerConfig::from_toml`].
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        settings::from_toml(text)
    }
}
