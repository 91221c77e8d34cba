use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use brisk_nn::tensor::Precision;
use brisk_table::BadRows;

use brisk_examples::print;

/// What `--help` prints, and the documentation of the options.
const HELP: &str = "\
Trains a network to tell collisions that made a Higgs boson from those that did not.

    cargo run --release --example higgs                          simulated collisions, nothing to fetch
    cargo run --release --example higgs -- --train A --test B    your own files

Data
    --train FILE     rows to train on: CSV or TSV, plain or .gz, or a brisk table (.safetensors)
    --test FILE      rows to test on, of the same columns
    --label COLUMN   the column to predict, 0 or 1, by name or by index from 0     [the first]
    --on-bad-row W   fail, or skip and count rows that cannot be read               [fail]
    --rows N         simulated rows to train on; a fifth as many to test on        [100000]

Training
    --device NAME    best, cpu, gpu, software, or an adapter's name or index      [BRISK_DEVICE, else best]
    --precision P    of products: f32, f16 or bf16; parameters are f32 in any       [f32]
    --batch N        rows a batch                                                  [256]
    --accumulate N   batches a step, by the mean of their gradients                [1]
    --clip X         norm above which gradients are scaled down                    [none]
    --epochs N       the most epochs; early stopping ends most runs before         [30]
    --patience N     epochs without a better validation AUC that end the run       [5]
    --hidden A,B,C   units of the hidden layers                                    [300,300,300]
    --lr X           Adam's learning rate                                          [0.001]
    --seed N         of weights, order of rows, split and simulation               [0]

Results
    --runs DIR       where the run's folder is made                                [runs]
    --data-dir DIR   where simulated and imported tables are kept                  [target/higgs]
    --json FILE      the results as one JSON object";

/// The command line, read.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) files: Option<(PathBuf, PathBuf)>,
    pub(crate) label: Option<String>,
    pub(crate) bad_rows: BadRows,
    pub(crate) rows: u64,
    pub(crate) device: Option<String>,
    pub(crate) precision: Precision,
    pub(crate) batch: usize,
    pub(crate) accumulate: usize,
    pub(crate) clip: Option<f32>,
    pub(crate) epochs: usize,
    pub(crate) patience: usize,
    pub(crate) hidden: Vec<usize>,
    pub(crate) lr: f64,
    pub(crate) seed: u64,
    pub(crate) runs: PathBuf,
    pub(crate) data_dir: PathBuf,
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    /// Reads the command line; `None` if help was asked for and printed.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self {
            files: None,
            label: None,
            bad_rows: BadRows::Error,
            rows: 100_000,
            device: None,
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
        };
        let (mut train, mut test) = (None, None);
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            if name == "--help" || name == "-h" {
                return print::result(HELP).map(|()| None);
            }
            let mut value = || args.next().with_context(|| format!("{name} wants a value; see --help"));
            match name.as_str() {
                "--train" => train = Some(PathBuf::from(value()?)),
                "--test" => test = Some(PathBuf::from(value()?)),
                "--label" => options.label = Some(value()?),
                "--on-bad-row" => options.bad_rows = bad_rows(&value()?)?,
                "--rows" => options.rows = whole(&name, &value()?, 100)? as u64,
                "--device" => options.device = Some(value()?),
                "--precision" => options.precision = value()?.parse()?,
                "--batch" => options.batch = whole(&name, &value()?, 1)?,
                "--accumulate" => options.accumulate = whole(&name, &value()?, 1)?,
                "--clip" => options.clip = Some(positive(&name, &value()?)? as f32),
                "--epochs" => options.epochs = whole(&name, &value()?, 1)?,
                "--patience" => options.patience = whole(&name, &value()?, 0)?,
                "--hidden" => options.hidden = units(&value()?)?,
                "--lr" => options.lr = positive(&name, &value()?)?,
                "--seed" => options.seed = whole(&name, &value()?, 0)? as u64,
                "--runs" => options.runs = PathBuf::from(value()?),
                "--data-dir" => options.data_dir = PathBuf::from(value()?),
                "--json" => options.json = Some(PathBuf::from(value()?)),
                _ => bail!("unknown option `{name}`; see --help"),
            }
        }
        options.files = match (train, test) {
            (Some(train), Some(test)) => Some((train, test)),
            (None, None) => None,
            _ => bail!("--train and --test go together; give both, or neither for simulated collisions"),
        };
        Ok(Some(options))
    }

    /// Whether the results can be written where they were asked for, as far as can be told before there are any.
    pub(crate) fn check_json(&self) -> Result<()> {
        let Some(path) = &self.json else { return Ok(()) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() || path.is_dir() {
            bail!("{}: --json wants a file in a folder that is there", path.display());
        }
        Ok(())
    }
}

fn whole(name: &str, word: &str, least: usize) -> Result<usize> {
    let number: usize = word.parse().ok().with_context(|| format!("{name} wants a whole number, got `{word}`"))?;
    if number < least || number > 1 << 40 {
        bail!("{name} is {number}, expected {least} to 2^40");
    }
    Ok(number)
}

fn positive(name: &str, word: &str) -> Result<f64> {
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
