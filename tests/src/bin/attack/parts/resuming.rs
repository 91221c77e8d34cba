//! Resuming from the folder of a dead run, and from checkpoints that must be refused.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use brisk_train::Checkpoint;
use fastrand::Rng;
use serde_json::Value;

use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::files::Snapshot;
use crate::report::Kind;
use crate::run::Run;
use crate::training::{Training, csv};

pub(crate) const PART: Part = Part { name: PartName::Resuming, weight: 0.3, prepare };

/// Epochs after which the run is interrupted.
const CUT: &str = "2";

struct Resuming {
    training: Training,
    /// A run that has ended after two of four epochs, by name and bytes.
    cut: Vec<(String, Vec<u8>)>,
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("resuming-shared")?;
    let training = Training::prepare(attack, &dir, 600, 4)?;
    let cut = attack.folder("resuming-cut")?;
    let ended = training.replicas(attack.program("data_parallel", &cut)).replaced("--epochs", CUT).start()?.wait()?;
    let mut files = Vec::new();
    for entry in fs::read_dir(cut.join("run")).with_context(|| ended.to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, fs::read(&path)?));
    }
    if !files.iter().any(|(name, _)| name == "last.safetensors") {
        bail!("a run leaves no last.safetensors: {ended}");
    }
    Prepared::ready(Resuming { training, cut: files })
}

/// Brings a run's folder into a state.
type Disturb = fn(&Path) -> Result<()>;

/// States of a run's folder that a run must resume from, and then end as if it had never been disturbed.
const GOOD: [(&str, Disturb); 7] = [
    ("no damage", |_| Ok(())),
    ("a kill before the first checkpoint", |run| remove(run, &["best.safetensors", "last.safetensors"])),
    ("damage to both checkpoints", |run| damage(run, &["best.safetensors", "last.safetensors"])),
    ("damage to the last checkpoint", |run| damage(run, &["last.safetensors"])),
    ("damage to the best checkpoint", |run| damage(run, &["best.safetensors"])),
    ("the loss of the last checkpoint", |run| remove(run, &["last.safetensors"])),
    ("a kill while the log was written", |run| {
        let log = run.join("metrics.csv");
        let mut text = fs::read(&log)?;
        text.extend_from_slice(b"3,0.0");
        Ok(fs::write(log, text)?)
    }),
];

/// Changes with which a run must refuse to resume, leaving its folder unchanged.
const BAD: [(&str, Change); 14] = [
    ("other rows", Change::Rows(|rng, _| csv(rng, 600, 6))),
    ("inverted labels", Change::Rows(|_, text| inverted(text))),
    ("one other label", Change::Rows(|_, text| text.replacen("\n0,", "\n1,", 1))),
    ("rows in another order", Change::Rows(|_, text| reversed(text))),
    ("more rows", Change::Rows(|rng, text| text.to_owned() + csv(rng, 10, 6).split_once('\n').map_or("", |(_, rows)| rows))),
    ("a step of 2^64 - 1", Change::Metadata("step", "18446744073709551615")),
    ("an epoch of 2^64 - 1", Change::Metadata("epoch", "18446744073709551615")),
    ("a step of -1", Change::Metadata("step", "-1")),
    ("a batch beyond the epoch", Change::Metadata("batch", "1000000")),
    ("a newer format", Change::Header(newer)),
    ("another network", Change::Options(&["--hidden", "16,8"])),
    ("another seed", Change::Options(&["--seed", "9"])),
    ("a checkpoint that is text", Change::File(b"half a checkpoint")),
    ("an empty checkpoint", Change::File(b"")),
];

/// How a resumed run differs from the interrupted one.
#[derive(Clone, Copy)]
enum Change {
    /// The text of the rows to train on.
    Rows(fn(&mut Rng, &str) -> String),
    /// A named string of the checkpoint, which is then saved as brisk saves it, so that only the value is wrong.
    Metadata(&'static str, &'static str),
    /// The named strings in the checkpoint's header; the rest of the file stays as it is.
    Header(fn(&mut serde_json::Map<String, Value>)),
    Options(&'static [&'static str]),
    /// The bytes of the checkpoint.
    File(&'static [u8]),
}

