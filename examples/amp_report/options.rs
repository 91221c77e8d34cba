use std::path::PathBuf;

use brisk_examples::command_line::{DeviceOption, value};
use brisk_nn::tensor::Precision;
use clap::{Parser, ValueEnum};

/// Reports the type in which each operation of a training step runs, and the memory of the step: in f32, in mixed precision, with
/// accumulated gradients, with activation checkpoints, and for inference
#[derive(Debug, Parser)]
#[command(name = "amp_report", after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Network whose training step is recorded
    #[arg(long, value_name = "NAME", help_heading = "Training", value_enum, default_value_t = ModelName::Convnet)]
    pub(crate) model: ModelName,
    /// Precision to compare with f32
    #[arg(long, value_name = "TYPE", help_heading = "Training", default_value = "f16", value_parser = value::precision())]
    pub(crate) precision: Precision,
    /// Rows or images per step
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "64", allow_negative_numbers = true,
        value_parser = value::whole::<usize>(1..=65_536))]
    pub(crate) batch: usize,
    #[command(flatten)]
    pub(crate) device: DeviceOption,
    /// Allow sums of f16 products to be kept in f16, on devices that support it
    #[arg(long, help_heading = "Training")]
    pub(crate) f16_accumulation: bool,
    /// Write the report to FILE as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) json: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  cargo run --release --example amp_report
  cargo run --release --example amp_report -- --model mlp --precision bf16";

/// The networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelName {
    Mlp,
    Convnet,
}

impl ModelName {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mlp => "mlp",
            Self::Convnet => "convnet",
        }
    }
}
