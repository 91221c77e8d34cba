//! Readers of a table on a server, which share a cache on disk, killed at random moments: the next reader gets the right rows,
//! does not wait for those that are gone, and leaves a cache within its limit.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use brisk_loader::{Batching, Loader};
use brisk_table::{CacheFolder, ReadAhead, Remote, RemoteOptions, Schema, StreamedTable, TableWriter};

use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::report::Kind;
use crate::run::{Ended, Run, Running};
use crate::server::Server;

pub(crate) const PART: Part = Part { name: PartName::CacheKills, weight: 0.5, prepare };

/// The command that starts this program as a reader: `read-cached URL CACHE LIMIT_BYTES VERSION`.
pub(crate) const CHILD: &str = "read-cached";

/// Rows of 1 KiB: with their labels, six blocks of the cache.
const N_ROWS: usize = 5 << 10;
const N_COLS: usize = 256;
const BLOCK_BYTES: u64 = 1 << 20;

/// How long a reader may take. One that waits for a process that is gone would take longer: a running one may take the
/// [`PATIENCE`] to fetch a block.
const LIMIT: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads each row of the table once, in batches that need no padding, through the cache, and checks its values.
pub(crate) fn child(url: &str, cache: &Path, limit_bytes: &str, version: &str) -> Result<()> {
    let cache = CacheFolder::At(cache.to_owned());
    let options = RemoteOptions { cache, cache_bytes: limit_bytes.parse()?, timeout: PATIENCE, ..RemoteOptions::default() };
    let remote = Remote::new(options)?;
    let table = StreamedTable::open_url(url, &ReadAhead::new(8 << 20), &remote)?;
    let (seed, version) = (u64::from(std::process::id()), version.parse::<u16>()?);
    let mut loader = Loader::new(&table, Batching::of(128).shuffled_blocks(seed, 1024, 2))?;
    let (mut batches, mut is_read) = (loader.epoch(0), vec![false; N_ROWS]);
    while let Some(batch) = batches.next_batch()? {
        for (features, &label) in batch.features.chunks_exact(N_COLS).zip(batch.labels) {
            let value = value(label as usize, version);
            if features.iter().any(|&x| x != value) {
                bail!("row {label} is not that of version {version}");
            }
            is_read[label as usize] = true;
        }
    }
    if let Some(row) = is_read.iter().position(|is_read| !is_read) {
        bail!("row {row} was not read");
    }
    match remote.report().cache_problem {
        Some(problem) => bail!("{problem}"),
        None => Ok(()),
    }
}

/// The value of a row in a version of the table.
fn value(row: usize, version: u16) -> f32 {
    row as f32 + f32::from(version) / 8.0
}

/// The bytes of a version of the table.
fn table(dir: &Path, version: u16) -> Result<Vec<u8>> {
    let path = dir.join("table.safetensors");
    let mut writer = TableWriter::create(&path, Schema::shaped(&[N_COLS]))?;
    for row in 0..N_ROWS {
        writer.push(&[value(row, version); N_COLS], &[row as f32])?;
    }
    writer.finish()?;
    fs::read(&path).with_context(|| path.display().to_string())
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("cache-kills-shared")?;
    let tables = [table(&dir, 0)?, table(&dir, 1)?];
    let server = Server::start();
    server.put("/t", tables[0].clone());
    let ended = reader(attack, &dir, &server.url("/t"), 100 * BLOCK_BYTES, 0)?.start()?.wait()?;
    if !ended.success() {
        bail!("an undisturbed reader fails: {ended}");
    }
    Prepared::ready(CacheKills { tables, time: ended.elapsed })
}

/// A reader in `dir`, whose cache is `cache`.
fn reader(attack: &Attack<'_>, dir: &Path, url: &str, limit_bytes: u64, version: u16) -> Result<Run> {
    let this = std::env::current_exe().context("a process has an executable")?;
    let args = [CHILD, url, "cache", &limit_bytes.to_string(), &version.to_string()];
    Ok(attack.tool(&this.to_string_lossy(), dir).args(args).limit(LIMIT))
}

struct CacheKills {
    /// Two versions, of the same length.
    tables: [Vec<u8>; 2],
    /// How long an undisturbed reader takes.
    time: Duration,
}

impl Cases for CacheKills {
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        let server = Server::start();
        let mut version = 0;
        server.put("/t", self.tables[0].clone());
        // Room for a part of the table, so that blocks make room for others, or for all of it.
        let limit_bytes = BLOCK_BYTES * case.rng.u64(1..9) + BLOCK_BYTES / 2;
        for _ in 0..case.rng.u32(1..=3) {
            if case.rng.u8(..4) == 0 {
                version ^= 1;
                server.put("/t", self.tables[usize::from(version)].clone());
            }
            let start = || reader(case.attack, &case.dir, &server.url("/t"), limit_bytes, version)?.start();
            let mut readers: Vec<Running> = (0..case.rng.u32(1..=3)).map(|_| start()).collect::<Result<_>>()?;
            for reader in &mut readers {
                // In most cases while it runs, and in some after its end.
                if reader.runs_at(self.time.mul_f64(1.5 * case.rng.f64())) {
                    reader.kill();
                }
            }
            for reader in readers {
                let ended = reader.wait()?;
                case.check_manners(&ended);
                let is_right = ended.was_killed || ended.timed_out || ended.success();
                case.expect(is_right, Kind::Wrong, "a reader fails beside readers that are killed", &ended);
            }
        }
        let run = reader(case.attack, &case.dir, &server.url("/t"), limit_bytes, version)?;
        if let Some(ended) = case.succeed(run, "a reader fails after the kill of readers with the same cache")? {
            check_cache(case, limit_bytes, &ended);
        }
        Ok(())
    }
}

/// Checks that the cache is within its limit, knows its size, and has no file of a reader that is gone.
fn check_cache(case: &mut Case<'_>, limit_bytes: u64, ended: &Ended) {
    let cache = case.path("cache");
    case.check_no_leftovers(&cache, "the kill of readers leaves files behind in the cache", ended);
    let blocks = fs::read_dir(&cache).into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| is_block(path));
    let total: u64 = blocks.filter_map(|path| fs::metadata(path).ok()).map(|metadata| metadata.len()).sum();
    let counted = fs::read(cache.join("size")).ok().and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
    let what = format!("{total} bytes, {counted:?} counted, {limit_bytes} allowed\n{ended}");
    if total > limit_bytes || total == 0 {
        case.find(Kind::Wrong, "the kill of readers leaves a cache that is empty or above its limit", what);
    } else if counted.is_none_or(|counted| counted < total) {
        case.find(Kind::Wrong, "the kill of readers leaves a cache that counts fewer bytes than it has", what);
    }
}

fn is_block(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "block")
}