const OTHERS: [fn(&Resuming, &mut Case<'_>) -> Result<()>; 3] =
    [Resuming::other_precision, Resuming::twice_at_once, Resuming::checkpoint_is_no_file];

impl Cases for Resuming {
    fn n_listed(&self) -> u64 {
        (GOOD.len() + BAD.len() + OTHERS.len()) as u64
    }

    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        let run = case.path("run");
        fs::create_dir(&run)?;
        for (name, bytes) in &self.cut {
            fs::write(run.join(name), bytes)?;
        }
        let index = case.index as usize;
        if let Some((what, disturb)) = GOOD.get(index) {
            disturb(&run)?;
            return self.training.finish(case, what);
        }
        let index = index - GOOD.len();
        if let Some((what, change)) = BAD.get(index) {
            return self.refuse(case, what, *change);
        }
        match OTHERS.get(index - BAD.len()) {
            Some(other) => other(self, case),
            None => self.flipped_bit(case),
        }
    }
}

impl Resuming {
    /// Resumes from the last checkpoint of the case's run.
    fn resume(&self, case: &Case<'_>) -> Run {
        let run = self.training.options(case.program("data_parallel"));
        run.args(["--replicas", "2", "--checkpoint-every", "7", "--resume", "run/last.safetensors", "--json", "out.json"])
    }

    fn refuse(&self, case: &mut Case<'_>, what: &str, change: Change) -> Result<()> {
        let last = case.path("run/last.safetensors");
        let mut run = self.resume(case);
        match change {
            Change::Rows(change) => {
                let text = change(&mut case.rng, &fs::read_to_string(&self.training.train)?);
                fs::write(case.path("other.csv"), text)?;
                run = run.replaced("--train", "other.csv");
            }
            Change::Metadata(key, value) => {
                let mut checkpoint = Checkpoint::load(&last)?;
                checkpoint.insert_metadata(key, value);
                checkpoint.save(&last)?;
            }
            Change::Header(change) => fs::write(&last, with_metadata(&fs::read(&last)?, change)?)?,
            Change::Options(options) => run = run.replaced(options[0], options[1]),
            Change::File(bytes) => fs::write(&last, bytes)?,
        }
        self.refused(case, run, what)
    }

    /// Runs and checks that this is refused, and that the run's folder is unchanged.
    fn refused(&self, case: &mut Case<'_>, run: Run, what: &str) -> Result<()> {
        let folder = case.path("run");
        let before = Snapshot::take(&folder);
        let ended = case.refuse(run, &format!("a run is resumed with {what}"))?;
        if ended.success() || ended.timed_out {
            return Ok(());
        }
        // A lock file may stay, since no process holds it.
        let changes = before.changes(&Snapshot::take(&folder));
        let changes: Vec<_> = changes.into_iter().filter(|change| !change.contains(".lock")).collect();
        if !changes.is_empty() {
            case.find(Kind::Loss, "a refused resume changes files of the run", format!("{}\n{ended}", changes.join(", ")));
        }
        Ok(())
    }

    /// Flips one bit of the checkpoint, anywhere.
    fn flipped_bit(&self, case: &mut Case<'_>) -> Result<()> {
        let last = case.path("run/last.safetensors");
        let mut bytes = fs::read(&last)?;
        let (byte, bit) = (case.rng.usize(..bytes.len()), case.rng.u8(..8));
        bytes[byte] ^= 1 << bit;
        fs::write(&last, bytes)?;
        let run = self.resume(case);
        self.refused(case, run, "a flipped bit in its checkpoint")
    }

    /// Resumes in another precision: it is refused, or the output names both precisions.
    fn other_precision(&self, case: &mut Case<'_>) -> Result<()> {
        let run = self.resume(case).args(["--precision", "f16"]);
        let ended = case.end(run)?;
        // Each run prints its own precision, so both must be on one line.
        let is_said = ended.stderr.lines().any(|line| line.contains("f32") && line.contains("f16"));
        case.expect(is_said, Kind::Wrong, "an f32 run is resumed in f16 and nothing says so", &ended);
        Ok(())
    }

    /// A second run in the folder of a run that is still active is refused. After a kill, which leaves no lock, the run resumes.
    fn twice_at_once(&self, case: &mut Case<'_>) -> Result<()> {
        let long = |case: &Case<'_>| {
            let run = self.training.replicas(case.program("data_parallel")).args(["--resume", "auto"]);
            run.replaced("--epochs", "2000")
        };
        let log = case.path("run/metrics.csv");
        let n_bytes = || fs::metadata(&log).map_or(0, |log| log.len());
        let n_before = n_bytes();
        let mut first = long(case).start()?;
        if !first.runs_until(|_| n_bytes() > n_before) {
            let ended = first.wait()?;
            case.check_manners(&ended);
            case.find(Kind::Wrong, "a run cannot be resumed", ended.to_string());
            return Ok(());
        }
        let mut second = long(case).start()?;
        // It waits 2 s for the lock, which a process that was just killed may still hold. Long after that time, it would have
        // started to train.
        second.runs_at(self.training.reference.time * 4 + Duration::from_secs(8));
        let trains = second.is_running();
        second.kill();
        let second = second.wait()?;
        case.count();
        if trains || second.success() {
            case.find(Kind::Wrong, "a second run resumes in the folder of one that still runs", second.to_string());
        } else {
            case.check_manners(&second);
        }
        // A crash leaves no lock: after a kill, the run resumes at once.
        first.kill();
        let first = first.wait()?;
        case.count();
        let rest = self.training.replicas(case.program("data_parallel")).args(["--resume", "auto"]).replaced("--epochs", "2001");
        let mut rest = rest.start()?;
        let n_before = n_bytes();
        let resumes = rest.runs_until(|_| n_bytes() > n_before);
        rest.kill();
        let rest = rest.wait()?;
        case.count();
        if !resumes && !trains {
            case.find(Kind::Wrong, "a killed run leaves a lock behind", format!("{first}\n{rest}"));
        }
        Ok(())
    }

    /// `--resume` with a folder, a missing file, a file that is no checkpoint, and nothing.
    fn checkpoint_is_no_file(&self, case: &mut Case<'_>) -> Result<()> {
        fs::create_dir(case.path("run/folder.safetensors"))?;
        for path in ["run/no.safetensors", "run", "run/folder.safetensors", "no/folder/last.safetensors", "run/config.json", ""] {
            let run = self.resume(case).replaced("--resume", path);
            self.refused(case, run, "a path that is no checkpoint")?;
        }
        Ok(())
    }
}

