//! The time in which ranks read a table on a server: predicted, and measured with processes and a server of this machine, whose
//! link is limited.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use brisk_loader::{Batching, Lanes, Loader, Order, Shard};
use brisk_replicate::TableReading;
use brisk_table::{CacheFolder, ReadAhead, Remote, RemoteOptions, Schema, ShardSize, ShardedTable, ShardedWriter};
use serde_json::{Value, json};

use super::SUITE;
use crate::loader::memory::status_bytes;
use crate::options::{Options, Scale};
use crate::row::{Better, Row};

#[path = "../../../crates/table/tests/it/remote/server.rs"]
#[expect(dead_code, reason = "the tests of brisk-table use the rest")]
mod server;

/// The argument that starts this program as a rank that reads.
pub(crate) const READER: &str = "--as-a-reader";

const N_COLS: usize = 28;
const ROW_BYTES: usize = (N_COLS + 1) * 4;
const BATCH_ROWS: usize = 1024;
/// The index of the shards.
const INDEX: &str = "table.safetensors.index.json";
const LATENCY: Duration = Duration::from_millis(20);
/// The bytes that `brisk-table` requests at a time.
const BLOCK_BYTES: f64 = (1 << 20) as f64;

/// An epoch of 1, 2 and 4 processes that share the link of a server, beside its prediction. Each has a cache of its own, as on
/// hosts of their own.
pub(super) fn check(options: &Options) -> Result<Vec<Row>> {
    let n_bytes = if options.scale == Scale::Smoke { 2 << 20 } else { 96 << 20 };
    epochs(&Served::start(n_bytes, 1, 40e6)?, &[1, 2, 4], options.n_rounds)
}

/// The same for a table of many shards and four processes, whose caches hold all of it together.
pub(super) fn large(n_gigabytes: f64) -> Result<Vec<Row>> {
    const SHARD_BYTES: usize = 64 << 20;
    let n_shards = (n_gigabytes * 1e9 / SHARD_BYTES as f64).ceil() as usize;
    epochs(&Served::start(SHARD_BYTES, n_shards, 100e6)?, &[4], 1)
}

fn epochs(served: &Served, numbers_of_ranks: &[usize], n_rounds: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &n_ranks in numbers_of_ranks {
        let model = TableReading {
            table_bytes: (served.n_rows * ROW_BYTES) as f64,
            n_shards: served.n_shards,
            server_bytes_per_s: served.bytes_per_s,
            host_bytes_per_s: f64::INFINITY,
            ranks_per_host: 1,
            ahead_bytes: ahead_bytes(&lanes()?, n_ranks) as f64,
            ..typical()
        };
        let (mut seconds, mut bytes, mut memory) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..n_rounds {
            let caches = tempfile::tempdir()?;
            let read = epoch(n_ranks, &served.server.url("/t"), caches.path())?;
            ensure!(
                read.iter().map(|rank| rank.n_rows).sum::<usize>() == served.n_rows,
                "{n_ranks} ranks read other rows than the table's"
            );
            let most = |figure: fn(&Read) -> f64| read.iter().map(figure).fold(0.0, f64::max);
            seconds.push(most(|rank| rank.seconds));
            bytes.push(most(|rank| rank.bytes));
            memory.push(most(|rank| rank.peak_bytes));
        }
        let table = served.n_rows * ROW_BYTES;
        let size = if table < 1_000_000_000 { format!("{} MiB", table >> 20) } else { format!("{} GB", table / 1_000_000_000) };
        let row = |case: &str, ours: Vec<f64>, unit, reference: Option<(&str, f64)>| Row {
            suite: SUITE,
            case: format!("{case}, {size} at {:.0} MB/s, {n_ranks} processes", served.bytes_per_s / 1e6),
            reference: reference.map(|(name, value)| (name.to_owned(), vec![value; ours.len()])),
            ours,
            unit,
            target: None,
            better: Better::Less,
        };
        let link = table as f64 / served.bytes_per_s;
        rows.push(row("reading an epoch", seconds.clone(), "s", Some(("link", link))));
        let predicted = model.epoch(n_ranks, Duration::ZERO).as_secs_f64();
        rows.push(row("reading an epoch", seconds, "s", Some(("predicted", predicted))));
        rows.push(row("bytes that a rank reads", bytes.clone(), "B", Some(("its part", table as f64 / n_ranks as f64))));
        rows.push(row("bytes that a rank reads", bytes, "B", Some(("predicted", model.rank_bytes(n_ranks)))));
        if memory.iter().all(|bytes| *bytes > 0.0) {
            rows.push(row("most memory of a rank", memory, "B", None));
        }
    }
    Ok(rows)
}

