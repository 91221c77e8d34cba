//! The settings of a trainer from a TOML file.

mod run_settings;
mod section;

use std::path::Path;

use brisk_metrics::Direction;
use brisk_nn::tensor::Precision;
use brisk_nn::{EmaConfig, EmaStart, Schedule};
use toml::Table;

use super::{GradientClip, Limit, TrainerConfig, ValidationInterval};
use crate::early_stopping::EarlyStopping;
use crate::error::Error;

pub use run_settings::RunSettings;
use section::Section;

impl TrainerConfig {
    /// Reads settings from a TOML file. Their names are those of the fields; a field that is left out has its default.
    ///
    /// # Errors
    /// [`Error::Io`]; as [`from_toml`](Self::from_toml).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::from_toml(&read(path.as_ref())?)
    }

    /// Settings from the text of a TOML file.
    ///
    /// `precision` is `"f32"`, `"f16"` or `"bf16"`; `max_time` and `checkpoint_interval` a number of seconds or `"DD:HH:MM:SS"`; `limit_train_batches`,
    /// `limit_valid_batches` and `validate_within_epoch` a number of batches, or a fraction such as `0.5`; `learning_rate` a number, or a table `[schedule]` with the name of a [`Schedule`] and its values, where a length is a number of steps, or a fraction of
    /// the run below 1; `clip_norm` or `clip_value` a number.
    ///
    /// # Errors
    /// [`Error::SettingsFile`] if it is not TOML; [`Error::UnknownSetting`] names the nearest setting; [`Error::SettingsValue`] names a setting whose value
    /// has another type.
    /// # Examples
    /// ```
    /// use brisk_train::TrainerConfig;
    ///
    /// let config = TrainerConfig::from_toml(
    ///     r#"
    ///     batch_rows = 1024
    ///     precision = "f16"
    ///     max_epochs = 30
    ///     max_time = "00:02:30:00"
    ///     clip_norm = 1.0
    ///
    ///     [schedule]
    ///     name = "one_cycle"
    ///     max_lr = 3e-3
    ///
    ///     [early_stopping]
    ///     monitor = "valid_accuracy"
    ///     patience = 5
    ///     "#,
    /// )?;
    /// assert_eq!(config.batch_rows, 1024);
    ///
    /// let error = TrainerConfig::from_toml("max_epoch = 30").unwrap_err();
    /// assert_eq!(error.to_string(), "settings: `max_epoch` is not a setting; did you mean `max_epochs`?");
    /// # Ok::<(), brisk_train::Error>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        let table = parse(text)?;
        let mut section = Section::new("", &table);
        let config = Self::from_section(&mut section)?;
        section.finish()?;
        Ok(config)
    }

    /// Takes the settings of a trainer.
    fn from_section(section: &mut Section<'_>) -> Result<Self, Error> {
        let mut config = Self::default();
        section.count("batch_rows", &mut config.batch_rows)?;
        section.count("accumulate", &mut config.accumulate)?;
        section.count("max_epochs", &mut config.max_epochs)?;
        section.count("min_epochs", &mut config.min_epochs)?;
        section.count("validate_every", &mut config.validate_every)?;
        section.count("checkpoint_every", &mut config.checkpoint_every)?;
        section.count("keep_best", &mut config.keep_best)?;
        section.count("profile_batches", &mut config.profile_batches)?;
        if let Some(is_written) = section.boolean("checkpoint_on_error")? {
            config.checkpoint_on_error = is_written;
        }
        if let Some(is_on) = section.boolean("extend")? {
            config.extend = is_on;
        }
        if let Some(is_on) = section.boolean("detect_anomaly")? {
            config.detect_anomaly = is_on;
        }
        if let Some(drops_last) = section.boolean("drop_last")? {
            config.drop_last = drops_last;
        }
        if let Some(is_on) = section.boolean("record_grad_norms")? {
            config.record_grad_norms = is_on;
        }
        if let Some(precision) =
            section.choice("precision", &[("f32", Precision::F32), ("f16", Precision::F16), ("bf16", Precision::Bf16)])?
        {
            config.precision = precision;
        }
        if let Some(n) = section.integer("max_steps")? {
            config.max_steps = Some(n);
        }
        if let Some(n) = section.integer("max_skipped")? {
            config.max_skipped = u32::try_from(n).unwrap_or(u32::MAX);
        }
        if let Some(seed) = section.integer("seed")? {
            config.seed = seed as u64;
        }
        config.max_time = section.time("max_time")?;
        config.checkpoint_interval = section.time("checkpoint_interval")?;
        let (batches, share) = (ValidationInterval::Batches, ValidationInterval::Share);
        config.validate_within_epoch = section.batches_or_share("validate_within_epoch", batches, share)?;
        config.limit_train_batches = section.batches_or_share("limit_train_batches", Limit::Batches, Limit::Share)?;
        config.limit_valid_batches = section.batches_or_share("limit_valid_batches", Limit::Batches, Limit::Share)?;
        section.count("sanity_validation", &mut config.sanity_validation)?;
        let (norm, value) = (section.number("clip_norm")?, section.number("clip_value")?);
        config.clip = match (norm, value) {
            (None, None) => None,
            (Some(norm), None) => Some(GradientClip::Norm(norm as f32)),
            (None, Some(value)) => Some(GradientClip::Value(value as f32)),
            (Some(_), Some(_)) => {
                let found = "`clip_norm` and `clip_value`".to_owned();
                return Err(Error::SettingsValue { name: "clip_value".to_owned(), found, expected: "one of the two" });
            }
        };
        match (section.number("learning_rate")?, section.section("schedule")?) {
            (None, None) => {}
            (Some(lr), None) => config.schedule = Schedule::constant(lr),
            (None, Some(table)) => config.schedule = schedule(table)?,
            (Some(_), Some(_)) => {
                let found = "`learning_rate` and `[schedule]`".to_owned();
                return Err(Error::SettingsValue { name: "learning_rate".to_owned(), found, expected: "one of the two" });
            }
        }
        if let Some(table) = section.section("ema")? {
            config.ema = Some(ema(table)?);
        }
        if let Some(table) = section.section("early_stopping")? {
            config.early_stopping = Some(early_stopping(table)?);
        }
        if let Some(mut scaler) = section.section("scaler")? {
            if let Some(enabled) = scaler.boolean("enabled")? {
                config.scaler.enabled = enabled;
            }
            if let Some(scale) = scaler.number("init_scale")? {
                config.scaler.init_scale = scale as f32;
            }
            if let Some(factor) = scaler.number("growth_factor")? {
                config.scaler.growth_factor = factor;
            }
            if let Some(factor) = scaler.number("backoff_factor")? {
                config.scaler.backoff_factor = factor;
            }
            if let Some(n) = scaler.integer("growth_interval")? {
                config.scaler.growth_interval = u32::try_from(n).unwrap_or(u32::MAX);
            }
            scaler.finish()?;
        }
        Ok(config)
    }
}

