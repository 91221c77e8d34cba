use std::path::PathBuf;

use anyhow::{Context, Result, bail};

pub(crate) const HELP: &str = "\
Trains a candle network of 28-256-256-256-1 on rows that brisk-table stores and brisk-loader shuffles, and compares ways to feed it.

    --csv FILE      rows to learn from: CSV or TSV, plain or .gz, the label (0 or 1) first    [simulated collisions]
    --rows N        simulated rows                                                            [200000]
    --epochs N                                                                                [3]
    --batch N       rows a step                                                               [1024]
    --lr X          Adam's learning rate                                                      [0.001]
    --seed N        of simulation, split and order of rows; candle's weights have none        [0]
    --data-dir DIR  where tables are kept                                                     [target/with_candle-data]
    --json FILE     the results as one JSON object
    --smoke         5000 rows and one epoch, to see that it runs";

/// The command line, read.
pub(crate) struct Options {
    pub(crate) csv: Option<PathBuf>,
    pub(crate) rows: u64,
    pub(crate) epochs: u32,
    pub(crate) batch: usize,
    pub(crate) lr: f64,
    pub(crate) seed: u64,
    pub(crate) data_dir: PathBuf,
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    /// Reads the command line; `None` if help is wanted.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self {
            csv: None,
            rows: 200_000,
            epochs: 3,
            batch: 1024,
            lr: 1e-3,
            seed: 0,
            data_dir: PathBuf::from("target/with_candle-data"),
            json: None,
        };
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            let mut value = || args.next().with_context(|| format!("{name} wants a value; see --help"));
            match name.as_str() {
                "--help" | "-h" => return Ok(None),
                "--csv" => options.csv = Some(PathBuf::from(value()?)),
                "--rows" => options.rows = number(&name, &value()?)?,
                "--epochs" => options.epochs = number(&name, &value()?)?,
                "--batch" => options.batch = number(&name, &value()?)?,
                "--lr" => options.lr = number(&name, &value()?)?,
                "--seed" => options.seed = number(&name, &value()?)?,
                "--data-dir" => options.data_dir = PathBuf::from(value()?),
                "--json" => options.json = Some(PathBuf::from(value()?)),
                "--smoke" => (options.rows, options.epochs, options.batch) = (5_000, 1, 256),
                _ => bail!("unknown option `{name}`; see --help"),
            }
        }
        if options.rows == 0 || options.epochs == 0 || options.batch == 0 {
            bail!("--rows, --epochs and --batch want at least 1");
        }
        Ok(Some(options))
    }
}

fn number<T: std::str::FromStr>(name: &str, word: &str) -> Result<T> {
    word.parse().ok().with_context(|| format!("{name} wants a number, got `{word}`"))
}
