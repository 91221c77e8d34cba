use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use brisk_program::{Device, Selection};

use crate::scaling::OwnLink;
use crate::{amp, kernels, loader, replicate};

pub(crate) const HELP: &str = "\
bench SUITE [OPTIONS]

higgs     training 28-256-256-256-1, f32, Adam, at batch 1024 and 8192, on a reproducible HIGGS-shaped table
loader    batches in order and shuffled, allocations and memory, import of CSV, opening, tables larger than memory, cold files
kernels   the twins and the WGSL of kernels against what bounds them, convolutions, what a replayed dispatch costs, Burn
amp       mixed precision beside f32: memory, time, and the test AUC and accuracy that training comes to
replicate all-reduce between threads against copies, between processes against MPI itself, and how much of it is hidden behind a backward pass
scaling   what a step takes on 1, 2 and 4 threads or processes, beside the prediction; with --simulate, predictions for up to 4096 ranks

  --peers        the same by others, turn by turn with ours (needs what cargo xtask bench sets: BRISK_PYTHON and, for kernels, BRISK_BURN;
                 for replicate and scaling, to be built with MPI)
  --smoke        everything once and small, to see that it runs
  --rows N       rows of the table                                  [higgs 200000, loader 1000000, kernels 20480]
  --rounds N     how often everything has its turn                  [5]
  --json FILE    the figures as a list of objects
  --device NAME  higgs, amp: where it trains                        [cpu]
                 kernels: the adapter, beside the cpu executor      [the first there is, hardware before software]
  --mb N         loader: megabytes of each text that is imported    [256]
  --only PART    may be given several times
                 loader: batches, memory, import, open, large or cold
                 kernels: twins, conv, replay, families or burn
                 amp: memory, speed or quality
                 replicate: threads, overlap or mpi
  --simulate     scaling: also predicts, for DDP and ZeRO 1 to 3, over typical links, the one between threads here, and the one that is given by
  --latency-us T and --gbit R, microseconds a message and 10^9 bits a second

The loader suite keeps its files in a temporary folder (TMPDIR), and says where: some 3 GB of them, and sparse files of 30 GB that take no room.

Benches of single crates: cargo bench -p brisk-loader | brisk-table | brisk-kernels | brisk-program";

/// A part of a suite, and what measures it.
pub(crate) type Part<M> = (&'static str, M);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    Higgs,
    Loader,
    Kernels,
    Amp,
    Replicate,
    Scaling,
}