/// A table on a server of this machine.
struct Served {
    server: server::Server,
    n_rows: usize,
    n_shards: usize,
    bytes_per_s: f64,
}

impl Served {
    /// A table of equal shards of about so many bytes, which take the memory of one.
    fn start(shard_bytes: usize, n_shards: usize, bytes_per_s: f64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("t");
        let shard_rows = shard_bytes / ROW_BYTES / BATCH_ROWS * BATCH_ROWS;
        let mut writer = ShardedWriter::create(&path, Schema::shaped(&[N_COLS]), ShardSize::Rows(shard_rows))?;
        for batch in 0..shard_rows / BATCH_ROWS {
            writer.push(&[batch as f32; BATCH_ROWS * N_COLS], &[1.0_f32; BATCH_ROWS])?;
        }
        writer.finish()?;
        let mut index: Value = serde_json::from_slice(&std::fs::read(path.join(INDEX))?)?;
        let shard = index["shards"][0].clone();
        let file = shard["file_name"].as_str().context("a shard has a name")?;
        let bytes = Arc::new(std::fs::read(path.join(file))?);
        let shards = (0..n_shards).map(|number| {
            let mut copy = shard.clone();
            copy["file_name"] = format!("{number:05}-{file}").into();
            copy
        });
        index["shards"] = shards.collect();
        for field in ["total_rows", "total_size"] {
            index["metadata"][field] = (index["metadata"][field].as_u64().context("a count")? * n_shards as u64).into();
        }
        let server = server::Server::start();
        (0..n_shards).for_each(|number| server.put_shared(&format!("/t/{number:05}-{file}"), bytes.clone()));
        server.put_shared(&format!("/t/{INDEX}"), Arc::new(serde_json::to_vec(&index)?));
        server.set_link(bytes_per_s, LATENCY);
        Ok(Self { server, n_rows: shard_rows * n_shards, n_shards, bytes_per_s })
    }
}

/// Stores in the same region; a rank a GPU, eight to a host with 25 Gbit/s, whose cache is on an NVMe drive.
fn typical() -> TableReading {
    TableReading {
        table_bytes: 1e12,
        n_shards: 1000,
        block_bytes: BLOCK_BYTES,
        requests_at_a_time: RemoteOptions::default().parallel,
        latency: LATENCY,
        server_bytes_per_s: 100e9 / 8.0,
        host_bytes_per_s: 25e9 / 8.0,
        ranks_per_host: 8,
        cached: 0.0,
        cache_bytes_per_s: 2e9,
        ahead_bytes: 64e6,
    }
}

/// Prints the time of an epoch of 1 TB on 1 to 4096 ranks, cold and from caches, and returns the figures too.
#[expect(clippy::print_stdout, reason = "its figures are its result")]
pub(super) fn simulate() -> Vec<Value> {
    let n_ranks: Vec<usize> = (0..=12).map(|power| 1 << power).collect();
    let mut predictions = Vec::new();
    println!(
        "\nReading an epoch of 1 TB in 1000 shards, by blocks of 1 MiB, 16 requests at a time and rank, 20 ms each; 8 ranks a host of 25 Gbit/s; caches of 2 GB/s a host. Nothing is \
         computed meanwhile. Minutes, and what limits them:\n"
    );
    println!("| server | cached |{}", n_ranks.iter().map(|n| format!(" {n} |")).collect::<String>());
    println!("| --- | ---: |{}", " ---: |".repeat(n_ranks.len()));
    for gbit in [10.0, 100.0, 1000.0] {
        for cached in [0.0, 0.5, 1.0] {
            let model = TableReading { server_bytes_per_s: gbit * 1e9 / 8.0, cached, ..typical() };
            let mut cells = String::new();
            for &n in &n_ranks {
                let (seconds, bound) = (model.epoch(n, Duration::ZERO).as_secs_f64(), model.bound(n));
                cells += &format!(" {:.1} {} |", seconds / 60.0, format!("{bound:?}").to_lowercase());
                predictions.push(json!({
                    "suite": SUITE, "server_gbit_per_s": gbit, "cached": cached, "n_ranks": n, "rank_bytes": model.rank_bytes(n),
                    "open_s": model.open(n).as_secs_f64(), "epoch_s": seconds, "bound": format!("{bound:?}"),
                }));
            }
            println!("| {gbit} Gbit/s | {:.0} % |{cells}", 100.0 * cached);
        }
    }
    predictions
}

