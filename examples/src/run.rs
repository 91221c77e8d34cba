//! A run of an example on one device, whose results are also written as JSON.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use brisk_loader::{Order, RowSource};
use brisk_nn::tensor::program::Device;
use brisk_train::{Feed, FeedConfig, FeedElement, FeedProbe, FitReport, Scores, Standardisation};
use clap::{Args, Command};
use serde_json::{Value, json};

use crate::command_line::{self, DeviceOption};
use crate::files::{NamedFile, check_files_differ, check_output, write_json};

/// Runs an example that has only the options of a [`Run`], which `program` is called with. `about` is the first line of its help.
pub fn main(name: &'static str, about: &'static str, program: fn(&Run) -> Result<()>) -> ExitCode {
    let command = RunOptions::augment_args(Command::new(name).about(about));
    command_line::run_command(command, |options: RunOptions, _| {
        program(&options.start(&[])?)?;
        Ok(ExitCode::SUCCESS)
    })
}

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
    /// Writes the results to the file of `--json`, if it is given: the device, the time, and the members of `results`, which are
    /// f32 on simulated rows unless they say otherwise.
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

    /// The results of a trainer's run on the rows `train`, and the scores of its test.
    ///
    /// # Errors
    /// As [`loader`](Self::loader).
    pub fn fitted<S>(&self, report: &FitReport, test: &Scores, train: &S, batch_rows: usize) -> Result<Value>
    where
        S: RowSource<Feature: FeedElement>,
    {
        let mut results = json!({
            "epochs": report.n_epochs, "best_epoch": report.best_epoch, "train_seconds": report.train_seconds,
            "train_rows_per_s": report.train_rows_per_s, "ended": report.ended.to_string(), "rows": train.n_rows(),
            "loader_rows_per_s": self.loader(train, batch_rows)?,
        });
        test.values.iter().for_each(|(name, value)| results[format!("test_{name}")] = json!(value));
        Ok(results)
    }

    /// How many rows per second the device gets without training, in shuffled batches; measured only if the results are written.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn loader<S>(&self, rows: &S, batch_rows: usize) -> Result<Option<f64>>
    where
        S: RowSource<Feature: FeedElement>,
    {
        if self.json.is_none() {
            return Ok(None);
        }
        let feed = Feed::new(&self.device, "train", rows, Order::Shuffled { seed: 0 }, batch_rows, &FeedConfig::default())?;
        let scale = Standardisation::none(rows.n_cols());
        scale.write(&self.device)?;
        Ok(Some(FeedProbe::new(&self.device, &feed, &scale)?.rows_per_s()?))
    }
}
