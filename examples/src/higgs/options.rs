use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use brisk_nn::Schedule;
use brisk_nn::tensor::Precision;
use brisk_table::BadRows;
use brisk_train::{GradientClip, TrainerConfig};
use serde_json::{Value, json};

use crate::check_output;

/// Options of the rows, as `--help` has them.
pub const DATA_HELP: &str = "    --train FILE     rows to train on: CSV or TSV, plain or .gz, or a brisk table (.safetensors)
    --test FILE      rows to test on, of the same columns
    --label COLUMN   the column to predict, 0 or 1, by name or by index from 0     [the first]
    --on-bad-row W   fail, or skip and count rows that cannot be read               [fail]
    --rows N         simulated rows to train on; a fifth as many to test on        [100000]
    --data-dir DIR   where simulated and imported tables are kept                  [target/higgs]";

/// Options of a run.
pub const TRAINING_HELP: &str = "    --precision P    of products: f32, f16 or bf16; parameters are f32 in any       [f32]
    --batch N        rows a batch                                                  [256]
    --accumulate N   batches a step, by the mean of their gradients                [1]
    --clip X         norm above which gradients are scaled down                    [none]
    --epochs N       the most epochs; early stopping ends most runs before         [30]
    --patience N     epochs without a better validation AUC that end the run       [5]
    --hidden A,B,C   units of the hidden layers                                    [300,300,300]
    --lr X           Adam's learning rate                                          [0.001]
    --seed N         of weights, order of rows, split and simulation               [0]";

/// Options of what a run leaves.
pub const RESULTS_HELP: &str = "    --runs DIR       where the run's folder is made                                [runs]
    --json FILE      the results as one JSON object";

/// What the command line says of rows, network and run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file to train on; simulated collisions if there is none.
    pub train: Option<PathBuf>,
    /// The file to test on, where there is one to train on.
    pub test: Option<PathBuf>,
    /// The column to predict.
    pub label: Option<String>,
    /// What becomes of rows that cannot be read.
    pub bad_rows: BadRows,
    /// Simulated rows to train on.
    pub rows: u64,
    /// Of products.
    pub precision: Precision,
    /// Rows a batch.
    pub batch: usize,
    /// Batches a step.
    pub accumulate: usize,
    /// Norm above which gradients are scaled down.
    pub clip: Option<f32>,
    /// The most epochs.
    pub epochs: usize,
    /// Epochs without a better score that end the run.
    pub patience: usize,
    /// Units of the hidden layers.
    pub hidden: Vec<usize>,
    /// Adam's learning rate.
    pub lr: f64,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Where the run's folder is made.
    pub runs: PathBuf,
    /// Where tables are kept.
    pub data_dir: PathBuf,
    /// Where results go.
    pub json: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            train: None,
            test: None,
            label: None,
            bad_rows: BadRows::Error,
            rows: 100_000,
            precision: Precision::F32,
            batch: 256,
            accumulate: 1,
            clip: None,
            epochs: 30,
            patience: 5,
            hidden: vec![300, 300, 300],
            lr: 1e-3,
            seed: 0,
            runs: PathBuf::from("runs"),
            data_dir: PathBuf::from("target/higgs"),
            json: None,
        }
    }
}

impl Options {
    /// Takes the option `name`, with the value that stands behind it.
    ///
    /// # Errors
    /// If there is no such option, or it has another value.
    pub fn take(&mut self, name: &str, mut value: impl FnMut() -> Result<String>) -> Result<()> {
        match name {
            "--train" => self.train = Some(PathBuf::from(value()?)),
            "--test" => self.test = Some(PathBuf::from(value()?)),
            "--label" => self.label = Some(value()?),
            "--on-bad-row" => self.bad_rows = bad_rows(&value()?)?,
            "--rows" => self.rows = whole(name, &value()?, 100)? as u64,
            "--precision" => self.precision = value()?.parse()?,
            "--batch" => self.batch = whole(name, &value()?, 1)?,
            "--accumulate" => self.accumulate = whole(name, &value()?, 1)?,
            "--clip" => self.clip = Some(positive(name, &value()?)? as f32),
            "--epochs" => self.epochs = whole(name, &value()?, 1)?,
            "--patience" => self.patience = whole(name, &value()?, 0)?,
            "--hidden" => self.hidden = units(&value()?)?,
            "--lr" => self.lr = positive(name, &value()?)?,
            "--seed" => self.seed = whole(name, &value()?, 0)? as u64,
            "--runs" => self.runs = PathBuf::from(value()?),
            "--data-dir" => self.data_dir = PathBuf::from(value()?),
            "--json" => self.json = Some(PathBuf::from(value()?)),
            _ => bail!("unknown option `{name}`; see --help"),
        }
        Ok(())
    }

