use std::path::PathBuf;

use brisk_examples::command_line::{DeviceOption, ServerOption};
use brisk_examples::tabular::TextArguments;
use clap::Parser;

/// Predicts the targets of rows with a model that `tabular` has trained, or with several
#[derive(Debug, Parser)]
#[command(name = "predict", after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Folder of the model, or of the models of several targets
    pub(crate) model: PathBuf,
    /// Rows to predict, of any format, or the URL of a file of them, with the columns of the training table; others are left out,
    /// and a target is not needed
    pub(crate) data: PathBuf,
    /// File to write: .csv, .parquet (with the feature all-formats) or a brisk table, .safetensors
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) out: PathBuf,
    /// Column of the rows, such as an identifier, that is written before the predictions as it is in their file; may be repeated
    #[arg(long, value_name = "COLUMN", help_heading = "Results")]
    pub(crate) keep: Vec<String>,
    /// For a CSV that a spreadsheet opens: put a ' before names that start with =, +, - or @, which it would run as formulas
    #[arg(long, help_heading = "Results")]
    pub(crate) spreadsheet: bool,
    /// Write the results to FILE as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) text: TextArguments,
    #[command(flatten)]
    pub(crate) device: DeviceOption,
    #[command(flatten)]
    pub(crate) server: ServerOption,
}

const EXAMPLES: &str = "\
Columns are found by their names and read as in training. Values of categories that did not occur there count as missing and are reported.

Examples:
  cargo run --release --example predict -- target/tabular/model new_houses.csv --out prices.csv --keep id";
