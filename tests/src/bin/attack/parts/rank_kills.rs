//! Training by ranks under `launch --restarts`, one rank or another killed at random moments.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::report::Kind;
use crate::run::{Run, Signal, send};
use crate::training::Training;

pub(crate) const PART: Part = Part { name: PartName::RankKills, weight: 1.5, prepare };

const LIMIT: Duration = Duration::from_secs(120);

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("rank-kills-shared")?;
    if !has_tool(attack, &dir, "mpirun") {
        return Ok(Prepared::NotPossible("there is no mpirun".to_owned()));
    }
    let training = Training::prepare(attack, &dir, 1200, 8)?;
    match RankKills::of(training, attack, &dir)? {
        Ok(kills) => Prepared::ready(kills),
        Err(why) => Ok(Prepared::NotPossible(why)),
    }
}

impl RankKills {
    /// Kills of ranks that train as in `dir`, where an undisturbed job is run; or why that is not possible.
    pub(super) fn of(training: Training, attack: &Attack<'_>, dir: &Path) -> Result<Result<Self, String>> {
        std::fs::remove_dir_all(dir.join("run"))?;
        let ended = job(&training, attack.program("launch", dir), attack).start()?.wait()?;
        if ended.stderr.contains("without MPI") {
            let why = "data_parallel was built without MPI; build it with `--features mpi`";
            return Ok(Err(why.to_owned()));
        }
        if !ended.success() {
            bail!("an undisturbed job fails: {ended}");
        }
        Ok(Ok(Self { training, time: ended.elapsed }))
    }
}

/// Whether a program of the system can be started.
pub(crate) fn has_tool(attack: &Attack<'_>, dir: &Path, name: &str) -> bool {
    attack.tool(name, dir).arg("--version").start().and_then(crate::run::Running::wait).is_ok_and(|ended| ended.success())
}

fn job(training: &Training, launch: Run, attack: &Attack<'_>) -> Run {
    let launch = launch.args(["-n", "2", "--restarts", "6"]).arg(attack.path_of("data_parallel"));
    training.ranks(launch).args(["--json", "out.json"]).limit(LIMIT)
}

pub(super) struct RankKills {
    training: Training,
    time: Duration,
}

impl Cases for RankKills {
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        let saves = Training::drawn_saves(&mut case.rng);
        let job = job(&self.training, case.program("launch"), case.attack);
        let mut running = job.replaced("--checkpoint-every", saves).start()?;
        let mut moment = Duration::ZERO;
        for _ in 0..case.rng.usize(1..=2) {
            moment += self.time.mul_f64(case.rng.f64());
            if !running.runs_at(moment) {
                break;
            }
            let ranks = running.processes("data_parallel");
            if let Some(&rank) = case.rng.choice(&ranks) {
                send(rank, Signal::Kill);
            }
        }
        let ended = running.wait()?;
        case.count();
        if ended.timed_out {
            case.find(Kind::Hang, "a job does not end after the kill of a rank", ended.to_string());
        } else if let Some(place) = ended.panic() {
            case.find(Kind::Panic, format!("a rank panics after the kill of another: {place}"), ended.to_string());
        } else if case.expect(ended.success(), Kind::Wrong, "a job cannot be restarted after the kill of a rank", &ended) {
            self.training.check(case, "the kill of a rank", &ended);
        }
        Ok(())
    }
}
