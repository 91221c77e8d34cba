use std::fmt;
use std::time::Duration;

use clap::ValueEnum as _;
use serde_json::{Value, json};

use crate::command_line::PartName;

impl fmt::Display for PartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().expect("no part is hidden");
        f.write_str(value.get_name())
    }
}

/// What an attack found, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Data is gone or damaged, or temporary files remain.
    Loss,
    /// A program panicked or crashed.
    Panic,
    /// A program did not end in time.
    Hang,
    /// A program broke a promise in another way.
    Wrong,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Loss, Self::Panic, Self::Hang, Self::Wrong];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Panic => "panic",
            Self::Hang => "hang",
            Self::Wrong => "wrong result",
        }
    }
}

/// One kind of failure of one part, however often it was seen.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    /// What happened, the same text each time.
    pub(crate) what: String,
    /// What was seen the first time.
    pub(crate) detail: String,
    /// The command that repeats it.
    pub(crate) repeat: String,
    pub(crate) times: u64,
}

/// What was tried and found in one part.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) part: PartName,
    /// Programs that were started.
    pub(crate) attempts: u64,
    pub(crate) findings: Vec<Finding>,
    /// Why this machine cannot run the part, if it cannot.
    pub(crate) not_possible: Option<String>,
    pub(crate) time: Duration,
}

impl Row {
    pub(crate) fn new(part: PartName) -> Self {
        Self { part, attempts: 0, findings: Vec::new(), not_possible: None, time: Duration::ZERO }
    }

    /// Adds a finding; returns whether it is the first of its kind.
    pub(crate) fn add(&mut self, finding: Finding) -> bool {
        let known = self.findings.iter_mut().find(|known| known.kind == finding.kind && known.what == finding.what);
        match known {
            Some(known) => known.times += 1,
            None => {
                self.findings.push(finding);
                return true;
            }
        }
        false
    }

    fn count(&self, kind: Kind) -> u64 {
        self.findings.iter().filter(|finding| finding.kind == kind).map(|finding| finding.times).sum()
    }
}

/// The result of an attack.
#[derive(Debug)]
pub(crate) struct AttackReport {
    pub(crate) seed: u64,
    pub(crate) rows: Vec<Row>,
}

impl AttackReport {
    /// Whether nothing was found and, if `require` is set, nothing was left out.
    pub(crate) fn is_clean(&self, require: bool) -> bool {
        self.rows.iter().all(|row| row.findings.is_empty() && !(require && row.not_possible.is_some()))
    }

    pub(crate) fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let findings = row.findings.iter().map(|finding| {
                json!({
                    "kind": finding.kind.name(), "what": finding.what, "detail": finding.detail,
                    "repeat": finding.repeat, "times": finding.times,
                })
            });
            json!({
                "part": row.part.to_string(), "attempts": row.attempts, "losses": row.count(Kind::Loss), "panics": row.count(Kind::Panic),
                "hangs": row.count(Kind::Hang), "wrong_results": row.count(Kind::Wrong), "seconds": row.time.as_secs_f64(),
                "not_possible": row.not_possible, "findings": findings.collect::<Vec<_>>(),
            })
        });
        json!({ "seed": self.seed, "parts": rows.collect::<Vec<_>>() })
    }
}

impl fmt::Display for AttackReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, part: &str, attempts: u64, counts: [u64; 4], seconds: f64| {
            let [losses, panics, hangs, wrong] = counts;
            writeln!(f, "{part:<16}  {attempts:>8}  {losses:>6}  {panics:>6}  {hangs:>5}  {wrong:>13}  {seconds:>7.1}")
        };
        writeln!(f, "{:<16}  attempts  losses  panics  hangs  wrong results  seconds", "part")?;
        for row in &self.rows {
            match &row.not_possible {
                Some(why) => writeln!(f, "{:<16}  not possible here: {why}", row.part.to_string())?,
                None => {
                    line(f, &row.part.to_string(), row.attempts, Kind::ALL.map(|kind| row.count(kind)), row.time.as_secs_f64())?
                }
            }
        }
        let sum = |of: &dyn Fn(&Row) -> u64| self.rows.iter().map(of).sum::<u64>();
        let counts = Kind::ALL.map(|kind| sum(&|row| row.count(kind)));
        let seconds = self.rows.iter().map(|row| row.time.as_secs_f64()).sum();
        line(f, "all", sum(&|row| row.attempts), counts, seconds)
    }
}
