//! The command line of the benchmarks, and what `cargo xtask bench` has to provide for it.

use std::fmt;
use std::path::PathBuf;

use brisk_tensor::Precision;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measures brisk, and prints its figures, those of the reference, and their ratio
///
/// `cargo xtask bench SUITE` builds this program for release and runs it. The crates table, loader, kernels, program and train
/// also have benches of their own: `cargo bench -p brisk-table`.
///
/// A reference is a hardware limit such as a copy in memory or, with --peers, another library in the same run. Python libraries
/// are imported by the Python that BRISK_PYTHON names, or else by the one in target/peers-venv. Burn is measured by the program
/// that BRISK_BURN names, or else by benches/peers/burn, which is built in target/burn-peer and takes about forty minutes of one
/// core the first time. For replicate and scaling, the peer is MPI.
#[derive(Debug, Parser)]
#[command(name = "bench", bin_name = "cargo xtask bench", subcommand_value_name = "SUITE", subcommand_help_heading = "Suites")]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) suite: Suite,
    /// Makes target/peers-venv (several GB to download) or installs Open MPI without asking; implied if the variable CI is set
    #[arg(long, global = true)]
    yes: bool,
}

/// The first argument of the call that prints what the other arguments need, one thing a line, which xtask reads.
pub(crate) const NEEDS: &str = "--needs";

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(packages) = self.suite.python_packages() {
            writeln!(f, "python {packages}")?;
        }
        let others = [("burn", self.suite.needs_burn()), ("mpi", self.suite.needs_mpi()), ("yes", self.yes)];
        others.iter().filter(|(_, is_needed)| *is_needed).try_for_each(|(need, _)| writeln!(f, "{need}"))
    }
}

/// What is measured.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Suite {
    /// Training of a 28-256-256-256-1 network in f32 with Adam, at batch sizes 1024 and 8192
    Higgs(Higgs),
    /// Mixed precision compared with f32: memory, time, and the test AUC and accuracy after training
    Amp(Amp),
    /// All-reduce between threads compared with copies, between processes compared with MPI itself, and its overlap with a
    /// backward pass
    Replicate(Replicate),
    /// The time of a training step on 1, 2 and 4 threads or processes, compared with the predicted time
    Scaling(Scaling),
    /// Training on photos, from decoding them one by one to decoding them once, augmentation on the device, mixed precision and
    /// early stopping
    ///
    /// The photos, about 60 MB, are drawn in a temporary folder (TMPDIR).
    Speedups(Speedups),
    /// Training compared with replays of the training step, and saving a checkpoint of 1 GB compared with a plain write
    ///
    /// The checkpoint is written to a temporary folder (TMPDIR), which needs 3 GB.
    Overhead(Overhead),
    /// Batches in order and shuffled, memory, CSV import, opening, tables larger than memory, cold files
    ///
    /// Files are kept in a temporary folder (TMPDIR), whose name is printed: about 3 GB, and sparse files of 30 GB that take no
    /// space on disk.
    Loader(Loader),
    /// The WGSL and the plain-Rust twins of kernels compared with hardware limits and PyTorch, the cost of a replayed dispatch,
    /// convolutions, Burn
    Kernels(Kernels),
    /// The CIFAR-10 recipes: training speed and first losses compared with PyTorch, augmentation with torchvision, and the ladder
    /// of tricks
    Cifar10(Cifar10),
    /// Models of tables at each effort, compared with gradient boosting: the test metric, time and peak memory
    ///
    /// The tables are those of the folder that BRISK_DATA names, and the one of --file.
    Tabular(Tabular),
}

/// The options of every suite.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// How many times each measurement is repeated [default: 5; with --smoke 1]
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) rounds: Option<usize>,
    /// Runs everything once on little data, to check that it works
    #[arg(long)]
    pub(crate) smoke: bool,
    /// Also writes the figures to FILE, as a JSON array of objects
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Options of the suite `higgs`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Higgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The device to train on: cpu, gpu, software, or the name or index of an adapter
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(crate) device: String,
    /// Rows of the table [default: 200000; with --smoke 10000]
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) rows: Option<usize>,
    /// Measures PyTorch in the same run, with the Python that BRISK_PYTHON names
    #[arg(long)]
    pub(crate) peers: bool,
}

