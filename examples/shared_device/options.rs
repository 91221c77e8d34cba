use brisk_examples::command_line::value::{MAX_COUNT, device, list, positive, whole};
use brisk_examples::higgs;
use brisk_nn::tensor::program::Selection;
use clap::Parser;

/// Measures the throughput of several processes that share one device: 1, 2 and 4 of them train a small network and score rows at
/// the same time
#[derive(Debug, Clone, Parser)]
#[command(name = "shared_device", after_help = EXAMPLES)]
#[command(mut_arg("rows", |arg| arg.default_value("20000")), mut_arg("epochs", |arg| arg.default_value("2")))]
#[command(mut_arg("patience", |arg| arg.default_value("0")), mut_arg("hidden", |arg| arg.default_value("32,32")))]
#[command(mut_arg("runs", |arg| arg.hide(true)))]
pub(crate) struct Options {
    /// Numbers of processes to measure
    // With its full path the type is that of one value; clap reads a plain `Vec` as an option that takes several.
    #[arg(long, value_name = "A,B", help_heading = "Sharing", default_value = "1,2,4", allow_negative_numbers = true,
        value_parser = list(whole::<usize>(1..=64)))]
    pub(crate) processes: std::vec::Vec<usize>,
    /// MiB of memory that each process may hold on the device
    #[arg(long, value_name = "MIB", help_heading = "Sharing", default_value = "256", allow_negative_numbers = true,
        value_parser = positive(16_777_216.0))]
    memory_mb: f64,
    /// Device to share: best, cpu, gpu, software, or the name or index of an adapter
    #[arg(long, value_name = "DEVICE", help_heading = "Sharing", env = "BRISK_DEVICE", hide_env_values = true, default_value = "best",
        value_parser = device())]
    pub(crate) device: Selection,
    /// Times each number is measured; the median is shown
    #[arg(long, value_name = "N", help_heading = "Sharing", default_value = "3", allow_negative_numbers = true,
        value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) rounds: usize,
    /// Works as one of N processes; the program starts itself this way
    #[arg(long, value_name = "N", hide = true, value_parser = whole::<usize>(1..=64))]
    pub(crate) worker_of: Option<usize>,
    #[command(flatten)]
    pub(crate) run: higgs::Options,
}

const EXAMPLES: &str = "\
Rows per second are those of all processes together, from the start of the first to the end of the last; validation is part of training.

Examples:
  cargo run --release --example shared_device
  BRISK_DEVICE=gpu cargo run --release --example shared_device -- --processes 1,2,4,8 --memory-mb 512";

impl Options {
    /// Bytes that each process may hold on the device.
    pub(crate) fn memory_bytes(&self) -> usize {
        (self.memory_mb * f64::from(1 << 20)) as usize
    }
}
