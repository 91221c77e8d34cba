//! The settings of a trainer from a TOML file.

use std::path::Path;
use std::time::Duration;

use brisk_nn::tensor::Precision;
use brisk_nn::{EmaConfig, EmaStart, Schedule};
use toml::{Table, Value};

use super::{GradientClip, Limit, TrainerConfig, ValidationInterval};
use crate::{EarlyStopping, Error, Mode};

impl TrainerConfig {
    /// Reads settings from a TOML file: the names of the fields, each with its default if it is left out.
    ///
    /// # Errors
    /// [`Error::Io`]; as [`from_toml`](Self::from_toml).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|source| Error::Io { path: path.to_owned(), action: "read the settings", source })?;
        Self::from_toml(&text)
    }

    /// Settings from the text of a TOML file.
    ///
    /// `precision` is `"f32"`, `"f16"` or `"bf16"`; `max_time` and `checkpoint_interval` a number of seconds or `"DD:HH:MM:SS"`; `limit_train_batches`,
    /// `limit_valid_batches` and `validate_within_epoch` a number of batches, or a share such as `0.5`; `learning_rate` a number, or a table `[schedule]` with the name of a [`Schedule`] and its values; `clip_norm` or `clip_value` a number.
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
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| Error::SettingsFile { reason: error.to_string().trim_end().to_owned() })?;
        let mut config = Self::default();
        let mut section = Section::new("", &table);
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
        if let Some(is_on) = section.boolean("detect_anomaly")? {
            config.detect_anomaly = is_on;
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
        if let Some(lr) = section.number("learning_rate")? {
            config.schedule = Schedule::constant(lr);
        }
        if let Some(table) = section.section("schedule")? {
            config.schedule = schedule(table)?;
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
        section.finish()?;
        Ok(config)
    }
}

