use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser;

/// Trains a candle network of 28-256-256-256-1 on rows that brisk-table stores and brisk-loader shuffles, and compares ways to
/// feed it
#[derive(Parser)]
#[command(name = "with_candle", args_override_self = true)]
pub(crate) struct Options {
    /// Rows to learn from: CSV or TSV, plain or .gz, with the label, 0 or 1, in the first column [default: simulated collisions]
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Number of simulated rows
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rows: u64,
    /// Number of epochs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) epochs: u32,
    /// Rows per step
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) batch: usize,
    /// Learning rate of Adam
    #[arg(long, value_name = "RATE", default_value_t = 1e-3)]
    pub(crate) lr: f64,
    /// Seed of the simulation, the split and the order of rows; candle's weights cannot be seeded on the CPU
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Folder for tables, which later runs use again
    #[arg(long, value_name = "DIR", default_value = "target/with_candle-data")]
    pub(crate) data_dir: PathBuf,
    /// Write the results to FILE as one JSON object
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Use 5000 rows, one epoch and batches of 256, to see that it runs
    #[arg(long)]
    smoke: bool,
}

impl Options {
    /// Reads the command line; ends the process if help is requested or the options are invalid.
    pub(crate) fn from_command_line() -> Self {
        let options = Self::parse();
        if options.smoke { Self { rows: 5_000, epochs: 1, batch: 256, ..options } } else { options }
    }
}