fn remove(run: &Path, names: &[&'static str]) -> Result<()> {
    names.iter().try_for_each(|name| fs::remove_file(run.join(name)).context(*name))
}

/// Truncates the files in the middle.
fn damage(run: &Path, names: &[&'static str]) -> Result<()> {
    for name in names {
        let bytes = fs::read(run.join(name)).context(*name)?;
        fs::write(run.join(name), &bytes[..bytes.len() / 2])?;
    }
    Ok(())
}

fn inverted(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(',') {
        Some(("0", rest)) => format!("1,{rest}\n"),
        Some(("1", rest)) => format!("0,{rest}\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

fn reversed(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..].reverse();
    lines.join("\n") + "\n"
}

/// Sets every entry that names a version to one that is far in the future.
fn newer(metadata: &mut serde_json::Map<String, Value>) {
    const NEWER: &str = "4000000000";
    let mut has_version = false;
    for (_, value) in metadata.iter_mut().filter(|(key, _)| key.contains("version")) {
        *value = Value::from(NEWER);
        has_version = true;
    }
    if !has_version {
        metadata.insert("format_version".to_owned(), Value::from(NEWER));
    }
}

/// The safetensors file with a different `__metadata__`.
fn with_metadata(bytes: &[u8], change: fn(&mut serde_json::Map<String, Value>)) -> Result<Vec<u8>> {
    let n_header = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).context("a checkpoint has a length")? as usize;
    let (header, data) = bytes[8..].split_at_checked(n_header).context("a checkpoint has a header")?;
    let mut header: Value = serde_json::from_slice(header)?;
    change(header["__metadata__"].as_object_mut().context("a checkpoint has metadata")?);
    let mut text = serde_json::to_vec(&header)?;
    text.resize(text.len().next_multiple_of(8), b' ');
    Ok([&(text.len() as u64).to_le_bytes()[..], &text, data].concat())
}