/// Options of the suite `amp`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Amp {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The device to train on: cpu, gpu, software, or the name or index of an adapter
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(crate) device: String,
    /// Measures only this part; can be given several times
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<AmpPart>,
    /// Prints the time of each kernel of a training step, instead of comparing
    #[arg(long, conflicts_with_all = ["only", "peers", "json", "rounds"])]
    pub(crate) profile: bool,
    /// Measures training in PyTorch in the same run, with the Python that BRISK_PYTHON names
    #[arg(long)]
    pub(crate) peers: bool,
}

/// A part of the suite `amp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AmpPart {
    /// Planned memory of training and of inference
    Memory,
    /// Rows per second of training and of inference
    Speed,
    /// Metrics on test data after training
    Quality,
}

/// Options of the suite `replicate`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Replicate {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Measures only this part; can be given several times
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<ReplicatePart>,
    /// Measures processes and MPI's own all-reduce too; the program must be built with the feature `mpi`
    #[arg(long)]
    pub(crate) peers: bool,
}

/// A part of the suite `replicate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplicatePart {
    /// All-reduce between threads
    Threads,
    /// How much of the all-reduce is hidden behind a backward pass
    Overlap,
    /// All-reduce between processes; needs --peers
    Mpi,
}

/// Options of the suite `scaling`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Scaling {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The device to train on: cpu, gpu, software, or the name or index of an adapter
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(crate) device: String,
    /// Measures processes too; the program must be built with the feature `mpi`
    #[arg(long)]
    pub(crate) peers: bool,
    /// Also predicts the efficiency of DDP and ZeRO 1 to 3 on up to 4096 ranks, over typical links and the link between threads
    /// here, and the time in which they read a table on a server, compared with that of processes and a server here
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Also trains on a table of this size, in shards on a server here, by four processes of 256 MiB, which takes 13 s and a
    /// gigabyte of space in a temporary folder (TMPDIR) a gigabyte
    #[arg(long, value_name = "GB", value_parser = positive, requires = "peers")]
    pub(crate) table_gb: Option<f64>,
    /// Latency of one more link to predict for, in microseconds per message
    #[arg(long, value_name = "US", value_parser = positive, requires_all = ["simulate", "gbit"])]
    pub(crate) latency_us: Option<f64>,
    /// Bandwidth of that link, in 10^9 bits per second
    #[arg(long, value_name = "GBIT", value_parser = positive, requires_all = ["simulate", "latency_us"])]
    pub(crate) gbit: Option<f64>,
}

/// Options of the suite `speedups`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Speedups {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The device to train on: cpu, gpu, software, or the name or index of an adapter
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(crate) device: String,
    /// Photos, of which a fifth are for validation [default: 4000; with --smoke 100]
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) images: Option<usize>,
    /// Measures PyTorch and torchvision in the same run, with the Python that BRISK_PYTHON names
    #[arg(long)]
    pub(crate) peers: bool,
}

/// Options of the suite `overhead`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Overhead {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The device to train on: cpu, gpu, software, or the name or index of an adapter
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(crate) device: String,
    /// Rows of the table [default: 200000; with --smoke 10000]
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) rows: Option<usize>,
}

/// Options of the suite `loader`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Loader {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Rows of the table [default: 1000000; with --smoke 10000]
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) rows: Option<usize>,
    /// Size of each imported text file, in MiB [default: 256; with --smoke 1]
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) mb: Option<usize>,
    /// Measures only this part; can be given several times
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<LoaderPart>,
    /// Measures PyTorch, pandas, pyarrow and polars in the same run, with the Python that BRISK_PYTHON names
    #[arg(long)]
    pub(crate) peers: bool,
}

