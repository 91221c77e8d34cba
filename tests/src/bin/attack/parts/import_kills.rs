//! `import` killed at random moments: the old table stays or the new one is complete, and the next import removes leftovers.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fastrand::Rng;

use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::files;
use crate::report::Kind;
use crate::run::{Ended, Run};
use crate::training::csv;

pub(crate) const PART: Part = Part {
    name: PartName::ImportKills,
    weight: 1.0,
    prepare: |attack| Prepared::ready(ImportKills { import: Import::prepare(attack, "import-kills")? }),
};

/// An import that takes long enough to be disturbed, and its result.
pub(crate) struct Import {
    pub(crate) source: PathBuf,
    /// The existing table.
    pub(crate) old: Vec<u8>,
    pub(crate) new: Vec<u8>,
    pub(crate) time: Duration,
}

/// The minimum duration of an import to disturb.
const LEAST: Duration = Duration::from_millis(120);

impl Import {
    pub(crate) fn prepare(attack: &Attack<'_>, part: &str) -> Result<Self> {
        let dir = attack.folder(&format!("{part}-shared"))?;
        let (source, dest) = (dir.join("in.csv"), dir.join("out.safetensors"));
        let mut rng = Rng::with_seed(attack.seed());
        let mut import = |n_rows: usize| {
            fs::write(&source, csv(&mut rng, n_rows, 8)).context("cannot write the rows")?;
            let ended = attack.program("import", &dir).arg(&source).arg(&dest).start()?.wait()?;
            if !ended.success() {
                bail!("an undisturbed import fails: {ended}");
            }
            Ok((fs::read(&dest).context("an undisturbed import makes no table")?, ended.elapsed))
        };
        let (old, _) = import(50)?;
        let mut n_rows = 4000;
        loop {
            let (new, time) = import(n_rows)?;
            if time > LEAST || n_rows > 1_000_000 {
                return Ok(Self { source, old, new, time });
            }
            n_rows *= 2;
        }
    }

    /// The import, into `out.safetensors` of the case's folder.
    pub(crate) fn run(&self, case: &Case<'_>) -> Run {
        case.program("import").arg(&self.source).arg("out.safetensors")
    }

    /// Writes the old table, or leaves no file at the path.
    pub(crate) fn lay_old(&self, case: &mut Case<'_>) -> Result<Option<&[u8]>> {
        let old = case.rng.bool().then_some(self.old.as_slice());
        old.map_or(Ok(()), |old| fs::write(case.path("out.safetensors"), old)).context("cannot write the old table")?;
        Ok(old)
    }

    /// Checks that the old table is there, or all of the new one.
    pub(crate) fn check_old_or_new(&self, case: &mut Case<'_>, old: Option<&[u8]>, disturbance: &str, ended: &Ended) {
        let found = fs::read(case.path("out.safetensors")).ok();
        if found.as_deref() != old && found.as_deref() != Some(&self.new) {
            let what = format!("import loses the table that was there, or leaves a part of one, after {disturbance}");
            case.find(Kind::Loss, what, format!("{:?} bytes\n{ended}", found.map(|bytes| bytes.len())));
        }
    }

    /// Imports once more: that succeeds, gives the new table, and leaves nothing else in the folder.
    pub(crate) fn finish(&self, case: &mut Case<'_>, run: Run, disturbance: &str) -> Result<()> {
        let what = format!("import fails after {disturbance}");
        let Some(ended) = case.succeed(run, &what)? else { return Ok(()) };
        let found = fs::read(case.path("out.safetensors")).ok();
        let what = format!("import makes another table after {disturbance}");
        case.expect(found.as_ref() == Some(&self.new), Kind::Wrong, &what, &ended);
        let dir = case.dir.clone();
        case.check_no_leftovers(&dir, &format!("import leaves files behind after {disturbance}"), &ended);
        Ok(())
    }
}

struct ImportKills {
    import: Import,
}

impl Cases for ImportKills {
    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        if case.rng.u8(..8) == 0 {
            return self.two_at_once(case);
        }
        let Import { time, .. } = self.import;
        let mut old = self.import.lay_old(case)?;
        let with_json = case.rng.bool();
        // The last import removes what killed ones have left of the same files.
        let import = |case: &Case<'_>| {
            let run = self.import.run(case);
            if with_json { run.args(["--json", "out.json"]) } else { run }
        };
        for _ in 0..case.rng.usize(1..=3) {
            let moment = time.mul_f64(1.1 * case.rng.f64());
            let mut running = import(case).start()?;
            if running.runs_at(moment) {
                running.kill();
            }
            let ended = running.wait()?;
            case.count();
            self.import.check_old_or_new(case, old, "a kill", &ended);
            if fs::read(case.path("out.safetensors")).ok().as_ref() == Some(&self.import.new) {
                old = Some(&self.import.new);
            }
            let damaged = files::damaged(&case.dir);
            if !damaged.is_empty() {
                case.find(Kind::Loss, "import leaves a damaged file after a kill", format!("{damaged:?}\n{ended}"));
            }
        }
        let run = import(case);
        self.import.finish(case, run, "a kill")
    }
}

impl ImportKills {
    /// Two imports into one path at once: both succeed, since neither removes the temporary file of the other.
    fn two_at_once(&self, case: &mut Case<'_>) -> Result<()> {
        let mut first = self.import.run(case).start()?;
        first.runs_at(self.import.time.mul_f64(case.rng.f64()));
        let second = self.import.run(case).start()?;
        for ended in [first.wait()?, second.wait()?] {
            if case.check_manners(&ended) {
                case.expect(ended.success(), Kind::Wrong, "import fails beside another into the same path", &ended);
            }
        }
        let run = self.import.run(case);
        self.import.finish(case, run, "two imports at once")
    }
}
