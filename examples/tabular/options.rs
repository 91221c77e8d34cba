use std::path::PathBuf;

use brisk_examples::command_line::DeviceOption;
use brisk_examples::command_line::value::{MAX_COUNT, list, one_of, positive, precision, whole};
use brisk_examples::tabular::TextArguments;
use brisk_loader::Rows;
use brisk_nn::tensor::Precision;
use brisk_tabular::{Network, Scaling, TargetKind};
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

    /// Network: mlp; resnet, a residual network; tabm, an ensemble of networks that share most layers, which takes minutes
    #[arg(long, value_name = "KIND", help_heading = "Training", default_value = "mlp", value_parser = one_of([
        ("mlp", Network::Mlp { hidden: Vec::new() }),
        ("resnet", Network::ResidualMlp { width: 128, hidden: 256, n_blocks: 2 }),
        ("tabm", Network::TabM { n_members: 32, hidden: Vec::new(), dropout: 0.1, embedding_dim: 16, edges: Vec::new() })]))]
    pub(crate) model: Network,
    /// Units of each hidden layer of an mlp or a tabm [default: 256,128; of a tabm 512,512]
    #[arg(long, value_name = "A,B", help_heading = "Training", value_parser = list(whole::<usize>(1..=1 << 16)))]
    pub(crate) hidden: Option<std::vec::Vec<usize>>,
    /// Members of a tabm [default: 32]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = whole::<usize>(1..=1024))]
    pub(crate) members: Option<usize>,
    /// Maximum number of epochs; early stopping ends most runs sooner
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "100", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) epochs: usize,
    /// Rows per batch [default: a 400th of the training rows, from 32 to 1024; of a tabm a 64th, from 32 to 256]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) batch: Option<usize>,
    /// Epochs without a better validation score after which the run ends [default: 10; of a tabm 16]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) patience: Option<usize>,
    /// Learning rate of AdamW [default: 0.001; of a tabm 0.002]
    #[arg(long, value_name = "RATE", help_heading = "Training", value_parser = positive(f64::MAX))]
    pub(crate) lr: Option<f64>,
    /// Weight decay of AdamW [default: 0.01; of a tabm 0.0003]
    #[arg(long, value_name = "RATE", help_heading = "Training", value_parser = positive(1e6))]
    pub(crate) weight_decay: Option<f64>,
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
    /// The network, with the sizes of its layers, for these preprocessed training rows.
    pub(crate) fn network(&self, rows: &Rows) -> Network {
        match self.model.clone() {
            Network::Mlp { .. } => Network::Mlp { hidden: self.hidden.clone().unwrap_or(vec![256, 128]) },
            Network::TabM { n_members, dropout, embedding_dim, .. } => Network::TabM {
                n_members: self.members.unwrap_or(n_members),
                hidden: self.hidden.clone().unwrap_or(vec![512, 512]),
                dropout,
                embedding_dim,
                edges: Network::quantile_edges(rows, N_BINS),
            },
            residual => residual,
        }
    }

    fn is_tabm(&self) -> bool {
        matches!(self.model, Network::TabM { .. })
    }

    /// The rows of a batch, for `n_rows` training rows.
    pub(crate) fn batch_rows(&self, n_rows: usize) -> usize {
        let (share, most) = if self.is_tabm() { (64, 256) } else { (400, 1024) };
        self.batch.unwrap_or_else(|| (n_rows / share).next_power_of_two().clamp(32, most).min(n_rows.max(1)))
    }

    pub(crate) fn patience(&self) -> usize {
        self.patience.unwrap_or(if self.is_tabm() { 16 } else { 10 })
    }

    pub(crate) fn lr(&self) -> f64 {
        self.lr.unwrap_or(if self.is_tabm() { 0.002 } else { 0.001 })
    }

    pub(crate) fn weight_decay(&self) -> f32 {
        self.weight_decay.unwrap_or(if self.is_tabm() { 0.0003 } else { 0.01 }) as f32
    }
}

/// Bins of the piecewise-linear embeddings of a tabm.
const N_BINS: usize = 48;

const EXAMPLES: &str = "\
Columns are numbers, categories (text, and numbers with leading zeros) or dates of ISO 8601, which become year, month, weekday, hour (of times) and days. Other dates and
identifiers are left out with a warning; numbers among which there is other text are an error. The model folder keeps all that predict needs.

Examples:
  cargo run --release --example tabular -- houses.csv --target price
  cargo run --release --example predict -- target/tabular/model new_houses.csv --out prices.csv";
