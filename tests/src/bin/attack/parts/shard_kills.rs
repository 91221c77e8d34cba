//! A writer of shards killed at random moments: the folder has the old table or the new one, and the next writer removes
//! leftovers.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use brisk_table::{Schema, ShardSize, ShardedTable, ShardedWriter};

use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::report::Kind;
use crate::run::Run;

pub(crate) const PART: Part = Part { name: PartName::ShardKills, weight: 0.5, prepare };

/// The command that starts this program as the writer: `write-shards FOLDER ROUND`.
pub(crate) const CHILD: &str = "write-shards";

const N_ROWS: usize = 24 * 1024;
const N_COLS: usize = 16;

/// Writes a table of shards whose every value is the number of the round.
pub(crate) fn child(folder: &Path, round: &OsStr) -> Result<()> {
    let round: u16 = round.to_str().and_then(|round| round.parse().ok()).context("the round is a number")?;
    write(folder, round)
}

fn write(folder: &Path, round: u16) -> Result<()> {
    // Shard sizes differ from round to round, so that a mixture of two tables does not pass for one.
    let shard_rows = 2000 + usize::from(round % 7) * 500;
    let mut writer = ShardedWriter::create(folder, Schema::shaped(&[N_COLS]), ShardSize::Rows(shard_rows))?;
    let value = f32::from(round);
    for _ in 0..N_ROWS / 1024 {
        writer.push(&[value; 1024 * N_COLS], &[value; 1024])?;
    }
    writer.finish()?;
    Ok(())
}

/// A few rows in a few shards.
pub(super) fn write_small(folder: &Path) -> Result<()> {
    let mut writer = ShardedWriter::create(folder, Schema::named(["a", "b"]), ShardSize::Rows(20))?;
    for i in 0..50_u16 {
        writer.push(&[f32::from(i), 0.5], &[f32::from(i % 2)])?;
    }
    writer.finish()?;
    Ok(())
}

/// The round of the table in `folder`, whose bytes are all checked; `None` if there is no table.
fn round(folder: &Path) -> Result<Option<u16>> {
    // Without an index there is no table yet.
    if !folder.join("table.safetensors.index.json").is_file() {
        return Ok(None);
    }
    let table = ShardedTable::open(folder)?;
    table.verify()?;
    let value = table.rows::<f32>(0..1)?[0];
    for shard in 0..table.n_shards() {
        let rows = table.shard_rows(shard).context("a shard has rows")?;
        if table.rows::<f32>(rows)?.iter().any(|&x| x != value) {
            bail!("shard {shard} has rows of another table than the first");
        }
    }
    if table.n_rows() != N_ROWS {
        bail!("{} rows, expected {N_ROWS}", table.n_rows());
    }
    Ok(Some(value as u16))
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("shard-kills-shared")?;
    let ended = writer(attack, &dir, "table", 1)?.start()?.wait()?;
    if !ended.success() {
        bail!("an undisturbed write fails: {ended}");
    }
    Prepared::ready(ShardKills { time: ended.elapsed })
}

fn writer(attack: &Attack<'_>, dir: &Path, folder: &str, round: u16) -> Result<Run> {
    let this = std::env::current_exe().context("a process has an executable")?;
    Ok(attack.tool(&this.to_string_lossy(), dir).args([CHILD, folder, &round.to_string()]))
}

struct ShardKills {
    time: Duration,
}

impl Cases for ShardKills {
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        let folder = case.path("table");
        let mut before = None;
        if case.rng.bool() {
            write(&folder, 1)?;
            before = Some(1);
        }
        let n_kills = case.rng.u16(1..=3);
        for number in 2..2 + n_kills {
            let mut running = writer(case.attack, &case.dir, "table", number)?.start()?;
            if running.runs_at(self.time.mul_f64(1.1 * case.rng.f64())) {
                running.kill();
            }
            let ended = running.wait()?;
            case.count();
            match round(&folder) {
                Ok(found) if found == before || found == Some(number) => before = found,
                found => {
                    let found = found.map_or_else(|error| format!("{error:#}"), |round| format!("table {round:?}"));
                    let detail = format!("{found}, expected table {before:?} or {number}\n{ended}");
                    case.find(Kind::Loss, "a killed writer of shards loses the table", detail);
                }
            }
        }
        let ended = case.end(writer(case.attack, &case.dir, "table", 99)?)?;
        if !case.expect(ended.success(), Kind::Wrong, "shards cannot be written after a kill", &ended) {
            return Ok(());
        }
        match round(&folder) {
            Ok(Some(99)) => {}
            found => {
                let found = found.map_or_else(|error| format!("{error:#}"), |round| format!("table {round:?}"));
                case.find(Kind::Wrong, "a writer of shards makes another table after a kill", format!("{found}\n{ended}"));
            }
        }
        let dir = case.dir.clone();
        case.check_no_leftovers(&dir, "a writer of shards leaves files behind after a kill", &ended);
        let n_shards = ShardedTable::open(&folder).map_or(0, |table| table.n_shards());
        let n_files = std::fs::read_dir(&folder).map_or(0, Iterator::count);
        if n_files != n_shards + 1 {
            let detail = format!("{n_files} files for {n_shards} shards and an index\n{ended}");
            case.find(Kind::Loss, "a writer of shards leaves shards of older tables behind after a kill", detail);
        }
        Ok(())
    }
}