fn schedule(mut table: Section<'_>) -> Result<Schedule, Error> {
    let names = ["constant", "one_cycle", "cosine", "step", "exponential", "linear", "polynomial"];
    let choices: Vec<(&str, &str)> = names.into_iter().map(|name| (name, name)).collect();
    let name = table.choice("name", &choices)?.unwrap_or("constant");
    let schedule = match name {
        "one_cycle" => Schedule::one_cycle(table.required("max_lr")?),
        "cosine" => Schedule::cosine(table.required("lr")?),
        "step" => {
            let steps = table.required("step_size")?;
            let (lr, gamma) = (table.required("lr")?, table.number("gamma")?.unwrap_or(0.1));
            // A share of the run below 1, else a number of steps.
            if steps < 1.0 { Schedule::step(lr, steps, gamma) } else { Schedule::step(lr, steps as usize, gamma) }
        }
        "exponential" => Schedule::exponential(table.required("lr")?, table.required("gamma")?),
        "linear" => Schedule::linear(table.required("lr")?),
        "polynomial" => Schedule::polynomial(table.required("lr")?, table.number("power")?.unwrap_or(1.0)),
        _ => Schedule::constant(table.required("lr")?),
    };
    let warmup = table.number("warmup")?;
    table.finish()?;
    Ok(match warmup {
        None => schedule,
        Some(share) if share < 1.0 => schedule.warmup(share),
        Some(steps) => schedule.warmup(steps as usize),
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
    if let Some(mode) = table.choice("mode", &[("min", Mode::Min), ("max", Mode::Max)])? {
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

/// Seconds, or `DD:HH:MM:SS`.
fn duration(value: &Value) -> Option<Duration> {
    match value {
        Value::Integer(seconds) => u64::try_from(*seconds).ok().map(Duration::from_secs),
        Value::Float(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
        Value::String(text) => {
            let parts: Vec<u64> = text.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
            let [days, hours, minutes, seconds] = parts[..] else { return None };
            let hours = days.checked_mul(24)?.checked_add(hours)?;
            let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
            minutes.checked_mul(60)?.checked_add(seconds).map(Duration::from_secs)
        }
        _ => None,
    }
}

/// A table of settings, of which those that were asked for are known.
struct Section<'t> {
    /// The table's name with a dot, or nothing for the file itself.
    prefix: &'static str,
    table: &'t Table,
    known: Vec<&'static str>,
}

impl<'t> Section<'t> {
    fn new(prefix: &'static str, table: &'t Table) -> Self {
        Self { prefix, table, known: Vec::new() }
    }

    fn take(&mut self, name: &'static str) -> Option<&'t Value> {
        self.known.push(name);
        self.table.get(name)
    }

    fn wrong(&self, name: &str, found: &Value, expected: &'static str) -> Error {
        Error::SettingsValue { name: format!("{}{name}", self.prefix), found: found.to_string(), expected }
    }

    fn parsed<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        parse: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.take(name) else { return Ok(None) };
        parse(value).map(Some).ok_or_else(|| self.wrong(name, value, expected))
    }

    fn integer(&mut self, name: &'static str) -> Result<Option<usize>, Error> {
        self.parsed(name, "a whole number, 0 or more", |value| usize::try_from(value.as_integer()?).ok())
    }

    fn count(&mut self, name: &'static str, setting: &mut usize) -> Result<(), Error> {
        if let Some(n) = self.integer(name)? {
            *setting = n;
        }
        Ok(())
    }

    fn number(&mut self, name: &'static str) -> Result<Option<f64>, Error> {
        self.parsed(name, "a number", |value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64)))
    }

    fn batches_or_share<T>(
        &mut self,
        name: &'static str,
        batches: impl Fn(usize) -> T,
        share: impl Fn(f64) -> T,
    ) -> Result<Option<T>, Error> {
        self.parsed(name, "a number of batches, or a share such as 0.5", |value| match value {
            Value::Integer(n) => usize::try_from(*n).ok().map(&batches),
            Value::Float(of_all) => Some(share(*of_all)),
            _ => None,
        })
    }

    fn time(&mut self, name: &'static str) -> Result<Option<Duration>, Error> {
        self.parsed(name, "seconds, or \"DD:HH:MM:SS\"", duration)
    }

    fn required(&mut self, name: &'static str) -> Result<f64, Error> {
        let missing =
            || Error::SettingsValue { name: format!("{}{name}", self.prefix), found: "nothing".to_owned(), expected: "a number" };
        let missing = missing();
        self.number(name)?.ok_or(missing)
    }

    fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, Error> {
        self.parsed(name, "true or false", Value::as_bool)
    }

    fn text(&mut self, name: &'static str) -> Result<Option<String>, Error> {
        self.parsed(name, "a text in quotes", |value| value.as_str().map(str::to_owned))
    }

    fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Result<Option<T>, Error> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let word = value.as_str().unwrap_or_default();
        match choices.iter().find(|(choice, _)| *choice == word) {
            Some(&(_, choice)) => Ok(Some(choice)),
            None => {
                let choices: Vec<&str> = choices.iter().map(|&(choice, _)| choice).collect();
                Err(Error::SettingsChoice {
                    name: format!("{}{name}", self.prefix),
                    found: value.to_string(),
                    choices: choices.join(", "),
                })
            }
        }
    }

    fn section(&mut self, name: &'static str) -> Result<Option<Section<'t>>, Error> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let prefix = match name {
            "schedule" => "schedule.",
            "early_stopping" => "early_stopping.",
            "ema" => "ema.",
            _ => "scaler.",
        };
        match value.as_table() {
            Some(table) => Ok(Some(Section::new(prefix, table))),
            None => Err(self.wrong(name, value, "a table")),
        }
    }

    /// Refuses settings that nothing has asked for.
    fn finish(self) -> Result<(), Error> {
        let Self { prefix, table, known } = self;
        let Some(name) = table.keys().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
        let nearest = known.iter().min_by_key(|known| strsim::levenshtein(known, name)).copied().unwrap_or_default();
        Err(Error::UnknownSetting { found: format!("{prefix}{name}"), nearest: format!("{prefix}{nearest}") })
    }
}
