use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use brisk_program::{Device, Selection};

use crate::loader::Part;

pub(crate) const HELP: &str = "\
bench SUITE [OPTIONS]

higgs     training 28-256-256-256-1, f32, Adam, at batch 1024 and 8192, on a reproducible HIGGS-shaped table
loader    batches in order and shuffled, allocations and memory, import of CSV, opening, tables larger than memory, cold files

  --peers        the same by others, turn by turn with ours (needs BRISK_PYTHON, which cargo xtask bench sets)
  --smoke        everything once and small, to see that it runs
  --rows N       rows of the table                                  [higgs 200000, loader 1000000]
  --rounds N     how often everything has its turn                  [5]
  --json FILE    the figures as a list of objects
  --device NAME  higgs: where it trains                             [cpu]
  --mb N         loader: megabytes of each text that is imported    [256]
  --only PART    loader: batches, memory, import, open, large or cold; may be given several times

The loader suite keeps its files in a temporary folder (TMPDIR), and says where: some 3 GB of them, and sparse files of 30 GB that take no room.

Benches of single crates: cargo bench -p brisk-loader | brisk-table | brisk-kernels | brisk-program";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    Higgs,
    Loader,
}

/// How much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Full,
    /// As little as shows that it runs.
    Smoke,
}

/// The command line, read.
pub(crate) struct Options {
    pub(crate) suite: Suite,
    pub(crate) device: Device,
    /// The Python that has the peers, if they are wanted.
    pub(crate) peers: Option<PathBuf>,
    pub(crate) scale: Scale,
    pub(crate) n_rows: usize,
    pub(crate) n_rounds: usize,
    /// How long each text is that is imported, about.
    pub(crate) text_bytes: usize,
    /// The parts of the loader suite that are wanted; all, if none is named.
    pub(crate) parts: Vec<Part>,
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    /// Reads the command line; `None` if help is wanted.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let mut selection = Selection::Cpu;
        let (mut suite, mut peers, mut scale, mut json, mut parts) = (None, None, Scale::Full, None, Vec::new());
        let (mut n_rows, mut n_rounds, mut mb) = (None, None, None);
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} wants a value; see --help"));
            match arg.as_str() {
                "--help" | "-h" => return Ok(None),
                "higgs" => suite = Some(Suite::Higgs),
                "loader" => suite = Some(Suite::Loader),
                "--device" => selection = value()?.parse()?,
                "--peers" => peers = Some(python()?),
                "--smoke" => scale = Scale::Smoke,
                "--rows" => n_rows = Some(count(&arg, &value()?)?),
                "--rounds" => n_rounds = Some(count(&arg, &value()?)?),
                "--mb" => mb = Some(count(&arg, &value()?)?),
                "--only" => parts.push(value()?.parse()?),
                "--json" => json = Some(PathBuf::from(value()?)),
                other => bail!("no benchmark or option `{other}`; see --help"),
            }
        }
        let Some(suite) = suite else { return Ok(None) };
        let default_rows = match (suite, scale) {
            (_, Scale::Smoke) => 10_000,
            (Suite::Higgs, Scale::Full) => 200_000,
            (Suite::Loader, Scale::Full) => 1_000_000,
        };
        let (default_rounds, default_mb) = if scale == Scale::Smoke { (1, 1) } else { (5, 256) };
        Ok(Some(Self {
            suite,
            device: Device::builder().selection(selection).open()?,
            peers,
            scale,
            n_rows: n_rows.unwrap_or(default_rows),
            n_rounds: n_rounds.unwrap_or(default_rounds),
            text_bytes: mb.unwrap_or(default_mb) << 20,
            parts,
            json,
        }))
    }
}

fn python() -> Result<PathBuf> {
    let named = std::env::var_os("BRISK_PYTHON").map(PathBuf::from);
    named.context("--peers wants BRISK_PYTHON to name a Python with the peers; `cargo xtask bench` sets it")
}

fn count(name: &str, word: &str) -> Result<usize> {
    match word.parse() {
        Ok(n @ 1..=1_000_000_000) => Ok(n),
        _ => bail!("{name} wants a whole number from 1 to 10^9, got `{word}`"),
    }
}
