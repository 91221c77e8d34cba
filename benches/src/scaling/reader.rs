//! Ranks that read a table, compute, or both: processes that begin each at the same time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use brisk_loader::{Batching, Loader, Order, Shard};
use brisk_program::{Device, Selection};
use brisk_table::{CacheFolder, ReadAhead, Remote, RemoteOptions, ShardedTable};
use brisk_train::DataParallel;
use serde_json::{Value, json};

use super::served::{ahead_bytes, lanes, table_of};
use crate::replicate::network::{HIGGS, Network, SMALL, UpTo};

/// The argument that starts this program as a rank that reads.
pub(crate) const READER: &str = "--as-a-reader";

/// Rows of a batch of all ranks together.
pub(super) const BATCH_ROWS: usize = 1024;

/// The networks that ranks can train.
pub(super) const NETWORKS: [Network; 2] = [SMALL, HIGGS];

/// What ranks do in an epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Read the next epoch's rows.
    Read,
    /// As many training steps as an epoch has, without rows.
    Compute,
    /// Read, with a training step for each batch.
    Train,
}

impl Work {
    const ALL: [(&str, Self); 3] = [("read", Self::Read), ("compute", Self::Compute), ("train", Self::Train)];
}

/// Processes that have a table open.
pub(super) struct Ranks(Vec<(Child, ChildStdin, BufReader<ChildStdout>)>);

/// An epoch of all ranks.
pub(super) struct Done {
    pub(super) n_rows: usize,
    /// Those of the slowest rank.
    pub(super) seconds: f64,
}

impl Ranks {
    /// Ranks that read the tables at a server's URL, or a table of files, each with a cache of its own, as on hosts of their own.
    pub(super) fn start(n_ranks: usize, table: &str, caches: &Path, network: &str) -> Result<Self> {
        let program = std::env::current_exe()?;
        let start = |rank: usize| {
            let mut command = Command::new(&program);
            command.args([READER, table, &rank.to_string(), &n_ranks.to_string(), network]).arg(caches.join(rank.to_string()));
            let mut child =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start a rank that reads")?;
            let to = child.stdin.take().context("a rank has a standard input")?;
            let from = child.stdout.take().context("a rank has a standard output")?;
            Ok((child, to, BufReader::new(from)))
        };
        let mut ranks = Self((0..n_ranks).map(start).collect::<Result<Vec<_>>>()?);
        ensure!(ranks.lines()?.iter().all(|line| line == "open\n"), "a rank cannot open the table");
        Ok(ranks)
    }

    pub(super) fn each(&mut self, work: Work) -> Result<Done> {
        let name = Work::ALL.iter().find_map(|(name, known)| (*known == work).then_some(name)).context("work has a name")?;
        for (_, to, _) in &mut self.0 {
            writeln!(to, "{name}")?;
        }
        let mut done = Done { n_rows: 0, seconds: 0.0 };
        for line in self.lines()? {
            let said: Value = serde_json::from_str(&line).context("a rank has failed")?;
            let figure = |key: &str| said[key].as_f64().with_context(|| format!("a rank printed no `{key}`: {said}"));
            done.n_rows += figure("rows")? as usize;
            done.seconds = done.seconds.max(figure("seconds")?);
        }
        Ok(done)
    }

    fn lines(&mut self) -> Result<Vec<String>> {
        let line = |(_, _, from): &mut (_, _, BufReader<ChildStdout>)| {
            let mut line = String::new();
            from.read_line(&mut line)?;
            Ok(line)
        };
        self.0.iter_mut().map(line).collect()
    }

    /// Waits for the ranks to end.
    pub(super) fn finish(self) -> Result<()> {
        for (mut child, to, _) in self.0 {
            drop(to);
            ensure!(child.wait()?.success(), "a rank that reads has failed");
        }
        Ok(())
    }
}

/// As a rank: does what the lines of standard input say.
#[expect(clippy::print_stdout, reason = "the process that started it reads it")]
pub(crate) fn reader(args: &[String]) -> Result<()> {
    let [table, rank, n_ranks, network, cache] = args else {
        bail!("a rank that reads is given a table, its rank, the number of ranks, a network, and a cache")
    };
    let (rank, n_ranks) = (rank.parse()?, n_ranks.parse()?);
    // Little memory: later epochs are read from the cache.
    let remote =
        Remote::new(RemoteOptions { cache: CacheFolder::At(cache.into()), memory_bytes: 8 << 20, ..RemoteOptions::default() })?;
    let lanes = lanes(BATCH_ROWS)?;
    let ahead = ReadAhead::new(ahead_bytes(&lanes, n_ranks, 4));
    let table = match table.starts_with("http") {
        true => ShardedTable::open_streamed_url(&table_of(rank, table), &ahead, &remote)?,
        false => ShardedTable::open_streamed(table, &ahead)?,
    };
    let shard = Shard::parts(rank, n_ranks);
    let mut loader = Loader::new(&table, Batching { order: Order::Lanes(lanes), shard, ..Batching::of(BATCH_ROWS) })?;
    let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
    let network = NETWORKS.into_iter().find(|known| known.name == network);
    let step = network
        .map(|network| network.with_batch(BATCH_ROWS.div_ceil(n_ranks)).record(&device, &UpTo::Update(DataParallel::single())))
        .transpose()?;
    let step = || step.as_ref().context("a rank that computes is given a network")?.seconds();
    println!("open");
    let mut epoch = 0;
    for line in std::io::stdin().lines() {
        let line = line?;
        let work = Work::ALL.iter().find_map(|(name, work)| (*name == line).then_some(*work));
        let work = work.with_context(|| format!("a rank cannot do `{line}`"))?;
        let (since, mut n_rows) = (Instant::now(), 0);
        if work == Work::Compute {
            (0..brisk_loader::RowSource::n_rows(&table).div_ceil(BATCH_ROWS)).try_for_each(|_| step().map(drop))?;
        } else {
            let mut batches = loader.epoch(epoch);
            epoch += 1;
            while let Some(batch) = batches.next_batch()? {
                n_rows += batch.rows;
                if work == Work::Train {
                    step()?;
                }
            }
        }
        let seconds = since.elapsed().as_secs_f64();
        let report = ahead.report();
        ensure!(report.rows_without_room == 0 && report.rows_from_file == 0, "rows were read singly: {report:?}");
        println!("{}", json!({ "rows": n_rows, "seconds": seconds }));
    }
    Ok(())
}
