//! Ranks that shard the training state and the files of checkpoints, one or another killed at random moments, often while files
//! are written.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use brisk_train::Checkpoint;

use super::rank_kills::has_tool;
use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::report::Kind;
use crate::run::{Ended, Run, Running, Signal, send};
use crate::training::{Training, results};

pub(crate) const PART: Part = Part { name: PartName::ZeroKills, weight: 1.0, prepare };

const LIMIT: Duration = Duration::from_secs(120);

/// How many ranks a case may have.
const WORLDS: [&str; 2] = ["2", "3"];

/// How often a case kills a rank.
const N_KILLS: usize = 2;

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let shared = attack.folder("zero-kills-shared")?;
    if !has_tool(attack, &shared, "mpirun") {
        return Ok(Prepared::NotPossible("there is no mpirun".to_owned()));
    }
    let training = Training::prepare(attack, &shared, 400, 3)?;
    let mut references = Vec::new();
    for n_ranks in WORLDS {
        let dir = attack.folder(&format!("zero-kills-shared-{n_ranks}"))?;
        let ended = job(&training, attack.program("launch", &dir), attack, n_ranks).start()?.wait()?;
        if ended.stderr.contains("without MPI") {
            let why = "data_parallel was built without MPI; build it with `--features mpi`";
            return Ok(Prepared::NotPossible(why.to_owned()));
        }
        if !ended.success() {
            bail!("an undisturbed job fails: {ended}");
        }
        references.push((n_ranks, Outcome::read(&dir)?, ended.elapsed));
    }
    Prepared::ready(ZeroKills { training, references })
}

/// Training with a checkpoint of a file from each rank after every step, and a bucket for each parameter, so that every rank has
/// some to write.
fn job(training: &Training, launch: Run, attack: &Attack<'_>, n_ranks: &str) -> Run {
    let run =
        training.ranks(launch.args(["-n", n_ranks]).arg(attack.path_of("data_parallel"))).replaced("--checkpoint-every", "1");
    run.args(["--zero", "3", "--checkpoint-files", "each", "--bucket-mb", "0.0005", "--json", "out.json"]).limit(LIMIT)
}

struct ZeroKills {
    training: Training,
    /// The number of ranks, the outcome of an undisturbed job, and its time.
    references: Vec<(&'static str, Outcome, Duration)>,
}

impl Cases for ZeroKills {
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        let (n_ranks, reference, time) = &self.references[case.rng.usize(..self.references.len())];
        let resumed =
            |case: &Case<'_>| job(&self.training, case.program("launch"), case.attack, n_ranks).args(["--resume", "auto"]);
        let mut at = None;
        for _ in 0..N_KILLS {
            let mut running = resumed(case).start()?;
            let was_killed = kill_one(case, &mut running, *time);
            let ended = running.wait()?;
            if ended.timed_out {
                case.find(Kind::Hang, "a sharded job does not end after the kill of a rank", ended.to_string());
                return Ok(());
            }
            if !was_killed {
                break;
            }
            case.count();
            self.training.check_whole(case, "the kill of a rank", &ended);
            at = check_last(case, at, &ended);
        }
        let Some(ended) = case.succeed(resumed(case), "a sharded job cannot be resumed after the kill of a rank")? else {
            return Ok(());
        };
        let differences = match Outcome::read(&case.dir) {
            Ok(found) => reference.differences(&found),
            Err(error) => vec![format!("{error:#}")],
        };
        if !differences.is_empty() {
            let what = "a sharded job ends with other results after the kill of a rank";
            case.find(Kind::Wrong, what, format!("{}\n{ended}", differences.join(", ")));
        }
        case.check_no_leftovers(&case.path("run"), "a sharded job leaves files behind after the kill of a rank", &ended);
        Ok(())
    }
}

/// Kills one of the ranks: at any moment, or when the first file of a checkpoint has been written. Returns whether there was one
/// to kill.
fn kill_one(case: &mut Case<'_>, running: &mut Running, time: Duration) -> bool {
    let run = case.path("run");
    let mut ranks = Vec::new();
    if case.rng.u8(..4) == 0 {
        if running.runs_at(time.mul_f64(case.rng.f64())) {
            ranks = running.processes("data_parallel");
        }
    } else {
        let first = generation(&run) + case.rng.u64(1..=12);
        if running.runs_until(|_| generation(&run) >= first) {
            ranks = running.processes("data_parallel");
            let (now, since) = (generation(&run), Instant::now());
            while generation(&run) == now && since.elapsed() < Duration::from_secs(1) {}
            std::thread::sleep(Duration::from_micros(case.rng.u64(..3000)));
        }
    }
    let Some(&rank) = case.rng.choice(&ranks) else { return false };
    let is_running = running.is_running();
    send(rank, Signal::Kill);
    is_running
}

/// The number of the newest checkpoint of which there is a file.
fn generation(run: &Path) -> u64 {
    let names = fs::read_dir(run).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let of = |name: &str| name.strip_prefix("last-")?.split('-').next()?.parse().ok();
    names.filter_map(|name| name.to_str().and_then(of)).max().unwrap_or(0)
}

/// Checks that the last checkpoint is intact and no older than it was before the kill; returns its epoch and batch.
fn check_last(case: &mut Case<'_>, before: Option<(u64, u64)>, ended: &Ended) -> Option<(u64, u64)> {
    let path = case.path("run/last.safetensors");
    if before.is_none() && !case.path("run/last.safetensors.index.json").exists() {
        return None;
    }
    let position = |checkpoint: Checkpoint| -> Result<(u64, u64), brisk_train::Error> {
        // At the end of an epoch there is none.
        let batch = checkpoint.metadata("batch", "a number").unwrap_or(0);
        Ok((checkpoint.metadata("epoch", "a number")?, batch))
    };
    match Checkpoint::load(&path).and_then(position) {
        Ok(at) => {
            let what = "the last checkpoint is older than before the kill of a rank";
            case.expect(before.is_none_or(|before| before <= at), Kind::Loss, what, ended);
            Some(at)
        }
        Err(error) => {
            case.find(Kind::Loss, "the kill of a rank damages the last checkpoint", format!("{error}\n{ended}"));
            before
        }
    }
}

/// What a job leaves that depends only on its rows and options.
struct Outcome {
    checkpoints: Vec<(&'static str, Checkpoint)>,
    metrics: Vec<u8>,
    results: Vec<(&'static str, serde_json::Value)>,
}

impl Outcome {
    fn read(dir: &Path) -> Result<Self> {
        let checkpoint = |name| Ok((name, Checkpoint::load(dir.join("run").join(name))?));
        let path = dir.join("run/metrics.csv");
        Ok(Self {
            checkpoints: ["best.safetensors", "last.safetensors"].into_iter().map(checkpoint).collect::<Result<_>>()?,
            metrics: fs::read(&path).with_context(|| path.display().to_string())?,
            results: results(&dir.join("out.json"))?,
        })
    }

    fn differences(&self, found: &Self) -> Vec<String> {
        let pairs = self.checkpoints.iter().zip(&found.checkpoints);
        let checkpoints = pairs.filter(|((_, a), (_, b))| !a.tensors().eq(b.tensors())).map(|((name, _), _)| (*name).to_owned());
        let others = [("metrics.csv", self.metrics != found.metrics), ("the results", self.results != found.results)];
        let others = others.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned());
        checkpoints.chain(others).collect()
    }
}
