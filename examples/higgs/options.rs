use brisk_examples::command_line::value;
use brisk_examples::higgs;
use brisk_examples::higgs::stopped::EXIT_STATUS;
use brisk_nn::tensor::program::Selection;
use clap::Parser;

/// Trains a network to tell collisions that produced a Higgs boson from those that did not
#[derive(Debug, Parser)]
#[command(name = "higgs", after_help = format!("{EXAMPLES}\n\n{EXIT_STATUS}"))]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: higgs::Options,
    #[command(flatten)]
    pub(crate) place: higgs::PlaceOptions,
    /// Where to train: best, cpu, gpu, software, or the name or index of an adapter
    #[arg(long, value_name = "DEVICE", help_heading = "Training", env = "BRISK_DEVICE", hide_env_values = true, default_value = "best",
        value_parser = value::device())]
    pub(crate) device: Selection,
}

const EXAMPLES: &str = "\
Examples:
  cargo run --release --example higgs                          simulated collisions, nothing to download
  cargo run --release --example higgs -- --train A --test B    your own files";
