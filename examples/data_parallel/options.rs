use std::time::Duration;

use anyhow::Result;
use brisk_examples::command_line::usage_error;
use brisk_examples::command_line::value::{device, one_of, positive, whole};
use brisk_examples::elsewhere::Held;
use brisk_examples::higgs;
use brisk_examples::higgs::stopped::EXIT_STATUS;
use brisk_examples::print;
use brisk_nn::tensor::program::{Device, Selection};
use brisk_table::ReadAhead;
use brisk_train::{BucketSizes, CheckpointFiles, DataParallelConfig, Wire, ZeroStage};
use clap::Parser;
use clap::error::ErrorKind;

/// Trains the network of `higgs` on several replicas: each holds the whole model and computes a part of every batch
#[derive(Debug, Clone, Parser)]
#[command(name = "data_parallel", after_help = format!("{EXAMPLES}\n\n{EXIT_STATUS}{LOST_RANK}"))]
pub(crate) struct Options {
    /// Number of replicas; under mpirun or srun the number of processes [default: 2]
    #[arg(long, value_name = "N", help_heading = "Replicas", allow_negative_numbers = true, value_parser = whole::<usize>(1..=1024))]
    pub(crate) replicas: Option<usize>,
    /// Devices for the replicas of each host, in turn: cpu, software, or the name or index of an adapter
    /// [default: BRISK_DEVICE for all of them, else each hardware GPU in turn, else the CPU, whose cores they share]
    #[arg(long, value_name = "A,B", help_heading = "Replicas", value_delimiter = ',', action = clap::ArgAction::Set, num_args = 1,
        value_parser = device())]
    pub(crate) devices: Vec<Selection>,
    /// Type in which gradients are sent
    #[arg(long, value_name = "TYPE", help_heading = "Replicas", default_value = "f32",
        value_parser = one_of([("f32", Wire::F32), ("f16", Wire::F16), ("bf16", Wire::Bf16)]))]
    pub(crate) wire: Wire,
    /// ZeRO stage, which shards over the replicas: 0 nothing, 1 the state of the optimizer, 2 also gradients, 3 also parameters
    #[arg(long, value_name = "STAGE", help_heading = "Replicas", default_value = "0", allow_negative_numbers = true, value_parser = one_of([
        ("0", ZeroStage::Replicated), ("1", ZeroStage::Optimizer), ("2", ZeroStage::Gradients), ("3", ZeroStage::Parameters)
    ]))]
    pub(crate) zero: ZeroStage,
    /// Files of a checkpoint: one, or one of each replica, all of which then need access to the run's folder
    #[arg(long, value_name = "FILES", help_heading = "Replicas", default_value = "one",
        value_parser = one_of([("one", CheckpointFiles::One), ("each", CheckpointFiles::OneAReplica)]))]
    pub(crate) checkpoint_files: CheckpointFiles,
    /// MiB of gradients that are reduced together [default: 4, and 1 for the first bucket]
    #[arg(long, value_name = "MIB", help_heading = "Replicas", allow_negative_numbers = true, value_parser = positive(4096.0))]
    pub(crate) bucket_mb: Option<f64>,
    /// Seconds that a replica waits for the others [default: 600]
    #[arg(long, value_name = "SECONDS", help_heading = "Replicas", allow_negative_numbers = true, value_parser = positive(1_048_576.0))]
    timeout: Option<f64>,

    /// Leave the rows in their tables; each replica reads its part of them in each epoch, into at most MIB of memory,
    /// 8 or more [default: all rows in memory]
    #[arg(long, value_name = "MIB", help_heading = "Data", allow_negative_numbers = true, value_parser = whole::<usize>(8..=1 << 20))]
    pub(crate) stream: Option<usize>,

    #[command(flatten)]
    pub(crate) run: higgs::Options,

    #[command(flatten)]
    pub(crate) place: higgs::PlaceOptions,
}

const EXAMPLES: &str = "\
A batch is that of all replicas together.

Examples:
  cargo run --release --example data_parallel -- --replicas 2    threads of one process

Tables that stay on a server, read through a cache on this machine:
  cargo run --release --features remote --example data_parallel -- --stream 256 --train s3://BUCKET/train --test s3://BUCKET/test

Processes, with Open MPI or MPICH, which the example `launch` starts, and starts again if one is lost:
  cargo build --release --features mpi --example data_parallel --example launch
  target/release/examples/launch -n 4 --restarts 3 target/release/examples/data_parallel --out DIR";

/// The exit status that is added to the others.
const LOST_RANK: &str = "\n  75   another rank was lost; started again with --resume auto, the job may succeed";

impl Options {
    /// Checks the options for `n_replicas` replicas, as far as possible before any rows are loaded.
    pub(crate) fn check(&self, n_replicas: usize) -> Result<()> {
        if n_replicas == 1 {
            let of_several = [
                (self.wire != Wire::F32, "--wire"),
                (self.zero != ZeroStage::Replicated, "--zero"),
                (self.checkpoint_files != CheckpointFiles::One, "--checkpoint-files"),
                (self.bucket_mb.is_some(), "--bucket-mb"),
                (self.timeout.is_some(), "--timeout"),
            ];
            let given: Vec<_> = of_several.iter().filter(|(is_given, _)| *is_given).map(|(_, option)| *option).collect();
            if !given.is_empty() {
                // A script may run with any number of processes.
                print::note(format_args!("warning: with one replica, these options have no effect: {}", given.join(", ")));
            }
        }
        let batch = self.run.batch;
        if batch < n_replicas {
            let message = format!(
                "--batch {batch} leaves some of {n_replicas} replicas without a row; use --batch {n_replicas} or more, or fewer replicas"
            );
            return Err(usage_error::<Self>(ErrorKind::ArgumentConflict, message));
        }
        if self.devices.len() > n_replicas {
            let message =
                format!("--devices names {} devices for {n_replicas} replicas; leave out those without one", self.devices.len());
            return Err(usage_error::<Self>(ErrorKind::ArgumentConflict, message));
        }
        self.check_devices()?;
        self.run.check(Some(&self.place))?;
        self.place.check::<Self>()
    }

    /// Checks that the devices exist on this host.
    fn check_devices(&self) -> Result<()> {
        let from_env = [Selection::from_env()];
        let devices = if self.devices.is_empty() { &from_env[..] } else { &self.devices };
        Ok(devices.iter().try_for_each(|device| Device::builder().selection(device.clone()).check())?)
    }

    /// How the replicas communicate.
    pub(crate) fn parallel(&self) -> DataParallelConfig {
        let (wire, zero, files) = (self.wire, self.zero, self.checkpoint_files);
        let mut parallel = DataParallelConfig { wire, zero, files, ..DataParallelConfig::default() };
        if let Some(mebibytes) = self.bucket_mb {
            let bytes = (mebibytes * f64::from(1 << 20)) as usize;
            // The first bucket stays small, so that communication starts early.
            parallel.buckets = BucketSizes { first_bytes: parallel.buckets.first_bytes.min(bytes), bytes };
        }
        parallel
    }

    /// Where the rows are.
    pub(crate) fn held(&self) -> Held {
        self.stream.map_or(Held::InMemory, |mebibytes| Held::Streamed(ReadAhead::new(mebibytes << 20)))
    }

    /// How long a replica waits for the others, if the option is set.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout.map(Duration::from_secs_f64)
    }
}
