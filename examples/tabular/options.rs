use std::path::PathBuf;

use brisk_examples::command_line::DeviceOption;
use brisk_examples::command_line::value::{MAX_COUNT, list, one_of, positive, precision, whole};
use brisk_examples::tabular::TextArguments;
use brisk_nn::tensor::Precision;
use brisk_train::tabular::{Network, Scaling, TargetKind};
use clap::Parser;

/// Trains a network on a table and writes a folder from which `predict` makes predictions
#[derive(Debug, Parser)]
#[command(name = "tabular", after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Table to train on: CSV, TSV, Parquet and other formats, plain or compressed, or a brisk table (.safetensors)
    pub(crate) data: PathBuf,
    /// Column to predict, by name or by index from 0 [default: one called target, label, class or y, else the last; of a brisk table its label]
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    pub(crate) target: Option<String>,
    /// What the target is [default: classes if it is text, or if it has few different whole numbers, else number]
    #[arg(long, value_name = "KIND", help_heading = "Data", value_parser = one_of([
        ("binary", TargetKind::Binary), ("classes", TargetKind::Classes), ("number", TargetKind::Number)]))]
    pub(crate) task: Option<TargetKind>,
    /// Columns to leave out, by name or by index
    #[arg(long, value_name = "A,B", help_heading = "Data", value_parser = list(|word| Ok(word.to_owned())))]
    pub(crate) drop: Option<std::vec::Vec<String>>,
    /// Columns whose values are categories, whatever they look like: codes, dates, identifiers
    #[arg(long, value_name = "A,B", help_heading = "Data", value_parser = list(|word| Ok(word.to_owned())))]
    pub(crate) categorical: Option<std::vec::Vec<String>>,
    /// Keep the index of a data frame as a column
    #[arg(long, help_heading = "Data")]
    pub(crate) keep_index: bool,
    #[command(flatten)]
    pub(crate) text: TextArguments,
    /// How columns of numbers are scaled: standard (mean 0, deviation 1) or quantile (normal distribution by ranks)
    #[arg(long, value_name = "HOW", help_heading = "Data", default_value = "standard",
        value_parser = one_of([("standard", Scaling::Standard), ("quantile", Scaling::Quantile)]))]
    pub(crate) scaling: Scaling,

    /// Network: mlp, or resnet, a residual network
    #[arg(long, value_name = "KIND", help_heading = "Training", default_value = "mlp", value_parser = one_of([
        ("mlp", Network::Mlp { hidden: Vec::new() }),
        ("resnet", Network::ResidualMlp { width: 128, hidden: 256, n_blocks: 2 })]))]
    pub(crate) model: Network,
    /// Units of each hidden layer of an mlp
    #[arg(long, value_name = "A,B", help_heading = "Training", default_value = "256,128",
        value_parser = list(whole::<usize>(1..=1 << 16)))]
    pub(crate) hidden: std::vec::Vec<usize>,
    /// Maximum number of epochs; early stopping ends most runs sooner
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "100", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) epochs: usize,
    /// Rows per batch [default: a 400th of the training rows, from 32 to 1024]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) batch: Option<usize>,
    /// Epochs without a better validation score after which the run ends
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "10", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) patience: usize,
    /// Learning rate of AdamW
    #[arg(long, value_name = "RATE", help_heading = "Training", default_value = "0.001", value_parser = positive(f64::MAX))]
    pub(crate) lr: f64,
    /// Weight decay of AdamW
    #[arg(long, value_name = "RATE", help_heading = "Training", default_value = "0.01", value_parser = positive(1e6))]
    pub(crate) weight_decay: f64,
    /// Seed of the initial weights, the order of rows and the split into 70 % training, 10 % validation and 20 % test rows
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "0", value_parser = whole::<u64>(0..=MAX_COUNT))]
    pub(crate) seed: u64,
    /// Precision of matrix products; parameters are f32 in each
    #[arg(long, value_name = "TYPE", help_heading = "Running", default_value = "f32", value_parser = precision())]
    pub(crate) precision: Precision,
    #[command(flatten)]
    pub(crate) device: DeviceOption,

    /// Folder to write the model to
    #[arg(long, value_name = "DIR", help_heading = "Results", default_value = "target/tabular/model")]
    pub(crate) out: PathBuf,
    /// Write the preprocessed rows to DIR, too: train.safetensors, valid.safetensors and test.safetensors
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub(crate) save_rows: Option<PathBuf>,
    /// Write the results to FILE as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    /// The network, with the sizes of its layers.
    pub(crate) fn network(&self) -> Network {
        match &self.model {
            Network::Mlp { .. } => Network::Mlp { hidden: self.hidden.clone() },
            residual => residual.clone(),
        }
    }

    /// The rows of a batch, for `n_rows` training rows.
    pub(crate) fn batch_rows(&self, n_rows: usize) -> usize {
        self.batch.unwrap_or_else(|| (n_rows / 400).next_power_of_two().clamp(32, 1024).min(n_rows.max(1)))
    }
}

const EXAMPLES: &str = "\
Columns are numbers, categories (text, and numbers with leading zeros) or dates of ISO 8601, which become year, month, weekday, hour (of times) and days. Other dates and
identifiers are left out with a warning; numbers among which there is other text are an error. The model folder keeps all that predict needs.

Examples:
  cargo run --release --example tabular -- houses.csv --target price
  cargo run --release --example predict -- target/tabular/model new_houses.csv --out prices.csv";