impl Suite {
    /// The parts that `--only` may name.
    fn parts(self) -> Vec<&'static str> {
        match self {
            Self::Higgs | Self::Scaling => Vec::new(),
            Self::Loader => loader::PARTS.map(|(name, _)| name).into(),
            Self::Kernels => kernels::PARTS.map(|(name, _)| name).into(),
            Self::Amp => amp::PARTS.map(|(name, _)| name).into(),
            Self::Replicate => replicate::PARTS.map(|(name, _)| name).into(),
        }
    }
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
    /// Which device that is.
    pub(crate) selection: Selection,
    pub(crate) device: Device,
    /// The Python that has the peers, if they are wanted.
    pub(crate) peers: Option<PathBuf>,
    /// The program that is Burn's side, likewise.
    pub(crate) burn: Option<PathBuf>,
    /// Whether collectives between processes are measured too.
    pub(crate) with_mpi: bool,
    /// Whether more ranks are predicted for than there are.
    pub(crate) simulate: bool,
    /// Over which link, beside the typical ones.
    pub(crate) link: OwnLink,
    pub(crate) scale: Scale,
    pub(crate) n_rows: usize,
    pub(crate) n_rounds: usize,
    /// How long each text is that is imported, about.
    pub(crate) text_bytes: usize,
    /// The parts that are wanted; all, if none is named.
    only: Vec<String>,
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    /// Reads the command line; `None` if help is wanted.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let (mut suite, mut selection, mut peers, mut scale) = (None, None, false, Scale::Full);
        let (mut json, mut only) = (None, Vec::new());
        let (mut simulate, mut link) = (false, OwnLink::default());
        let (mut n_rows, mut n_rounds, mut mb) = (None, None, None);
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} wants a value; see --help"));
            match arg.as_str() {
                "--help" | "-h" => return Ok(None),
                "higgs" => suite = Some(Suite::Higgs),
                "loader" => suite = Some(Suite::Loader),
                "kernels" => suite = Some(Suite::Kernels),
                "amp" => suite = Some(Suite::Amp),
                "replicate" => suite = Some(Suite::Replicate),
                "scaling" => suite = Some(Suite::Scaling),
                "--device" => selection = Some(value()?.parse()?),
                "--peers" => peers = true,
                "--smoke" => scale = Scale::Smoke,
                "--rows" => n_rows = Some(count(&arg, &value()?)?),
                "--rounds" => n_rounds = Some(count(&arg, &value()?)?),
                "--mb" => mb = Some(count(&arg, &value()?)?),
                "--only" => only.push(value()?),
                "--simulate" => simulate = true,
                "--latency-us" => link.latency_us = Some(positive(&arg, &value()?)?),
                "--gbit" => link.gbit_per_s = Some(positive(&arg, &value()?)?),
                "--json" => json = Some(PathBuf::from(value()?)),
                other => bail!("no benchmark or option `{other}`; see --help"),
            }
        }
        let Some(suite) = suite else { return Ok(None) };
        let parts = suite.parts();
        if let Some(unknown) = only.iter().find(|part| !parts.contains(&part.as_str())) {
            bail!("--only wants one of {}, got `{unknown}`", parts.join(", "));
        }
        let default_rows = match (suite, scale) {
            (Suite::Kernels, Scale::Smoke) => 2048,
            (Suite::Kernels, Scale::Full) => 20_480,
            (_, Scale::Smoke) => 10_000,
            (Suite::Higgs | Suite::Amp | Suite::Replicate | Suite::Scaling, Scale::Full) => 200_000,
            (Suite::Loader, Scale::Full) => 1_000_000,
        };
        let (default_rounds, default_mb) = if scale == Scale::Smoke { (1, 1) } else { (5, 256) };
        let selection = selection.unwrap_or_else(|| default_device(suite));
        let mut options = Self {
            suite,
            device: Device::builder().selection(selection.clone()).open()?,
            selection,
            peers: None,
            burn: None,
            with_mpi: false,
            simulate,
            link,
            scale,
            n_rows: n_rows.unwrap_or(default_rows),
            n_rounds: n_rounds.unwrap_or(default_rounds),
            text_bytes: mb.unwrap_or(default_mb) << 20,
            only,
            json,
        };
        if peers && matches!(suite, Suite::Replicate | Suite::Scaling) {
            if cfg!(not(feature = "mpi")) {
                bail!("--peers wants this program built with MPI; `cargo xtask bench` does that");
            }
            return Ok(Some(Self { with_mpi: true, ..options }));
        }
        if peers && (suite != Suite::Kernels || options.wants("conv")) {
            options.peers = Some(named("BRISK_PYTHON", "a Python with the peers")?);
        }
        if peers && suite == Suite::Kernels && options.wants("burn") {
            options.burn = Some(named("BRISK_BURN", "the program of xtask/peers/burn")?);
        }
        Ok(Some(options))
    }

    /// Whether this part was asked for by its name.
    pub(crate) fn names(&self, part: &str) -> bool {
        self.only.iter().any(|wanted| wanted == part)
    }

    /// Whether this part is to be measured.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.names(part)
    }
}

/// Where the suite runs if nobody says so.
fn default_device(suite: Suite) -> Selection {
    if suite == Suite::Kernels && !Device::list().is_empty() { Selection::Index(0) } else { Selection::Cpu }
}

/// The path in a variable that `--peers` needs.
fn named(variable: &str, what: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.with_context(|| format!("--peers wants {variable} to name {what}; `cargo xtask bench` sets it"))
}

fn positive(name: &str, word: &str) -> Result<f64> {
    match word.parse() {
        Ok(x) if x > 0.0 && x < 1e9 => Ok(x),
        _ => bail!("{name} wants a number above 0 and below 10^9, got `{word}`"),
    }
}

fn count(name: &str, word: &str) -> Result<usize> {
    match word.parse() {
        Ok(n @ 1..=1_000_000_000) => Ok(n),
        _ => bail!("{name} wants a whole number from 1 to 10^9, got `{word}`"),
    }
}
