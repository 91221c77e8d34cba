use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use brisk_examples::print;
use brisk_nn::tensor::Precision;
use brisk_program::Selection;

/// What `--help` prints, and the documentation of the options.
const HELP: &str = "\
Says which operation of a training step runs in which type, and what the step takes in memory: in f32, in mixed precision, by parts of the batch,
with checkpoints, without a tape.

    cargo run --release --example amp_report -- [OPTIONS]

    --model NAME       mlp or convnet                                            [convnet]
    --precision NAME   f32, f16 or bf16                                          [f16]
    --batch N          rows or images a step                                     [64]
    --device NAME      best, cpu, gpu, software, or an adapter's name or index   [BRISK_DEVICE, else best]
    --f16-accumulation lets products of f16 be added in f16, on devices that do so
    --json FILE        the same as one JSON object";

/// The command line, read.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) model: ModelName,
    pub(crate) precision: Precision,
    pub(crate) batch: usize,
    pub(crate) selection: Selection,
    pub(crate) f16_accumulation: bool,
    pub(crate) json: Option<PathBuf>,
}

/// Which model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl Options {
    /// Reads the command line; `None` if help was asked for and printed.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self {
            model: ModelName::Convnet,
            precision: Precision::F16,
            batch: 64,
            selection: Selection::from_env(),
            f16_accumulation: false,
            json: None,
        };
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            let mut value = || args.next().with_context(|| format!("{name} wants a value; see --help"));
            match name.as_str() {
                "--help" | "-h" => return print::result(HELP).map(|()| None),
                "--model" => options.model = model(&value()?)?,
                "--precision" => options.precision = value()?.parse()?,
                "--batch" => options.batch = whole(&value()?)?,
                "--device" => options.selection = value()?.parse().unwrap_or_default(),
                "--f16-accumulation" => options.f16_accumulation = true,
                "--json" => options.json = Some(PathBuf::from(value()?)),
                _ => bail!("unknown option `{name}`; see --help"),
            }
        }
        Ok(Some(options))
    }
}

fn model(word: &str) -> Result<ModelName> {
    match [ModelName::Mlp, ModelName::Convnet].into_iter().find(|model| model.name() == word) {
        Some(model) => Ok(model),
        None => bail!("--model wants mlp or convnet, got `{word}`"),
    }
}

fn whole(word: &str) -> Result<usize> {
    match word.parse() {
        Ok(n @ 1..=65_536) => Ok(n),
        _ => bail!("--batch wants a whole number from 1 to 65536, got `{word}`"),
    }
}
