use brisk_examples::command_line::DeviceOption;
use brisk_examples::higgs;
use brisk_examples::higgs::stopped::EXIT_STATUS;
use clap::Parser;

/// Trains a network to tell collisions that produced a Higgs boson from those that did not
#[derive(Debug, Parser)]
#[command(name = "higgs", after_help = format!("{EXAMPLES}\n\n{EXIT_STATUS}"))]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: higgs::Options,
    #[command(flatten)]
    pub(crate) place: higgs::PlaceOptions,
    #[command(flatten)]
    pub(crate) device: DeviceOption,
}

const EXAMPLES: &str = "\
Examples:
  cargo run --release --example higgs                          simulated collisions, nothing to download
  cargo run --release --example higgs -- --train A --test B    your own files";
