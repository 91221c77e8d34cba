//! A table of a TOML file, whose settings are taken one by one.

use std::time::Duration;

use brisk_nn::Steps;
use toml::{Table, Value};

use crate::error::Error;
use crate::nearest::nearest;

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

fn as_number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
}

const STEPS: &str = "a whole number of steps, or a fraction of the run below 1";

/// A fraction of the run, if it is below 1, else a whole number of steps. The schedule checks fractions.
fn as_steps(steps: f64) -> Option<Steps> {
    match steps {
        share if share < 1.0 => Some(share.into()),
        steps if steps.fract() == 0.0 && steps <= f64::from(u32::MAX) => Some((steps as usize).into()),
        _ => None,
    }
}

/// A table of settings, which records the names of the settings that were requested.
pub(super) struct Section<'t> {
    /// The table's name with a dot, or nothing for the file itself.
    prefix: &'static str,
    table: &'t Table,
    known: Vec<&'static str>,
}

impl<'t> Section<'t> {
    pub(super) fn new(prefix: &'static str, table: &'t Table) -> Self {
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

    pub(super) fn integer(&mut self, name: &'static str) -> Result<Option<usize>, Error> {
        self.parsed(name, "a whole number, 0 or more", |value| usize::try_from(value.as_integer()?).ok())
    }

    pub(super) fn count(&mut self, name: &'static str, setting: &mut usize) -> Result<(), Error> {
        if let Some(n) = self.integer(name)? {
            *setting = n;
        }
        Ok(())
    }

    pub(super) fn number(&mut self, name: &'static str) -> Result<Option<f64>, Error> {
        self.parsed(name, "a number", as_number)
    }

    pub(super) fn batches_or_share<T>(
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

    pub(super) fn time(&mut self, name: &'static str) -> Result<Option<Duration>, Error> {
        self.parsed(name, "seconds, or \"DD:HH:MM:SS\"", duration)
    }

    /// A number of steps, or a fraction of the run.
    pub(super) fn steps(&mut self, name: &'static str) -> Result<Option<Steps>, Error> {
        self.parsed(name, STEPS, |value| as_steps(as_number(value)?))
    }

    pub(super) fn required_steps(&mut self, name: &'static str) -> Result<Steps, Error> {
        let name_in_file = format!("{}{name}", self.prefix);
        let missing = || Error::SettingsValue { name: name_in_file, found: "nothing".to_owned(), expected: STEPS };
        self.steps(name)?.ok_or_else(missing)
    }

    pub(super) fn list_of_steps(&mut self, name: &'static str) -> Result<Option<Vec<Steps>>, Error> {
        let steps = |value: &Value| as_steps(as_number(value)?);
        self.parsed(name, "a list of steps, each a whole number, or a fraction of the run below 1", |value| {
            value.as_array()?.iter().map(steps).collect()
        })
    }

    /// A list of pairs of a step and a number.
    pub(super) fn points(&mut self, name: &'static str) -> Result<Option<Vec<(Steps, f64)>>, Error> {
        // 1 is the end of the run, a fraction of 1; a point at the second step is hardly ever intended.
        let place = |step: f64| if step == 1.0 { Some(Steps::ALL) } else { as_steps(step) };
        let point = |value: &Value| match value.as_array()?.as_slice() {
            [step, number] => Some((place(as_number(step)?)?, as_number(number)?)),
            _ => None,
        };
        self.parsed(name, "a list of pairs of a step and a rate", |value| value.as_array()?.iter().map(point).collect())
    }

    pub(super) fn required(&mut self, name: &'static str) -> Result<f64, Error> {
        let missing =
            || Error::SettingsValue { name: format!("{}{name}", self.prefix), found: "nothing".to_owned(), expected: "a number" };
        let missing = missing();
        self.number(name)?.ok_or(missing)
    }

    pub(super) fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, Error> {
        self.parsed(name, "true or false", Value::as_bool)
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, Error> {
        self.parsed(name, "a text in quotes", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Result<Option<T>, Error> {
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

    pub(super) fn section(&mut self, name: &'static str) -> Result<Option<Section<'t>>, Error> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let prefix = match name {
            "schedule" => "schedule.",
            "early_stopping" => "early_stopping.",
            "ema" => "ema.",
            "data_parallel" => "data_parallel.",
            _ => "scaler.",
        };
        match value.as_table() {
            Some(table) => Ok(Some(Section::new(prefix, table))),
            None => Err(self.wrong(name, value, "a table")),
        }
    }

    /// Returns an error for settings that have not been requested.
    pub(super) fn finish(self) -> Result<(), Error> {
        let Self { prefix, table, known } = self;
        let Some(name) = table.keys().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
        let nearest = nearest(name, known.iter().copied()).unwrap_or_default();
        Err(Error::UnknownSetting { found: format!("{prefix}{name}"), nearest: format!("{prefix}{nearest}") })
    }
}