/// A part of the suite `loader`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoaderPart {
    /// Batches in order and shuffled, from memory and from a mapped table
    Batches,
    /// Allocations and memory of an epoch
    Memory,
    /// Import of CSV
    Import,
    /// Opening tables
    Open,
    /// An epoch over a table larger than memory
    Large,
    /// Reading files that are not in the page cache (Linux)
    Cold,
}

/// Options of the suite `kernels`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Kernels {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The adapter to measure, in addition to the CPU executor [default: the first adapter, hardware before software]
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// Rows of the table that networks are trained on [default: 20480; with --smoke 2048]
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) rows: Option<usize>,
    /// Measures only this part; can be given several times
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<KernelsPart>,
    /// Measures PyTorch's elementwise functions, convolutions and convolutional network, with the Python that BRISK_PYTHON names,
    /// and Burn, with the program that BRISK_BURN names, in the same run
    #[arg(long)]
    pub(crate) peers: bool,
}

/// A part of the suite `kernels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelsPart {
    /// The plain-Rust twins
    Twins,
    /// Elementwise functions, softmax and layer norm on the CPU executor
    Elementwise,
    /// Convolutions on the CPU executor
    Conv,
    /// A training step of a small convolutional network on the CPU executor
    Convnet,
    /// The cost of a replayed dispatch on the adapter
    Replay,
    /// The families of matrix product on the adapter
    Families,
    /// A matrix product and training compared with Burn on the adapter
    Burn,
}

/// Options of the suite `cifar10`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Cifar10 {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The device to train on: cpu, gpu, software, or the name or index of an adapter
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(crate) device: String,
    /// Measures only this part; can be given several times
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<Cifar10Part>,
    /// Folder or archive with the binary version of CIFAR-10, for the ladder; without it the ladder is left out
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<PathBuf>,
    /// Runs of each rung of the ladder, with seeds that count up
    #[arg(long, value_name = "N", value_parser = count(), default_value_t = 3)]
    pub(crate) runs: usize,
    /// The test accuracy to which the ladder takes the time [default: 0.75, with --full 0.94]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) target_accuracy: Option<f64>,
    /// The precision of products, in training that is timed and in the ladder
    #[arg(long, value_enum, value_name = "NAME", default_value_t = ProductPrecision::F32)]
    pub(crate) precision: ProductPrecision,
    /// Measures networks at their full width too, on a GPU with the recipe's batch size, and trains the ladder at full width on
    /// all images in the article's epochs, for which a CPU takes days
    #[arg(long)]
    pub(crate) full: bool,
    /// Measures PyTorch and torchvision in the same run, with the Python that BRISK_PYTHON names
    #[arg(long)]
    pub(crate) peers: bool,
}

/// Options of the suite `tabular`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Tabular {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The device to train on: cpu, gpu, software, or the name or index of an adapter
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub(crate) device: String,
    /// Measures only this table of the data folder; can be given several times
    #[arg(long, value_name = "TABLE")]
    pub(crate) only: Vec<String>,
    /// Measures this table too
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The column of that table to predict
    #[arg(long, value_name = "COLUMN", requires = "file")]
    pub(crate) target: Option<String>,
    /// Trains only with this effort; can be given several times
    #[arg(long, value_name = "HOW")]
    pub(crate) effort: Vec<BenchedEffort>,
    /// Splits and seeds of each table, with --smoke 1
    #[arg(long, value_name = "N", value_parser = count(), default_value_t = 5)]
    pub(crate) seeds: usize,
    /// The time of each model [default: no limit]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) minutes: Option<f64>,
    /// The precision of our training: f32, f16 or bf16 [default: the fastest of the device, as in the example tabular]
    #[arg(long, value_name = "TYPE")]
    pub(crate) precision: Option<Precision>,
    /// Measures scikit-learn's HistGradientBoosting, LightGBM, XGBoost and CatBoost in the same run, with the Python that
    /// BRISK_PYTHON names
    #[arg(long)]
    pub(crate) peers: bool,
    /// Measures RealMLP and TabM at their authors' defaults, too, by the Python package pytabkit; takes many minutes a table
    #[arg(long, requires = "peers")]
    pub(crate) networks: bool,
    /// Measures boosting also with settings that are drawn at random and chosen by the validation rows, for as long as our
    /// longest effort takes
    #[arg(long, requires = "peers")]
    pub(crate) tuned: bool,
}

