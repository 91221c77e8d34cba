//! A table many times as large as the memory of four processes that train on it: what each reads, how fast, and that the
//! result is that of threads.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use brisk_replicate::{Collective, Threads, ThreadsConfig};
use serde_json::Value;

use super::SUITE;
use super::served::Served;
#[cfg(feature = "mpi")]
use crate::loader::memory_limit::MemoryLimit;
use crate::options::{Options, Scale};
use crate::replicate::started;
use crate::row::{Better, Row};

const N_RANKS: usize = 4;
const SHARD_BYTES: usize = 64 << 20;
/// The memory of each process.
const LIMIT_BYTES: usize = 256 << 20;
/// The limit of the link.
const BYTES_PER_S: f64 = 80e6;

/// An epoch over so many bytes of shards, in a network that two cores train faster than the link is.
pub(super) fn run(options: &Options, n_gigabytes: f64) -> Result<Vec<Row>> {
    let shard_bytes = if options.scale == Scale::Smoke { 2 << 20 } else { SHARD_BYTES };
    let n_shards = (n_gigabytes * 1e9 / shard_bytes as f64).ceil() as usize;

    let few = Served::start(shard_bytes, 3, f64::INFINITY, N_RANKS)?;
    let parameters = |trained: Vec<Trained>| trained.into_iter().map(|rank| rank.parameters).collect::<Vec<_>>();
    let of_processes = parameters(by_processes(&few)?);
    let of_threads = parameters(by_threads(&few)?);
    ensure!(
        of_threads.len() == N_RANKS && of_processes == of_threads,
        "parameters of processes, {of_processes:?}, and of threads, {of_threads:?}, differ"
    );
    drop(few);

    let served = Served::start(shard_bytes, n_shards, BYTES_PER_S, N_RANKS)?;
    let trained = by_processes(&served)?;
    let most = |figure: fn(&Trained) -> f64| vec![trained.iter().map(figure).fold(0.0, f64::max)];
    let sent = served.bytes_sent(N_RANKS);
    let part = served.bytes() / N_RANKS as f64;
    let case =
        |what: &str| format!("{what}, {:.2} GB at {:.0} MB/s, {N_RANKS} processes", served.bytes() / 1e9, BYTES_PER_S / 1e6);
    let row = |what: &str, ours: Vec<f64>, unit, reference: &str, theirs: f64, target| {
        let reference = Some((reference.to_owned(), vec![theirs; ours.len()]));
        Row { suite: SUITE, case: case(what), ours, unit, reference, target: Some(target), better: Better::Less }
    };
    Ok(vec![
        row("training an epoch", most(|rank| rank.seconds), "s", "link", served.bytes() / BYTES_PER_S, 0.9),
        row("bytes sent to a rank for an epoch", most(|rank| rank.bytes), "B", "its part", part, 1.0 / 1.05),
        row("bytes sent to a rank with opening", vec![sent.into_iter().fold(0.0, f64::max)], "B", "its part", part, 1.0 / 1.05),
        Row::at_most(SUITE, case("peak memory of a rank"), most(|rank| rank.peak_bytes), "B", LIMIT_BYTES as f64),
    ])
}

/// How a rank has trained.
struct Trained {
    seconds: f64,
    /// Read from the server after the table was opened.
    bytes: f64,
    /// Of memory, that of the program and its libraries included; 0 where the system does not say.
    peak_bytes: f64,
    /// A digest of the parameters.
    parameters: String,
}

fn by_processes(served: &Served) -> Result<Vec<Trained>> {
    let caches = tempfile::tempdir()?;
    let limit = LIMIT_BYTES.to_string();
    let said = started(N_RANKS, &["limited", &limit, "train", "fixed", &served.url(), &caches.path().to_string_lossy()])?;
    said.lines()
        .map(|line| Trained::read(&serde_json::from_str(line).with_context(|| format!("a rank printed `{line}`"))?))
        .collect()
}

fn by_threads(served: &Served) -> Result<Vec<Trained>> {
    let (caches, url) = (tempfile::tempdir()?, served.url());
    let caches = caches.path();
    let ranks = Threads::group(ThreadsConfig::new(N_RANKS));
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranks.into_iter().map(|rank| scope.spawn(|| ranks::train(rank, &url, caches))).collect();
        let trained = threads.into_iter().map(|thread| thread.join().expect("a rank does not panic"));
        trained.map(|said| Trained::read(&said?)).collect()
    })
}

impl Trained {
    fn read(said: &Value) -> Result<Self> {
        let figure = |key: &str| said[key].as_f64().with_context(|| format!("a rank printed no `{key}`: {said}"));
        Ok(Self {
            seconds: figure("seconds")?,
            bytes: figure("bytes")?,
            peak_bytes: figure("peak_bytes")?,
            parameters: said["parameters"].as_str().context("a rank prints a digest")?.to_owned(),
        })
    }
}

/// Starts this program again as a rank with these arguments, in so many bytes of memory if the system can limit it.
#[cfg(feature = "mpi")]
pub(crate) fn limited(args: &[&str]) -> Result<()> {
    let [n_bytes, args @ ..] = args else { anyhow::bail!("a limited rank is given a number of bytes") };
    let program = std::env::current_exe()?;
    let limit = MemoryLimit::new(n_bytes.parse()?);
    let mut rank = match limit {
        MemoryLimit::Group(_) => limit.command(&program),
        // Mapped files and libraries would count.
        MemoryLimit::AddressSpace { .. } => std::process::Command::new(&program),
    };
    let status = rank.arg(crate::replicate::RANK).args(args).status()?;
    ensure!(status.success(), "a rank ended with {status}");
    Ok(())
}

