//! Training by threads, killed at random moments and resumed.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::report::Kind;
use crate::training::{Training, results};

pub(crate) const PART: Part = Part { name: PartName::TrainingKills, weight: 1.5, prepare };

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("training-kills-shared")?;
    let training = Training::prepare(attack, &dir, 600, 6)?;
    let ended = simulated(&training, attack.program("higgs", &dir)).start()?.wait()?;
    if !ended.success() {
        bail!("an undisturbed run fails: {ended}");
    }
    let higgs = results(&dir.join("higgs.json"))?;
    Prepared::ready(TrainingKills { training, higgs, higgs_time: ended.elapsed })
}

/// `higgs` on simulated rows, so that the simulation and its files are disturbed too.
fn simulated(training: &Training, run: crate::run::Run) -> crate::run::Run {
    let n_epochs = training.n_epochs.to_string();
    run.args(["--rows", "900", "--hidden", "16,16", "--batch", "20", "--patience", "0", "--data-dir", "simulated"]).args([
        "--runs",
        "runs",
        "--epochs",
        &n_epochs,
        "--json",
        "higgs.json",
    ])
}

struct TrainingKills {
    training: Training,
    higgs: Vec<(&'static str, serde_json::Value)>,
    higgs_time: Duration,
}

impl Cases for TrainingKills {
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        if case.rng.u8(..4) == 0 { self.higgs(case) } else { self.data_parallel(case) }
    }
}

impl TrainingKills {
    fn data_parallel(&self, case: &mut Case<'_>) -> Result<()> {
        let saves = Training::drawn_saves(&mut case.rng);
        for _ in 0..case.rng.usize(1..=3) {
            let run = self.training.replicas(case.program("data_parallel")).args(["--resume", "auto", "--json", "out.json"]);
            let run = run.replaced("--checkpoint-every", saves);
            let moment = self.training.reference.time.mul_f64(1.1 * case.rng.f64());
            let mut running = run.start()?;
            if running.runs_at(moment) {
                running.kill();
            }
            let ended = running.wait()?;
            if !ended.was_killed && !ended.success() {
                case.check_manners(&ended);
                case.find(Kind::Wrong, "data_parallel cannot be resumed after a kill", ended.to_string());
                return Ok(());
            }
            case.count();
            self.training.check_whole(case, "a kill", &ended);
        }
        self.training.finish(case, "a kill")
    }

    /// `higgs` starts from the beginning, with the tables that the killed runs have left.
    fn higgs(&self, case: &mut Case<'_>) -> Result<()> {
        for _ in 0..case.rng.usize(1..=3) {
            let moment = self.higgs_time.mul_f64(1.1 * case.rng.f64());
            let mut running = simulated(&self.training, case.program("higgs")).start()?;
            if running.runs_at(moment) {
                running.kill();
            }
            let ended = running.wait()?;
            case.count();
            self.training.check_whole(case, "a kill", &ended);
        }
        let run = simulated(&self.training, case.program("higgs"));
        let Some(ended) = case.succeed(run, "higgs fails after a kill")? else { return Ok(()) };
        match results(&case.path("higgs.json")) {
            Ok(found) if found == self.higgs => {}
            found => {
                let detail = format!("{found:?}, undisturbed {:?}\n{ended}", self.higgs);
                case.find(Kind::Wrong, "higgs ends with other results after a kill", detail);
            }
        }
        let data = case.path("simulated");
        case.check_no_leftovers(&data, "higgs leaves files behind among its tables after a kill", &ended);
        Ok(())
    }
}
