use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use brisk_nn::Schedule;
use brisk_nn::tensor::Precision;
use brisk_table::BadRows;
use brisk_train::{EarlyStopping, GradientClip, TrainerConfig};
use clap::Args;
use serde_json::{Value, json};

use super::PlaceOptions;
use crate::command_line::value::{MAX_COUNT, list, one_of, positive, precision, whole};
use crate::command_line::{CacheOptions, ServerOption};
use crate::elsewhere::{is_table, is_url, shown};
use crate::{check_files_differ, check_folder, check_output, print};

/// The options of every example that trains on collisions: the rows, the network, the training run and its results.
#[derive(Debug, Clone, Args)]
// A group would be named `Options`, as that of the options which these are a part of.
#[group(skip)]
pub struct Options {
    /// Rows to train on: CSV or TSV, plain or .gz; or a brisk table: .safetensors, a folder of shards, or the URL of either
    /// [default: simulated collisions]
    #[arg(long, value_name = "FILE", help_heading = "Data", requires = "test")]
    pub train: Option<PathBuf>,
    /// Rows to test on, with the same columns as those of --train
    #[arg(long, value_name = "FILE", help_heading = "Data", requires = "train")]
    pub test: Option<PathBuf>,
    /// Column to predict, with values 0 and 1, by name or by index from 0 [default: 0]
    #[arg(long, value_name = "COLUMN", help_heading = "Data", allow_negative_numbers = true, requires = "train")]
    pub label: Option<String>,
    /// What to do with a row that cannot be parsed: end with an error, or skip and count it
    #[arg(long = "on-bad-row", value_name = "ACTION", help_heading = "Data", default_value = "fail", requires = "train",
        value_parser = one_of([("fail", BadRows::Error), ("skip", BadRows::Skip)]))]
    pub bad_rows: BadRows,
    /// Number of simulated rows to train on; a fifth as many are simulated to test on
    #[arg(long, value_name = "N", help_heading = "Data", default_value = "100000", allow_negative_numbers = true,
        conflicts_with_all = ["train", "test", "label", "bad_rows"], value_parser = whole::<u64>(100..=MAX_COUNT))]
    pub rows: u64,
    /// Folder for simulated and imported tables, which later runs use again
    #[arg(long, value_name = "DIR", help_heading = "Data", default_value = "target/higgs")]
    pub data_dir: PathBuf,

    /// Precision of matrix products; parameters are f32 in each
    #[arg(long, value_name = "TYPE", help_heading = "Training", default_value = "f32", value_parser = precision())]
    pub precision: Precision,
    /// Rows per batch
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "256", allow_negative_numbers = true,
        value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub batch: usize,
    /// Batches per step of the optimizer, which uses the mean of their gradients
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "1", allow_negative_numbers = true,
        value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub accumulate: usize,
    /// Norm above which gradients are scaled down to it [default: no clipping]
    #[arg(long, value_name = "NORM", help_heading = "Training", allow_negative_numbers = true, value_parser = clip)]
    pub clip: Option<f32>,
    /// Maximum number of epochs; early stopping ends most runs sooner
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "30", allow_negative_numbers = true,
        value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub epochs: usize,
    /// Epochs without a better validation AUC after which the run ends; 0 turns early stopping off
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "5", allow_negative_numbers = true,
        value_parser = whole::<usize>(0..=MAX_COUNT))]
    pub patience: usize,
    /// Units of each hidden layer; 0 trains a linear model
    // With its full path the type is that of one value; clap reads a plain `Vec` as an option that takes several.
    #[arg(long, value_name = "A,B,C", help_heading = "Training", default_value = "300,300,300", allow_negative_numbers = true,
        value_parser = units)]
    pub hidden: std::vec::Vec<usize>,
    /// Learning rate of Adam
    #[arg(long, value_name = "RATE", help_heading = "Training", default_value = "0.001", allow_negative_numbers = true,
        value_parser = positive(f64::MAX))]
    pub lr: f64,
    /// Seed of the initial weights, the order of rows, the validation split and the simulation
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "0", allow_negative_numbers = true,
        value_parser = whole::<u64>(0..=MAX_COUNT))]
    pub seed: u64,

    /// Folder in which the run creates its own, with checkpoints and logs
    #[arg(long, value_name = "DIR", help_heading = "Results", default_value = RUNS)]
    pub runs: PathBuf,
    /// Write the results to FILE as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub json: Option<PathBuf>,
    /// Requests to servers.
    #[command(flatten)]
    pub server: ServerOption,
    /// The cache of tables on servers.
    #[command(flatten)]
    pub cache: CacheOptions,
}

