//! Restart loops as in a container, where the program always has the same PID.

use anyhow::Result;

use super::import_kills::Import;
use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::run::Run;
use crate::training::Training;

pub(crate) const PART: Part = Part { name: PartName::SamePid, weight: 1.0, prepare };

/// Commands that start the program as PID 1 of a namespace: as root, and as a user who may create namespaces.
const NAMESPACES: [&[&str]; 2] = [
    &["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"],
    &["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"],
];

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("same-pid-shared")?;
    let is_possible = |by: &&&[&str]| {
        let ended = attack.tool("true", &dir).by(**by).start().and_then(crate::run::Running::wait);
        ended.is_ok_and(|ended| ended.success())
    };
    let Some(&namespace) = NAMESPACES.iter().find(is_possible) else {
        return Ok(Prepared::NotPossible("`unshare --pid` is missing or forbidden".to_owned()));
    };
    let import = Import::prepare(attack, "same-pid")?;
    let training = Training::prepare(attack, &dir, 600, 4)?;
    Prepared::ready(SamePid { namespace, import, training })
}

struct SamePid {
    namespace: &'static [&'static str],
    import: Import,
    training: Training,
}

impl Cases for SamePid {
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        if case.rng.bool() { self.import(case) } else { self.training(case) }
    }
}

impl SamePid {
    fn import(&self, case: &mut Case<'_>) -> Result<()> {
        let old = self.import.lay_old(case)?;
        let run = self.import.run(case).by(self.namespace);
        for _ in 0..case.rng.usize(1..=4) {
            let mut running = run.clone().start()?;
            if running.runs_at(self.import.time.mul_f64(case.rng.f64())) {
                running.kill();
            }
            let ended = running.wait()?;
            case.count();
            if ended.was_killed {
                self.import.check_old_or_new(case, old, "a kill in a PID namespace", &ended);
            }
        }
        self.import.finish(case, run, "a kill of a process with the same PID")
    }

    fn training(&self, case: &mut Case<'_>) -> Result<()> {
        const DISTURBANCE: &str = "a kill of a process with the same PID";
        let saves = Training::drawn_saves(&mut case.rng);
        let run = |case: &Case<'_>| -> Run {
            let run = self.training.replicas(case.program("data_parallel")).args(["--resume", "auto", "--json", "out.json"]);
            run.replaced("--checkpoint-every", saves).by(self.namespace)
        };
        for _ in 0..case.rng.usize(1..=4) {
            let mut running = run(case).start()?;
            if running.runs_at(self.training.reference.time.mul_f64(case.rng.f64())) {
                running.kill();
            }
            let ended = running.wait()?;
            case.count();
            self.training.check_whole(case, DISTURBANCE, &ended);
        }
        let run = run(case);
        if let Some(ended) = case.succeed(run, &format!("data_parallel cannot be resumed after {DISTURBANCE}"))? {
            self.training.check(case, DISTURBANCE, &ended);
        }
        Ok(())
    }
}