fn read(path: &Path) -> Result<String, Error> {
    let text = brisk_atomic_file::open_regular_file(path).and_then(std::io::read_to_string);
    text.map_err(|cause| Error::Io { path: path.to_owned(), action: "read the settings", cause })
}

fn parse(text: &str) -> Result<Table, Error> {
    let failed = |error: toml::de::Error| Error::SettingsFile { reason: error.to_string().trim_end().to_owned() };
    text.parse().map_err(failed)
}

/// The schedules that a file can name.
const SCHEDULES: [&str; 10] = [
    "constant",
    "one_cycle",
    "cosine",
    "cosine_warm_restarts",
    "step",
    "multi_step",
    "exponential",
    "linear",
    "piecewise_linear",
    "polynomial",
];

fn schedule(mut table: Section<'_>) -> Result<Schedule, Error> {
    let name = table.choice("name", &SCHEDULES.map(|name| (name, name)))?.unwrap_or("constant");
    let schedule = match name {
        "one_cycle" => Schedule::one_cycle(table.required("max_lr")?),
        "cosine" => Schedule::cosine(table.required("lr")?),
        "cosine_warm_restarts" => {
            let (lr, t_0) = (table.required("lr")?, table.required_steps("t_0")?);
            Schedule::cosine_warm_restarts(lr, t_0, table.integer("t_mult")?.unwrap_or(1))
        }
        "step" => {
            let (lr, step_size) = (table.required("lr")?, table.required_steps("step_size")?);
            Schedule::step(lr, step_size, table.number("gamma")?.unwrap_or(0.1))
        }
        "multi_step" => {
            let (lr, milestones) = (table.required("lr")?, table.list_of_steps("milestones")?.unwrap_or_default());
            Schedule::multi_step(lr, milestones, table.number("gamma")?.unwrap_or(0.1))
        }
        "exponential" => Schedule::exponential(table.required("lr")?, table.required("gamma")?),
        "linear" => Schedule::linear(table.required("lr")?),
        "piecewise_linear" => Schedule::piecewise_linear(table.points("points")?.unwrap_or_default()),
        "polynomial" => Schedule::polynomial(table.required("lr")?, table.number("power")?.unwrap_or(1.0)),
        _ => Schedule::constant(table.required("lr")?),
    };
    let warmup = table.steps("warmup")?;
    table.finish()?;
    Ok(match warmup {
        None => schedule,
        Some(warmup) => schedule.warmup(warmup),
    })
}

fn ema(mut table: Section<'_>) -> Result<EmaConfig, Error> {
    let mut ema = EmaConfig::new(table.required("decay")? as f32);
    for (name, setting) in [("every", &mut ema.every), ("first_step", &mut ema.first_step)] {
        if let Some(n) = table.integer(name)? {
            *setting = u32::try_from(n).unwrap_or(u32::MAX);
        }
    }
    if let Some(start) = table.choice("start", &[("parameters", EmaStart::Parameters), ("initial", EmaStart::Given)])? {
        ema.start = start;
    }
    table.finish()?;
    Ok(ema)
}

fn early_stopping(mut table: Section<'_>) -> Result<EarlyStopping, Error> {
    let mut early_stopping = EarlyStopping { monitor: table.text("monitor")?, ..EarlyStopping::default() };
    if let Some(mode) = table.choice("mode", &[("min", Direction::Minimize), ("max", Direction::Maximize)])? {
        early_stopping = EarlyStopping { monitor: early_stopping.monitor, ..EarlyStopping::new(mode) };
    }
    if let Some(patience) = table.integer("patience")? {
        early_stopping.patience = patience;
    }
    if let Some(delta) = table.number("min_delta")? {
        early_stopping.min_delta = delta;
    }
    early_stopping.stopping_threshold = table.number("stopping_threshold")?;
    early_stopping.divergence_threshold = table.number("divergence_threshold")?;
    if let Some(check) = table.boolean("check_finite")? {
        early_stopping.check_finite = check;
    }
    table.finish()?;
    Ok(early_stopping)
}