/// The default of `--runs`.
const RUNS: &str = "runs";

impl Options {
    /// Checks the options as far as possible before any rows are loaded.
    ///
    /// # Errors
    /// If `--train` or `--test` does not exist, an option has no effect on them or on `place`, or files cannot be written to
    /// `--runs`, `--data-dir` or `--json`.
    pub fn check(&self, place: Option<&PlaceOptions>) -> Result<()> {
        let tables = [&self.train, &self.test].into_iter().filter_map(|path| path.as_deref());
        self.cache.apply(tables.clone())?;
        self.server.apply(tables.chain(place.into_iter().flat_map(PlaceOptions::servers)))?;
        for (option, path) in [("--train", &self.train), ("--test", &self.test)] {
            let Some(path) = path.as_ref().filter(|path| !is_url(path)) else { continue };
            std::fs::metadata(path).with_context(|| format!("{}: cannot open the file of {option}", path.display()))?;
        }
        check_folder("--runs", &self.runs)?;
        if self.runs != Path::new(RUNS) && place.is_some_and(|place| place.out.is_some()) {
            print::note("warning: --runs has no effect, since --out names the folder of the run");
        }
        let is_imported = self.train.iter().chain(&self.test).any(|path| !is_table(path));
        if self.is_simulated() || is_imported {
            check_folder("--data-dir", &self.data_dir)?;
        } else {
            let of_text = [(self.label.is_some(), "--label"), (self.bad_rows != BadRows::Error, "--on-bad-row")];
            if let Some((_, option)) = of_text.into_iter().find(|(is_given, _)| *is_given) {
                bail!("{option} has no effect on tables, which were imported before; leave it out");
            }
        }
        let Some(json) = &self.json else { return Ok(()) };
        let inputs = [("--train", &self.train), ("--test", &self.test)];
        let inputs = inputs.iter().filter_map(|(option, path)| Some((*option, path.as_deref()?)));
        let run_files: Vec<PathBuf> = place.into_iter().flat_map(PlaceOptions::run_files).collect();
        let run_files = run_files.iter().map(|path| ("the run", path.as_path()));
        check_files_differ(&[("--json", json)], &inputs.chain(run_files).collect::<Vec<_>>())?;
        check_output("--json", json)
    }

    /// Whether the rows are simulated, because no files were given.
    pub fn is_simulated(&self) -> bool {
        self.train.is_none()
    }

    /// The settings of the training run.
    pub fn trainer_config(&self) -> TrainerConfig {
        TrainerConfig {
            batch_rows: self.batch,
            accumulate: self.accumulate,
            precision: self.precision,
            clip: self.clip.map(GradientClip::Norm),
            max_epochs: self.epochs,
            schedule: Schedule::Constant { lr: self.lr },
            early_stopping: (self.patience > 0).then(|| EarlyStopping::default().patience(self.patience)),
            seed: self.seed,
            ..TrainerConfig::default()
        }
    }

    /// The settings that the run's folder records.
    pub fn config(&self, device: &str, columns: &[String]) -> Value {
        json!({
            "device": device, "simulated": self.is_simulated(), "columns": columns, "hidden": self.hidden,
            "batch": self.batch, "accumulate": self.accumulate, "precision": self.precision.to_string(), "clip": self.clip,
            "epochs": self.epochs, "patience": self.patience, "lr": self.lr, "seed": self.seed,
            "skip_bad_rows": self.bad_rows == BadRows::Skip,
            "train": self.train.as_deref().map(shown),
            "test": self.test.as_deref().map(shown),
        })
    }

    /// The start of the name of the run's folder, which the time follows.
    pub fn run_name(&self) -> &'static str {
        if self.is_simulated() { "higgs-simulated" } else { "higgs" }
    }
}

/// A norm above 0. Numbers outside the range of `f32` are clamped to it: a tiny norm stays positive.
fn clip(word: &str) -> Result<f32, String> {
    positive(f64::MAX)(word).map(|norm| (norm as f32).clamp(f32::MIN_POSITIVE, f32::MAX))
}

/// `300,300,300`; `0` or nothing for a linear model.
fn units(words: &str) -> Result<Vec<usize>, String> {
    match words.trim() {
        "" | "0" => Ok(Vec::new()),
        words => list(whole::<usize>(1..=1 << 16))(words),
    }
}
