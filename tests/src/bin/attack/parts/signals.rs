//! SIGINT, SIGTERM and SIGHUP at random moments: the program stops, writes a checkpoint, and prints how to resume.

use std::fs;
use std::time::Duration;

use anyhow::{Result, bail};

use super::import_kills::Import;
use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::report::Kind;
use crate::run::{Ended, Run, Signal, send};
use crate::training::Training;

pub(crate) const PART: Part = Part { name: PartName::Signals, weight: 1.5, prepare };

struct Signals {
    import: Import,
    training: Training,
    higgs_time: Duration,
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("signals-shared")?;
    let import = Import::prepare(attack, "signals")?;
    let training = Training::prepare(attack, &dir, 600, 12)?;
    let ended = training.options(attack.program("higgs", &dir)).start()?.wait()?;
    if !ended.success() {
        bail!("an undisturbed run fails: {ended}");
    }
    Prepared::ready(Signals { import, training, higgs_time: ended.elapsed })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Import,
    Higgs,
    DataParallel,
}

impl Cases for Signals {
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        let program = [Program::Import, Program::Higgs, Program::DataParallel][case.rng.usize(..3)];
        let signal = Signal::REQUESTS[case.rng.usize(..3)];
        match case.rng.u8(..6) {
            0 => self.ignored(case, program, signal),
            1 if program != Program::Higgs => self.in_background(case, program),
            _ => self.stopped(case, program, signal),
        }
    }
}

impl Signals {
    fn program(&self, case: &Case<'_>, program: Program) -> Run {
        match program {
            Program::Import => self.import.run(case),
            Program::Higgs => self.training.options(case.program("higgs")).args(["--json", "out.json"]),
            Program::DataParallel => self.training.replicas(case.program("data_parallel")).args(["--json", "out.json"]),
        }
    }

    fn moment(&self, case: &mut Case<'_>, program: Program) -> Duration {
        let time = match program {
            Program::Import => self.import.time,
            Program::Higgs => self.higgs_time,
            Program::DataParallel => self.training.reference.time,
        };
        time.mul_f64(1.05 * case.rng.f64())
    }

    /// One signal, or two in a row.
    fn stopped(&self, case: &mut Case<'_>, program: Program, signal: Signal) -> Result<()> {
        let old = if program == Program::Import { self.import.lay_old(case)? } else { None };
        let (run, moment) = (self.program(case, program), self.moment(case, program));
        let is_sent_twice = case.rng.u8(..5) == 0;
        let folder = case.path("run");
        let mut running = run.start()?;
        let mut was_sent = false;
        let mut had_run = false;
        if running.runs_at(moment) {
            // Once its log exists, a run can write a checkpoint.
            had_run = folder.join("metrics.csv").is_file();
            running.signal(signal);
            was_sent = true;
            if is_sent_twice {
                running.runs_at(moment + Duration::from_millis(case.rng.u64(..20)));
                running.signal(signal);
            }
        }
        let ended = running.wait()?;
        let by = format!("SIG{}", signal.name());
        if !self.check_end(case, &ended, signal, was_sent) {
            return Ok(());
        }
        match program {
            Program::Import => {
                self.import.check_old_or_new(case, old, &by, &ended);
                let dir = case.dir.clone();
                case.check_no_leftovers(&dir, &format!("import leaves files behind after {by}"), &ended);
            }
            Program::Higgs => {
                self.training.check_whole(case, &by, &ended);
                let dir = case.dir.clone();
                if is_sent_twice {
                    // The second signal ends it at once.
                    return Ok(());
                }
                case.check_no_leftovers(&dir, &format!("higgs leaves files behind after {by}"), &ended);
            }
            Program::DataParallel => {
                self.training.check_whole(case, &by, &ended);
                if !is_sent_twice {
                    let dir = case.dir.clone();
                    case.check_no_leftovers(&dir, &format!("data_parallel leaves files behind after {by}"), &ended);
                }
                let was_stopped = was_sent && had_run && !self.is_finished(&ended);
                if was_stopped && !is_sent_twice {
                    let has_last = folder.join("last.safetensors").is_file();
                    case.expect(has_last, Kind::Loss, &format!("data_parallel writes no checkpoint at {by}"), &ended);
                    let says_how = ended.stderr.contains("--resume") || ended.stdout.contains("--resume");
                    let what = format!("data_parallel does not say how to resume after {by}");
                    case.expect(says_how, Kind::Wrong, &what, &ended);
                }
                self.training.finish(case, &by)?;
            }
        }
        Ok(())
    }

    /// Whether it had finished its last epoch when the signal came.
    fn is_finished(&self, ended: &Ended) -> bool {
        let last = format!("epoch {0}/{0} ", self.training.n_epochs);
        ended.stderr.contains(&last)
    }

    /// Checks that it exits with status 0 or 128 + the signal, or that the signal ends it before it has done anything.
    fn check_end(&self, case: &mut Case<'_>, ended: &Ended, signal: Signal, was_sent: bool) -> bool {
        if ended.signal() == Some(signal.number()) && was_sent {
            case.count();
            // Its files show whether a checkpoint should have been written.
            return true;
        }
        if !case.check_manners_of_stopped(ended) {
            return false;
        }
        let expected = ended.success() || (was_sent && ended.code() == Some(128 + signal.number()));
        let what = format!("{} ends with another status than 0 or 128 + the signal after SIG{}", ended.name, signal.name());
        case.expect(expected, Kind::Wrong, &what, ended)
    }

    /// A signal that is ignored when the program starts stays ignored.
    fn ignored(&self, case: &mut Case<'_>, program: Program, signal: Signal) -> Result<()> {
        let script = format!(r#"trap '' {}; exec "$0" "$@""#, signal.name());
        let (run, moment) = (self.program(case, program).by(["sh", "-c", &script]), self.moment(case, program));
        let mut running = run.start()?;
        // The shell needs some time to start the program.
        if running.runs_at(moment.max(Duration::from_millis(20))) {
            running.signal(signal);
        }
        let ended = running.wait()?;
        if case.check_manners(&ended) {
            let what = format!("{} does not leave SIG{} ignored", ended.name, signal.name());
            if case.expect(ended.success(), Kind::Wrong, &what, &ended) && program == Program::DataParallel {
                self.training.check(case, "a signal that is ignored", &ended);
            }
        }
        Ok(())
    }

    /// In the background of a script, SIGINT is ignored, and SIGTERM stops the program.
    fn in_background(&self, case: &mut Case<'_>, program: Program) -> Result<()> {
        const SCRIPT: &str = r#""$0" "$@" & echo $! > pid; wait $!"#;
        let moment = self.moment(case, program);
        let mut running = self.program(case, program).by(["bash", "-c", SCRIPT]).start()?;
        if running.runs_at(moment.max(Duration::from_millis(20)))
            && let Some(process) = fs::read_to_string(case.path("pid")).ok().and_then(|text| text.trim().parse().ok())
        {
            send(process, Signal::Interrupt);
        }
        let ended = running.wait()?;
        if case.check_manners(&ended) {
            let what = format!("{} fails in the background of a script", ended.name);
            if case.expect(ended.success(), Kind::Wrong, &what, &ended) && program == Program::DataParallel {
                self.training.check(case, "a run in the background", &ended);
            }
        }
        Ok(())
    }
}
