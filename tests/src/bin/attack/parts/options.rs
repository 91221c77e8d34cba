//! Every option of every program with invalid values, and options that do not exist.

use std::ffi::OsString;
use std::fs;

use anyhow::{Context, Result, bail};

use super::{Cases, Part, Prepared};
use crate::attack::Attack;
use crate::case::Case;
use crate::command_line::PartName;
use crate::files::{self, Snapshot};
use crate::report::Kind;
use crate::run::Run;
use crate::training::Training;

pub(crate) const PART: Part = Part { name: PartName::Options, weight: 0.0, prepare };

const PROGRAMS: [&str; 4] = ["import", "inspect", "higgs", "data_parallel"];

struct Options {
    training: Training,
    table: Vec<u8>,
    /// A program, and its arguments in addition to the usual ones.
    cases: Vec<(&'static str, Vec<OsString>)>,
}

fn prepare(attack: &Attack<'_>) -> Result<Prepared> {
    let dir = attack.folder("options-shared")?;
    let training = Training::prepare(attack, &dir, 200, 1)?;
    let ended = attack.program("import", &dir).arg(&training.train).arg("table.safetensors").start()?.wait()?;
    let table = fs::read(dir.join("table.safetensors")).with_context(|| ended.to_string())?;
    let mut cases: Vec<(&str, Vec<OsString>)> = Vec::new();
    for program in PROGRAMS {
        let ended = attack.program(program, &dir).arg("--help").start()?.wait()?;
        let options = options(&ended.stdout);
        if options.len() < 2 {
            bail!("`{program} --help` names no options: {ended}");
        }
        for option in &options {
            cases.push((program, vec![option.into()]));
            cases.push((program, vec![format!("{option}=").into()]));
            // A typing error: the letter before the last is missing.
            cases.push((program, vec![mistyped(option).into()]));
            cases.extend(values().into_iter().map(|value| (program, vec![option.into(), value])));
        }
        let others = ["-", "-x", "--=", "---", "--no-such-option", "positional", "", "\u{1b}[31m", "--help=x", "-hx"];
        cases.extend(others.map(|word| (program, vec![word.into()])));
        cases.push((program, vec!["x".repeat(100_000).into()]));
        cases.push((program, vec!["x".into(); 2000]));
        cases.extend(not_utf8().into_iter().map(|word| (program, vec![word])));
    }
    Prepared::ready(Options { training, table, cases })
}

/// The options that a help text names.
fn options(help: &str) -> Vec<String> {
    let mut options = Vec::new();
    for line in help.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
        let words = line.split([' ', ',', '=', '<', '[']).take(3);
        let name = words.filter(|word| word.len() > 3).find(|word| word.starts_with("--"));
        options.extend(name.filter(|name| *name != "--help").map(str::to_owned));
    }
    options.sort();
    options.dedup();
    options
}

fn mistyped(option: &str) -> String {
    let mut letters: Vec<char> = option.chars().collect();
    letters.remove(letters.len() - 2);
    letters.into_iter().collect()
}

fn values() -> Vec<OsString> {
    let words = [
        "",
        " ",
        "garbage",
        "-1",
        "0",
        "1.5",
        "1e400",
        "-inf",
        "NaN",
        "99999999999999999999999999",
        "1099511627776",
        "65536,65536,65536",
        ",,",
        "\u{1b}[31m",
        "🦀",
        "no/such/folder/file",
    ];
    words.into_iter().map(OsString::from).chain([OsString::from("9".repeat(100_000))]).chain(not_utf8()).collect()
}

fn not_utf8() -> Option<OsString> {
    #[cfg(unix)]
    return Some(std::os::unix::ffi::OsStringExt::from_vec(b"a\xff\xfe".to_vec()));
    #[cfg(not(unix))]
    None
}

impl Options {
    fn usual(&self, program: &str, run: Run) -> Run {
        match program {
            "import" => run.args(["in.csv", "out.safetensors"]),
            "inspect" => run.arg("in.safetensors"),
            "higgs" => run.args(["--train", "in.csv", "--test", "in.csv", "--hidden", "8", "--epochs", "1", "--patience", "1"]),
            _ => run.args(["--train", "in.csv", "--test", "in.csv", "--hidden", "8", "--epochs", "1", "--patience", "1"]),
        }
    }
}

impl Cases for Options {
    fn n_listed(&self) -> u64 {
        self.cases.len() as u64
    }

    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        fs::copy(&self.training.train, case.path("in.csv")).context("cannot copy the rows")?;
        fs::write(case.path("in.safetensors"), &self.table).context("cannot write the table")?;
        let before = Snapshot::take(&case.dir);
        let (program, words) = &self.cases[case.index as usize % self.cases.len()];
        let mut run = self.usual(program, case.program(program));
        let is_given = |option: &str| words.first().is_some_and(|word| word == option);
        if ["higgs", "data_parallel"].contains(program) && !is_given("--data-dir") {
            run = run.args(["--data-dir", "data"]);
        }
        let run = match words.as_slice() {
            // Replaces the value that the option has in the usual arguments.
            [option, value] => run.replaced(&option.to_string_lossy(), value),
            _ => run.args(words),
        };
        let run = run.bounded();
        let ended = case.end(run)?;
        let is_mistyped = words.len() == 1 && words[0].to_str().is_some_and(|word| word.starts_with("--"));
        if is_mistyped && ended.success() && !is_given("--verify") && !is_given("--stats") {
            let what = format!("{program} takes an option that does not exist, or has no value");
            // A known option that succeeds without a value is a flag.
            let help = case.program(program).arg("--help").start()?.wait()?;
            let is_option = options(&help.stdout).iter().any(|option| is_given(option));
            case.expect(is_option, Kind::Wrong, &what, &ended);
        }
        let changes = before.changes(&Snapshot::take(&case.dir));
        if ended.code() == Some(2) && !changes.is_empty() {
            case.find(Kind::Wrong, format!("{program} writes before it refuses its options"), format!("{changes:?}\n{ended}"));
        }
        if changes.iter().any(|change| !change.ends_with(" is new")) {
            case.find(Kind::Loss, format!("{program} destroys a file by an option"), format!("{changes:?}\n{ended}"));
        }
        let damaged = files::damaged(&case.dir);
        if !damaged.is_empty() {
            case.find(Kind::Loss, format!("{program} leaves a damaged file"), format!("{damaged:?}\n{ended}"));
        }
        let dir = case.dir.clone();
        if !ended.timed_out && ended.panic().is_none() {
            case.check_no_leftovers(&dir, &format!("{program} leaves files behind"), &ended);
        }
        Ok(())
    }
}