    /// What has been taken, once that is all.
    ///
    /// # Errors
    /// If options do not go together, or results cannot be written where they were asked for, as far as can be told before there are any.
    pub fn finish(self) -> Result<Self> {
        if self.train.is_some() != self.test.is_some() {
            bail!("--train and --test go together; give both, or neither for simulated collisions");
        }
        self.json.as_ref().map_or(Ok(()), |path| check_output("--json", path))?;
        Ok(self)
    }

    /// Whether there are no files, so that rows are simulated.
    pub fn is_simulated(&self) -> bool {
        self.train.is_none()
    }

    /// How the run goes.
    pub fn trainer_config(&self) -> TrainerConfig {
        TrainerConfig {
            batch_rows: self.batch,
            accumulate: self.accumulate,
            precision: self.precision,
            clip: self.clip.map(GradientClip::Norm),
            max_epochs: self.epochs,
            schedule: Schedule::Constant { lr: self.lr },
            patience: self.patience,
            seed: self.seed,
            ..TrainerConfig::default()
        }
    }

    /// What the run's folder says of its settings.
    pub fn config(&self, device: &str, columns: &[String]) -> Value {
        json!({
            "device": device, "simulated": self.is_simulated(), "columns": columns, "hidden": self.hidden,
            "batch": self.batch, "accumulate": self.accumulate, "precision": self.precision.to_string(), "clip": self.clip,
            "epochs": self.epochs, "patience": self.patience, "lr": self.lr, "seed": self.seed,
            "skip_bad_rows": self.bad_rows == BadRows::Skip,
            "train": self.train.as_ref().map(|path| path.display().to_string()),
            "test": self.test.as_ref().map(|path| path.display().to_string()),
        })
    }

    /// The name of the run's folder, before the time.
    pub fn run_name(&self) -> &'static str {
        if self.is_simulated() { "higgs-simulated" } else { "higgs" }
    }
}

/// A whole number from `least` on.
///
/// # Errors
/// If it is none.
pub fn whole(name: &str, word: &str, least: usize) -> Result<usize> {
    let number: usize = word.parse().ok().with_context(|| format!("{name} wants a whole number, got `{word}`"))?;
    if number < least || number > 1 << 40 {
        bail!("{name} is {number}, expected {least} to 2^40");
    }
    Ok(number)
}

/// A number above 0.
///
/// # Errors
/// If it is none.
pub fn positive(name: &str, word: &str) -> Result<f64> {
    let number: f64 = word.parse().ok().with_context(|| format!("{name} wants a number, got `{word}`"))?;
    if !(number.is_finite() && number > 0.0) {
        bail!("{name} is {number}, expected a number above 0");
    }
    Ok(number)
}

fn bad_rows(word: &str) -> Result<BadRows> {
    match word {
        "fail" => Ok(BadRows::Error),
        "skip" => Ok(BadRows::Skip),
        _ => bail!("--on-bad-row wants `fail` or `skip`, got `{word}`"),
    }
}

/// `300,300,300`; `0` or nothing for a linear model.
fn units(word: &str) -> Result<Vec<usize>> {
    if word.is_empty() || word == "0" {
        return Ok(Vec::new());
    }
    let layers = word.split(',').map(|units| whole("--hidden", units.trim(), 1)).collect::<Result<Vec<_>>>()?;
    if layers.iter().any(|&units| units > 1 << 16) {
        bail!("--hidden is {word}, expected at most 65536 units a layer");
    }
    Ok(layers)
}