fn lanes() -> Result<Lanes> {
    Lanes::of_batches(BATCH_ROWS, ROW_BYTES, Some(1)).context("a batch has lanes")
}

/// The memory for what a rank reads ahead: of each of its lanes, four windows.
fn ahead_bytes(lanes: &Lanes, n_ranks: usize) -> usize {
    let window_rows = lanes.block_rows as usize * lanes.window_blocks as usize;
    4 * window_rows * ROW_BYTES * (lanes.n_lanes as usize).div_ceil(n_ranks)
}

/// What a rank has read in an epoch.
struct Read {
    n_rows: usize,
    seconds: f64,
    bytes: f64,
    /// 0 where the system does not say.
    peak_bytes: f64,
}

/// An epoch of `n_ranks` processes, which begin it at the same time, after all have opened the table.
fn epoch(n_ranks: usize, url: &str, caches: &Path) -> Result<Vec<Read>> {
    let program = std::env::current_exe()?;
    let start = |rank: usize| -> Result<(Child, BufReader<std::process::ChildStdout>)> {
        let mut command = Command::new(&program);
        command.args([READER, url, &rank.to_string(), &n_ranks.to_string()]).arg(caches.join(rank.to_string()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start a rank that reads")?;
        let said = BufReader::new(child.stdout.take().context("a rank has a standard output")?);
        Ok((child, said))
    };
    let mut ranks = (0..n_ranks).map(start).collect::<Result<Vec<_>>>()?;
    let line = |said: &mut BufReader<_>| -> Result<String> {
        let mut line = String::new();
        said.read_line(&mut line)?;
        Ok(line)
    };
    for (_, said) in &mut ranks {
        ensure!(line(said)? == "open\n", "a rank cannot open the table");
    }
    for (child, _) in &mut ranks {
        child.stdin.take().context("a rank has a standard input")?.write_all(b"read\n")?;
    }
    let mut read = Vec::new();
    for (mut child, mut said) in ranks {
        let said: Value = serde_json::from_str(&line(&mut said)?).context("a rank prints what it has read")?;
        ensure!(child.wait()?.success(), "a rank that reads has failed");
        let figure = |key: &str| said[key].as_f64().with_context(|| format!("a rank printed no `{key}`: {said}"));
        read.push(Read {
            n_rows: figure("rows")? as usize,
            seconds: figure("seconds")?,
            bytes: figure("bytes")?,
            peak_bytes: figure("peak_bytes")?,
        });
    }
    Ok(read)
}

/// As a rank: reads its part of an epoch, once it is told to.
#[expect(clippy::print_stdout, reason = "the process that started it reads it")]
pub(crate) fn reader(args: &[String]) -> Result<()> {
    let [url, rank, n_ranks, cache] = args else {
        bail!("a rank that reads is given a URL, its rank, the number of ranks, and a cache")
    };
    let remote = Remote::new(RemoteOptions { cache: CacheFolder::At(cache.into()), ..RemoteOptions::default() })?;
    let (lanes, n_ranks) = (lanes()?, n_ranks.parse()?);
    let ahead = ReadAhead::new(ahead_bytes(&lanes, n_ranks));
    let table = ShardedTable::open_streamed_url(url, &ahead, &remote)?;
    let shard = Shard::parts(rank.parse()?, n_ranks);
    let mut loader = Loader::new(&table, Batching { order: Order::Lanes(lanes), shard, ..Batching::of(BATCH_ROWS) })?;
    println!("open");
    let before = remote.report().bytes_from_server;
    std::io::stdin().read_line(&mut String::new())?;
    let since = Instant::now();
    let (mut batches, mut n_rows) = (loader.epoch(0), 0);
    while let Some(batch) = batches.next_batch()? {
        n_rows += batch.rows;
    }
    let seconds = since.elapsed().as_secs_f64();
    let report = ahead.report();
    ensure!(report.rows_without_room == 0 && report.rows_from_file == 0, "rows were read singly: {report:?}");
    println!(
        "{}",
        json!({ "rows": n_rows, "seconds": seconds, "bytes": remote.report().bytes_from_server - before, "peak_bytes": status_bytes("VmHWM:").unwrap_or(0) })
    );
    Ok(())
}