/// How much time a model of a table may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchedEffort {
    /// One ensemble, and a linear model
    Quick,
    /// Several, and a linear model
    Good,
    /// More of them, with settings that are drawn
    Best,
}

/// The precision of matrix products and convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProductPrecision {
    F32,
    F16,
    Bf16,
}

/// A part of the suite `cifar10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cifar10Part {
    /// Images a second in training
    Speed,
    /// Images a second of augmentation
    Augment,
    /// Operations, bytes, kernels and memory of the full recipes, as planned, and the least time that GPUs need for them
    Plan,
    /// Accuracy and time of each trick
    Ladder,
}

/// A whole number of at least 1.
fn count() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=1_000_000_000)
}

fn share(word: &str) -> Result<f64, String> {
    word.parse().ok().filter(|x| (0.0..=1.0).contains(x)).ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

fn positive(word: &str) -> Result<f64, String> {
    match word.parse() {
        Ok(x) if x > 0.0 && x < 1e9 => Ok(x),
        _ => Err("expected a number above 0 and below 10^9".to_owned()),
    }
}

impl Suite {
    /// The Python packages that the requested peers import, as pip calls them.
    pub(crate) fn python_packages(&self) -> Option<&'static str> {
        const TRAINING: &str = "torch numpy safetensors scikit-learn";
        let (peers, packages) = match self {
            Self::Higgs(higgs) => (higgs.peers, TRAINING),
            Self::Loader(loader) => (loader.peers, "torch numpy pandas pyarrow polars"),
            Self::Kernels(kernels) => {
                let parts = [KernelsPart::Elementwise, KernelsPart::Conv, KernelsPart::Convnet];
                (kernels.peers && parts.into_iter().any(|part| is_selected(&kernels.only, part)), "torch numpy")
            }
            Self::Amp(amp) => (amp.peers && is_selected(&amp.only, AmpPart::Speed), "torch numpy"),
            Self::Cifar10(cifar10) => (cifar10.peers, "torch torchvision numpy safetensors"),
            Self::Speedups(speedups) => (speedups.peers, "torch torchvision numpy"),
            Self::Tabular(tabular) if tabular.networks => (true, "numpy pandas scikit-learn lightgbm xgboost catboost pytabkit"),
            Self::Tabular(tabular) => (tabular.peers, "numpy pandas scikit-learn lightgbm xgboost catboost"),
            Self::Replicate(_) | Self::Scaling(_) | Self::Overhead(_) => return None,
        };
        peers.then_some(packages)
    }

    /// Whether Burn is requested.
    pub(crate) fn needs_burn(&self) -> bool {
        matches!(self, Self::Kernels(kernels) if kernels.peers && is_selected(&kernels.only, KernelsPart::Burn))
    }

    /// Whether processes, which need MPI, are requested.
    pub(crate) fn needs_mpi(&self) -> bool {
        matches!(self, Self::Replicate(Replicate { peers: true, .. }) | Self::Scaling(Scaling { peers: true, .. }))
    }
}

/// Whether `--only` selects this part; without `--only` all parts are selected.
pub(crate) fn is_selected<P: PartialEq>(only: &[P], part: P) -> bool {
    only.is_empty() || only.contains(&part)
}

/// The parts that `--only` selects, in the order of the enum.
pub(crate) fn selected<P: ValueEnum + Copy + PartialEq>(only: &[P]) -> impl Iterator<Item = P> {
    P::value_variants().iter().copied().filter(|part| is_selected(only, *part))
}
