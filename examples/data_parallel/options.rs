use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use brisk_examples::{higgs, print};
use brisk_nn::tensor::program::Selection;
use brisk_train::{BucketSizes, DataParallelConfig, Wire, ZeroStage};

/// What `--help` prints, and the documentation of the options.
fn help() -> String {
    let (data, training, results) = (higgs::DATA_HELP, higgs::TRAINING_HELP, higgs::RESULTS_HELP);
    format!(
        "\
Trains the network of `higgs` on several replicas: each has the whole model and a part of every batch, and all take the same steps.

    cargo run --release --example data_parallel -- --replicas 2            threads of this process
    cargo xtask mpi -n 2 -- example data_parallel                          processes, by Open MPI or MPICH
    cargo xtask mpi -n 4 --restarts 3 -- example data_parallel --out DIR   the same, started again where a rank is lost

Replicas
    --replicas N     how many; where mpirun or srun has started them, that many    [2]
    --devices A,B    cpu, software, an adapter's name or index: in turn, for the replicas of a host
                     [BRISK_DEVICE for all of them; else the hardware GPUs in turn, or the CPU, whose cores they share]
    --wire W         what gradients travel in: f32, f16 or bf16                    [f32]
    --zero N         what replicas keep a part of instead of all: 0 nothing, 1 the optimizer's state, 2 gradients too, 3 parameters too [0]
    --bucket-mb X    MiB of gradients that are reduced together                    [4, the first 1]
    --timeout X      seconds that a replica waits for the others                   [600]

Data
{data}

Training, where a batch is that of all replicas together
{training}

Results
    --out DIR        the run's folder itself, where it can be found again          [a new one in --runs]
    --checkpoint-every N   steps after which the run is saved within an epoch; 0 saves at its end alone [0]
    --resume W       go on from FILE, a checkpoint in a run's folder; or `auto`: from the newest in --out, else in the newest folder in
                     --runs of the same settings, and from the start where there is none     [start]
{results}"
    )
}

/// The command line, read.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) replicas: Option<usize>,
    pub(crate) devices: Vec<Selection>,
    pub(crate) parallel: DataParallelConfig,
    /// How long a replica waits for the others.
    pub(crate) timeout: Option<Duration>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) checkpoint_every: usize,
    pub(crate) resume: Resume,
    pub(crate) run: higgs::Options,
}

/// Where a run begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resume {
    /// At the start.
    No,
    /// With the newest checkpoint there is.
    Auto,
    /// With this one.
    From(PathBuf),
}

impl Options {
    /// Reads the command line; `None` if help was asked for and printed.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self {
            replicas: None,
            devices: Vec::new(),
            parallel: DataParallelConfig::default(),
            timeout: None,
            out: None,
            checkpoint_every: 0,
            resume: Resume::No,
            run: higgs::Options::default(),
        };
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            let mut value = || args.next().with_context(|| format!("{name} wants a value; see --help"));
            match name.as_str() {
                "--help" | "-h" => return print::result(help()).map(|()| None),
                "--replicas" => options.replicas = Some(replicas(&value()?)?),
                "--devices" => options.devices = value()?.split(',').map(|word| word.parse().unwrap_or_default()).collect(),
                "--wire" => options.parallel.wire = wire(&value()?)?,
                "--zero" => options.parallel.zero = stage(&value()?)?,
                "--bucket-mb" => options.parallel.buckets = bucket_sizes(higgs::positive(&name, &value()?)?)?,
                "--timeout" => options.timeout = Some(timeout(higgs::positive(&name, &value()?)?)?),
                "--out" => options.out = Some(PathBuf::from(value()?)),
                "--checkpoint-every" => options.checkpoint_every = higgs::whole(&name, &value()?, 0)?,
                "--resume" => options.resume = resume(value()?),
                _ => options.run.take(&name, value)?,
            }
        }
        if let (Resume::From(_), Some(_)) = (&options.resume, &options.out) {
            bail!("--resume FILE goes on in the folder of FILE; leave --out away");
        }
        options.run = options.run.finish()?;
        Ok(Some(options))
    }
}

fn replicas(word: &str) -> Result<usize> {
    match higgs::whole("--replicas", word, 1)? {
        n @ ..=1024 => Ok(n),
        n => bail!("--replicas is {n}, expected 1024 at most"),
    }
}

fn wire(word: &str) -> Result<Wire> {
    match word {
        "f32" => Ok(Wire::F32),
        "f16" => Ok(Wire::F16),
        "bf16" => Ok(Wire::Bf16),
        _ => bail!("--wire wants f32, f16 or bf16, got `{word}`"),
    }
}

fn stage(word: &str) -> Result<ZeroStage> {
    const STAGES: [ZeroStage; 4] = [ZeroStage::Replicated, ZeroStage::Optimizer, ZeroStage::Gradients, ZeroStage::Parameters];
    let stage = word.parse().ok().and_then(|stage: usize| STAGES.get(stage).copied());
    stage.with_context(|| format!("--zero wants 0, 1, 2 or 3, got `{word}`"))
}

/// The first bucket stays small, so that communication starts early.
fn bucket_sizes(mebibytes: f64) -> Result<BucketSizes> {
    if mebibytes > 4096.0 {
        bail!("--bucket-mb is {mebibytes}, expected 4096 at most");
    }
    let bytes = (mebibytes * f64::from(1 << 20)) as usize;
    Ok(BucketSizes { first_bytes: BucketSizes::default().first_bytes.min(bytes), bytes })
}

fn timeout(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|timeout| *timeout <= Duration::from_secs(1 << 20))
        .with_context(|| format!("--timeout is {seconds}, expected {} seconds at most", 1 << 20))
}

fn resume(word: String) -> Resume {
    if word == "auto" { Resume::Auto } else { Resume::From(PathBuf::from(word)) }
}
