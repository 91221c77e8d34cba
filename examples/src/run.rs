//! A run of an example on one device, whose results are also written as JSON.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use brisk_nn::tensor::program::Device;
use brisk_train::{FitReport, Scores};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::command_line::DeviceOption;
use crate::files::{NamedFile, check_files_differ, check_output, write_json};

/// The options of an example that trains on one device.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct RunOptions {
    #[command(flatten)]
    device: DeviceOption,
    /// Write the results to FILE as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    json: Option<PathBuf>,
}

impl RunOptions {
    /// Checks that the results can be written and replace none of the `inputs`, then opens the device.
    ///
    /// # Errors
    /// If either is not possible.
    pub fn start(&self, inputs: &[NamedFile<'_>]) -> Result<Run> {
        if let Some(path) = &self.json {
            check_files_differ(&[("--json", path)], inputs)?;
            check_output("--json", path)?;
        }
        Ok(Run { device: self.device.builder().open()?, json: self.json.clone(), started: Instant::now() })
    }
}

/// A run that has started.
#[derive(Debug)]
pub struct Run {
    /// The device to train on.
    pub device: Device,
    json: Option<PathBuf>,
    started: Instant,
}

impl Run {
    /// Writes the results to the file of `--json`, if it is given: the device, the time, and the members of `results`, which are f32 on simulated rows unless they say
    /// otherwise.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(&self, results: impl IntoIterator<Item = Value>) -> Result<()> {
        let Some(path) = &self.json else { return Ok(()) };
        let info = self.device.info();
        let mut all = json!({
            "device": info.to_string(), "executor": info.kind.executor(), "precision": "f32", "simulated": true,
            "seconds": self.started.elapsed().as_secs_f64(),
        });
        results.into_iter().filter_map(|part| part.as_object().cloned()).flatten().for_each(|(name, value)| all[name] = value);
        write_json(path, &all)
    }
}

/// The results of a trainer's run, and the scores of its test.
pub fn fitted(report: &FitReport, test: &Scores) -> Value {
    let scores: Map<_, _> = test.values.iter().map(|(name, value)| (format!("test_{name}"), json!(value))).collect();
    let mut results = json!({
        "epochs": report.n_epochs, "best_epoch": report.best_epoch, "train_seconds": report.train_seconds,
        "train_rows_per_s": report.train_rows_per_s, "ended": report.ended.to_string(),
    });
    scores.into_iter().for_each(|(name, value)| results[name] = value);
    results
}
