use anyhow::{Context, Result};
use brisk_examples::{higgs, print};

/// What `--help` prints, and the documentation of the options.
fn help() -> String {
    let (data, training, results) = (higgs::DATA_HELP, higgs::TRAINING_HELP, higgs::RESULTS_HELP);
    format!(
        "\
Trains a network to tell collisions that made a Higgs boson from those that did not.

    cargo run --release --example higgs                          simulated collisions, nothing to fetch
    cargo run --release --example higgs -- --train A --test B    your own files

Data
{data}

Training
    --device NAME    best, cpu, gpu, software, or an adapter's name or index      [BRISK_DEVICE, else best]
{training}

Results
{results}"
    )
}

/// The command line, read.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) device: Option<String>,
    pub(crate) run: higgs::Options,
}

impl Options {
    /// Reads the command line; `None` if help was asked for and printed.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let (mut device, mut run) = (None, higgs::Options::default());
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            let mut value = || args.next().with_context(|| format!("{name} wants a value; see --help"));
            match name.as_str() {
                "--help" | "-h" => return print::result(help()).map(|()| None),
                "--device" => device = Some(value()?),
                _ => run.take(&name, value)?,
            }
        }
        Ok(Some(Self { device, run: run.finish()? }))
    }
}