/// As a process: prints what [`Trained::read`] parses.
#[cfg(feature = "mpi")]
#[expect(clippy::print_stdout, reason = "the process that started the ranks reads it")]
pub(crate) fn train<C: Collective + 'static>(collective: C, url: &str, caches: &str) -> Result<()> {
    println!("{}", ranks::train(collective, url, Path::new(caches))?);
    Ok(())
}

mod ranks {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    use std::time::Instant;

    use brisk_loader::Order;
    use brisk_nn::{Adam, Mlp, MlpConfig, Optimizer as _, ParametersBuilder, StepInputs};
    use brisk_program::{Device, Selection};
    use brisk_replicate::ReduceOp;
    use brisk_table::{CacheFolder, ReadAhead, Remote, RemoteOptions, ShardedTable};
    use brisk_tensor::{Activation, DType, Graph, Persistent, Reduction};
    use brisk_train::{CountFrom, DataParallel, DataParallelConfig, Feed, FeedChoice, FeedConfig, Standardisation};
    use serde_json::json;

    use super::*;
    use crate::higgs_table::N_COLS;
    use crate::loader::memory::status_bytes;
    use crate::scaling::served::{ahead_bytes, lanes, table_of};

    /// Rows of a batch of all ranks together.
    const BATCH_ROWS: usize = 8192;
    /// Two cores train the network of HIGGS, 28-256-256-256-1, at a third of the speed of the link.
    const HIDDEN: [usize; 2] = [64, 64];
    /// What fits into a process of 256 MiB: blocks that were read last, and windows of each lane. Batches that are gathered in
    /// advance are of windows beside the current one.
    const MEMORY_BYTES: usize = 16 << 20;
    const CHUNK_BYTES: usize = 512 << 10;
    const N_WINDOWS: usize = 6;

    /// Trains for an epoch as one of the ranks. `brisk_train::Trainer` reads all rows once more before it trains, and keeps all
    /// labels, which are 690 MB for 20 GB of such rows.
    pub(super) fn train<C: Collective + 'static>(collective: C, url: &str, caches: &Path) -> Result<Value> {
        let replica = DataParallel::new(Box::new(collective), DataParallelConfig::default());
        let trained = epoch(&replica, url, caches);
        match &trained {
            Ok(_) => replica.finish()?,
            Err(error) => replica.fail(&format!("{error:#}")),
        }
        trained
    }

    fn epoch(replica: &DataParallel, url: &str, caches: &Path) -> Result<Value> {
        let (rank, n_ranks) = (replica.rank(), replica.world_size());
        let cache = CacheFolder::At(caches.join(rank.to_string()));
        let remote = Remote::new(RemoteOptions { cache, memory_bytes: MEMORY_BYTES, ..RemoteOptions::default() })?;
        let lanes = lanes(BATCH_ROWS)?;
        let ahead = ReadAhead::new(ahead_bytes(&lanes, n_ranks, N_WINDOWS));
        let table = ShardedTable::open_streamed_url(&table_of(rank, url), &ahead, &remote)?;
        let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
        let config =
            FeedConfig { choice: FeedChoice::Streamed, chunk_bytes: CHUNK_BYTES, rank: replica.shard(), ..FeedConfig::default() };
        let rows = Feed::new(&device, "train", &table, Order::Lanes(lanes), BATCH_ROWS, &config)?;

        let mut builder = ParametersBuilder::new();
        let sizes = MlpConfig { n_inputs: N_COLS, hidden: HIDDEN.to_vec(), n_outputs: 1, activation: Activation::relu() };
        let model = Mlp::new(&mut builder, &sizes);
        let params = builder.build(1);
        let optimizer = Adam::new(&params);
        let scale = Standardisation::new(vec![0.0; N_COLS], vec![1.0; N_COLS]);
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        let losses = Persistent::new("losses", DType::F32, rows.n_batches());
        let graph = Graph::training("step");
        let batch = rows.record(&graph, &scale, &inputs.state);
        let bound = params.bind(&graph);
        let loss = model.forward(&bound, &batch.x).bce_with_logits(&batch.labels, &batch.weights, Reduction::Mean, 1.0);
        graph.backward(&loss)?;
        replica.reduce_gradients(&graph, &params, &bound, ReduceOp::Mean, None);
        optimizer.record(&graph, &params, &inputs);
        graph.store(&loss, &inputs.state, &losses);
        graph.advance(&inputs.state);
        let step = graph.compile(&device)?;
        scale.write(&device)?;
        device.write(&inputs.lr, &[1e-3_f32])?;
        params.write_initial(&device)?;

        // All begin, and end, at the same time.
        replica.all_gather(vec![0.0])?;
        let (since, before) = (Instant::now(), remote.report().bytes_from_server);
        rows.open(&device, |rows| {
            rows.for_each_range(0, CountFrom::Epoch, 64, |range| {
                step.run(range.n_batches)?;
                Ok(ControlFlow::Continue(()))
            })
        })?;
        device.wait()?;
        replica.all_gather(vec![0.0])?;
        let seconds = since.elapsed().as_secs_f64();

        let losses: Vec<f32> = device.read(&losses)?;
        ensure!(losses.iter().all(|loss| loss.is_finite() && *loss > 0.0), "a batch was not trained on, or diverged: {losses:?}");
        let report = ahead.report();
        ensure!(report.rows_without_room == 0 && report.rows_from_file == 0, "rows were read singly: {report:?}");
        let mut digest = DefaultHasher::new();
        device.read::<f32>(params.values())?.iter().for_each(|value| value.to_bits().hash(&mut digest));
        Ok(json!({
            "seconds": seconds, "bytes": remote.report().bytes_from_server - before, "peak_bytes": status_bytes("VmHWM:").unwrap_or(0),
            "parameters": format!("{:016x}", digest.finish()),
        }))
    }
}
