use std::path::{Path, PathBuf};

use anyhow::Result;
use fastrand::Rng;

use crate::attack::Attack;
use crate::report::{Finding, Kind, Row};
use crate::run::{Ended, Run};

/// The maximum number of bytes of an error message.
const MAX_MESSAGE_BYTES: usize = 4096;

/// Whether a program was asked to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stopped {
    No,
    Yes,
}

/// One case of a part, with its own folder and random numbers; collects findings.
pub(crate) struct Case<'a> {
    pub(crate) attack: &'a Attack<'a>,
    pub(crate) index: u64,
    pub(crate) dir: PathBuf,
    pub(crate) rng: Rng,
    row: &'a mut Row,
}

impl<'a> Case<'a> {
    pub(crate) fn new(attack: &'a Attack<'a>, index: u64, dir: PathBuf, row: &'a mut Row) -> Self {
        // The numbers of a case depend on seed, part and index only, so that one case can be repeated.
        let mut hash = attack.seed() ^ 0xcbf2_9ce4_8422_2325;
        for byte in row.part.to_string().bytes().chain(index.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self { attack, index, dir, rng: Rng::with_seed(hash), row }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A program that will be started in the case's folder.
    pub(crate) fn program(&self, name: &str) -> Run {
        self.attack.program(name, &self.dir)
    }

    /// Runs to the end and checks how the program ends.
    pub(crate) fn end(&mut self, run: Run) -> Result<Ended> {
        let ended = run.start()?.wait()?;
        self.check_manners(&ended);
        Ok(ended)
    }

    /// Records a finding: `what` is the same text for every finding of its kind, `detail` describes this one.
    #[expect(clippy::print_stderr, reason = "findings are reported as they are made")]
    pub(crate) fn find(&mut self, kind: Kind, what: impl Into<String>, detail: impl Into<String>) {
        let (what, detail) = (what.into(), detail.into());
        let repeat = self.attack.repeat(self.row.part, self.index);
        let finding = Finding { kind, what, detail, repeat, times: 1 };
        let text = format!(
            "  {}, case {}: {}\n    {}\n    repeat: {}",
            finding.kind.name(),
            self.index,
            finding.what,
            finding.detail.replace('\n', "\n    "),
            finding.repeat
        );
        if self.row.add(finding) {
            eprintln!("{text}");
        }
    }

    /// Records a finding unless `holds`; returns `holds`.
    pub(crate) fn expect(&mut self, holds: bool, kind: Kind, what: &str, ended: &Ended) -> bool {
        if !holds {
            self.find(kind, what, ended.to_string());
        }
        holds
    }

    /// Checks conditions that hold however a program ends: no panic, no hang, one error on one line of bounded length, no control
    /// characters.
    ///
    /// Returns whether they hold.
    pub(crate) fn check_manners(&mut self, ended: &Ended) -> bool {
        self.row.attempts += 1;
        self.check_printed(ended, Stopped::No)
    }

    /// The same for a program that a signal may have stopped, whose message need not be an error.
    pub(crate) fn check_manners_of_stopped(&mut self, ended: &Ended) -> bool {
        self.row.attempts += 1;
        self.check_printed(ended, Stopped::Yes)
    }

    fn check_printed(&mut self, ended: &Ended, stopped: Stopped) -> bool {
        let program = &ended.name;
        if ended.timed_out {
            self.find(Kind::Hang, format!("{program} does not end"), ended.to_string());
            return false;
        }
        if let Some(place) = ended.panic() {
            self.find(Kind::Panic, format!("{program} panics: {place}"), ended.to_string());
            return false;
        }
        if let Some(place) = ended.control_character() {
            self.find(Kind::Wrong, format!("{program} prints a raw control character"), format!("{place}\n{ended}"));
            return false;
        }
        let errors: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("error:")).collect();
        let is_usage = ended.code() == Some(2);
        let problem = match ended.code() {
            _ if stopped == Stopped::Yes => None,
            Some(0) if !errors.is_empty() => Some("succeeds with an error message"),
            Some(1) if errors.len() != 1 => Some("fails without exactly one line that starts with `error:`"),
            Some(1) if ended.stderr.lines().last() != errors.first().copied() => Some("prints more after its error message"),
            Some(1 | 2) if errors.iter().any(|line| line.len() > MAX_MESSAGE_BYTES) => Some("prints an error message over 4 KiB"),
            Some(2) if is_usage && ended.stderr.len() > 4 * MAX_MESSAGE_BYTES => Some("prints a usage error over 16 KiB"),
            Some(0..=2) | None => None,
            // 128 + a signal.
            Some(129..) => None,
            Some(_) => Some("exits with an undocumented status"),
        };
        if let Some(problem) = problem {
            self.find(Kind::Wrong, format!("{program} {problem}"), ended.to_string());
        }
        problem.is_none()
    }

    /// Like [`Self::end`], for a program that must succeed.
    pub(crate) fn succeed(&mut self, run: Run, what: &str) -> Result<Option<Ended>> {
        let ended = self.end(run)?;
        let success = ended.timed_out || ended.panic().is_some() || self.expect(ended.success(), Kind::Wrong, what, &ended);
        Ok(Some(ended).filter(|ended| success && ended.success()))
    }

    /// Like [`Self::end`], for a program that must refuse its arguments.
    pub(crate) fn refuse(&mut self, run: Run, what: &str) -> Result<Ended> {
        let ended = self.end(run)?;
        if !ended.timed_out && ended.panic().is_none() {
            self.expect(matches!(ended.code(), Some(1 | 2)), Kind::Wrong, what, &ended);
        }
        Ok(ended)
    }

    /// Counts a program that was started outside of `end`.
    pub(crate) fn count(&mut self) {
        self.row.attempts += 1;
    }

    /// Checks that no hidden or temporary files are left.
    pub(crate) fn check_no_leftovers(&mut self, dir: &Path, what: &str, ended: &Ended) {
        let left = crate::files::leftovers(dir);
        if !left.is_empty() {
            self.find(Kind::Loss, what, format!("temporary files: {}\n{ended}", left.join(", ")));
        }
    }
}
