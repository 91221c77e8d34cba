use std::path::Path;

use brisk_replicate::{Wire, ZeroStage};

use super::section::Section;
use super::{parse, read};
use crate::data_parallel::{BatchStatistics, CheckpointFiles, DataParallelConfig};
use crate::error::Error;
use crate::trainer::TrainerConfig;

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
/// let ranks = run_threads::<_, brisk_train::Error>(settings.replicas, &settings.data_parallel, |replica| Ok(replica.rank()))?;
/// assert_eq!(ranks, [0, 1]);
/// # Ok::<(), brisk_train::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RunSettings {
    /// The settings of [`TrainerConfig::from_toml`].
    pub trainer: TrainerConfig,
    /// The number of replicas, `replicas`; 1 by default.
    pub replicas: usize,
    /// How they share the run, `[data_parallel]`.
    pub data_parallel: DataParallelConfig,
}

impl RunSettings {
    /// Reads settings from a TOML file.
    ///
    /// # Errors
    /// [`Error::Io`]; as [`from_toml`](Self::from_toml).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_toml(&read(path.as_ref())?)
    }

    /// Settings from the text of a TOML file: those of [`TrainerConfig::from_toml`], `replicas`, and a table `[data_parallel]` with `zero` (the
    /// [stage](ZeroStage), 0 to 3), `wire` (`"f32"`, `"f16"` or `"bf16"`), `batch_norm` (`"of_replica"` or `"of_all"`), `files` (`"one"` or `"one_a_replica"`),
    /// `bucket_bytes` and `first_bucket_bytes`.
    ///
    /// # Errors
    /// As [`TrainerConfig::from_toml`]; [`Error::SettingsValue`] for no replica, and for a stage that does not exist.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        let table = parse(text)?;
        let mut section = Section::new("", &table);
        let trainer = TrainerConfig::from_section(&mut section)?;
        let replicas = section.integer("replicas")?.unwrap_or(1);
        let data_parallel = section.section("data_parallel")?.map_or_else(|| Ok(DataParallelConfig::default()), data_parallel)?;
        section.finish()?;
        if replicas == 0 {
            return Err(Error::SettingsValue { name: "replicas".to_owned(), found: "0".to_owned(), expected: "at least 1" });
        }
        Ok(Self { trainer, replicas, data_parallel })
    }
}

fn data_parallel(mut table: Section<'_>) -> Result<DataParallelConfig, Error> {
    let mut config = DataParallelConfig::default();
    const STAGES: [ZeroStage; 4] = [ZeroStage::Replicated, ZeroStage::Optimizer, ZeroStage::Gradients, ZeroStage::Parameters];
    if let Some(stage) = table.integer("zero")? {
        let refused = || Error::SettingsValue {
            name: "data_parallel.zero".to_owned(),
            found: stage.to_string(),
            expected: "a stage of ZeRO, 0 to 3",
        };
        config.zero = STAGES.get(stage).copied().ok_or_else(refused)?;
    }
    if let Some(wire) = table.choice("wire", &[("f32", Wire::F32), ("f16", Wire::F16), ("bf16", Wire::Bf16)])? {
        config.wire = wire;
    }
    let statistics = [("of_replica", BatchStatistics::OfReplica), ("of_all", BatchStatistics::OfAll)];
    if let Some(statistics) = table.choice("batch_norm", &statistics)? {
        config.batch_norm = statistics;
    }
    if let Some(files) =
        table.choice("files", &[("one", CheckpointFiles::One), ("one_a_replica", CheckpointFiles::OneAReplica)])?
    {
        config.files = files;
    }
    table.count("bucket_bytes", &mut config.buckets.bytes)?;
    table.count("first_bucket_bytes", &mut config.buckets.first_bytes)?;
    table.finish()?;
    Ok(config)
}
