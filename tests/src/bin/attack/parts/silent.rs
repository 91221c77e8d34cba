//! Inputs that are easily read wrongly without a word: the right value, a warning or an error that names the place is expected.
//!
//! Each row of the tables in `silent/` has files, command lines, and what must be said or computed.

mod downloads;
mod files;
mod found;
mod images;
pub(crate) mod killed_logs;
mod magnitudes;
mod odd_rows;
mod options;
mod resumed;
mod settings;
mod tables;
mod targets;
mod training;
mod values;

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Cases, Part, Prepared};
use crate::case::Case;
use crate::command_line::PartName;
use crate::report::Kind;
use crate::run::{Ended, Run, Signal};
use found::{Check, Found};

pub(crate) const PART: Part = Part { name: PartName::Silent, weight: 0.0, prepare: |_| Prepared::ready(Silent { rows: rows() }) };

struct Silent {
    rows: Vec<Row>,
}

fn rows() -> Vec<Row> {
    [
        tables::rows(),
        values::rows(),
        targets::rows(),
        magnitudes::rows(),
        options::rows(),
        files::rows(),
        training::rows_of_the_table(),
        odd_rows::rows(),
        images::rows(),
        settings::rows(),
        resumed::rows(),
        killed_logs::rows(),
        downloads::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What is done in the folder of a case.
type Within = Box<dyn Fn(&Path) -> Result<()>>;

/// One input, and what is expected of it.
struct Row {
    /// What is unusual about it.
    name: String,
    files: Vec<(String, Content)>,
    /// Programs with their arguments, without quoting. All but the last must succeed.
    lines: Vec<String>,
    /// Words that are replaced in a file before the last program: the file, the words and the new ones.
    edit: Option<[String; 3]>,
    expected: Expected,
    /// What this process does after the programs, in the folder of the case, and what must hold.
    within: Option<Within>,
    /// How often the first program is killed at moments that grow, before the programs run to their ends.
    n_kills: u32,
    /// What the last program says on standard error when it is asked to terminate.
    stopped_at: Option<&'static str>,
    /// Answers each connection to the address that stands for `{server}` in the programs.
    server: Option<Answer>,
}

type Answer = fn(TcpStream) -> io::Result<()>;

enum Content {
    Bytes(Vec<u8>),
    Folder,
    Link(&'static str),
    Fifo,
}

/// What must be said or computed by the last program. One of several words separated by `|` is enough.
struct Expected {
    /// How it may be refused.
    refused: Option<Refusal>,
    /// What holds if it succeeds, if it may.
    computed: Option<Check>,
}

/// An unsuccessful end.
struct Refusal {
    statuses: &'static [i32],
    /// What is said.
    words: Vec<String>,
}

impl Refusal {
    fn of(words: &[&str]) -> Self {
        Self { statuses: &[1, 2], words: owned(words) }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Fails with a message that has all of these words.
fn refused(words: &[&str]) -> Expected {
    Expected { refused: Some(Refusal::of(words)), computed: None }
}

/// Ends as a program does that SIGTERM has stopped, and says all of these words.
fn terminated(words: &[&str]) -> Expected {
    const STATUSES: &[i32] = &[128 + Signal::Terminate.number()];
    Expected { refused: Some(Refusal { statuses: STATUSES, words: owned(words) }), computed: None }
}

/// Succeeds, and the check holds.
fn computed(check: impl Fn(&Found<'_>) -> Result<()> + 'static) -> Expected {
    Expected { refused: None, computed: Some(Box::new(check)) }
}

/// Succeeds, and prints all of these words.
fn said(words: &[&str]) -> Expected {
    let words = owned(words);
    computed(move |found| found.said(&words))
}

/// Fails with a message that has all of these words, or succeeds, and the check holds.
fn either(words: &[&str], check: impl Fn(&Found<'_>) -> Result<()> + 'static) -> Expected {
    Expected { refused: Some(Refusal::of(words)), ..computed(check) }
}

/// Fails with a message that has all of the first words, or succeeds and prints all of the second.
fn refused_or_said(words: &[&str], warning: &[&str]) -> Expected {
    Expected { refused: Some(Refusal::of(words)), ..said(warning) }
}

/// A row without files, which [`Row::file`] adds.
fn row(name: impl Into<String>, lines: &[&str], expected: Expected) -> Row {
    Row {
        name: name.into(),
        files: Vec::new(),
        lines: owned(lines),
        edit: None,
        expected,
        within: None,
        n_kills: 0,
        stopped_at: None,
        server: None,
    }
}

/// A row of what this process does in a folder, and what must hold.
fn within(name: impl Into<String>, check: impl Fn(&Path) -> Result<()> + 'static) -> Row {
    Row { within: Some(Box::new(check)), ..row(name, &[], Expected { refused: None, computed: None }) }
}

impl Row {
    /// Checks what this process does with the files that the programs have left.
    fn then(self, check: impl Fn(&Path) -> Result<()> + 'static) -> Self {
        Self { within: Some(Box::new(check)), ..self }
    }

    fn killed(self, n_kills: u32) -> Self {
        Self { n_kills, ..self }
    }

    /// Asks the last program to terminate when it has said this.
    fn stopped_at(self, word: &'static str) -> Self {
        Self { stopped_at: Some(word), ..self }
    }

    fn served(self, answer: Answer) -> Self {
        Self { server: Some(answer), ..self }
    }

    fn file(self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.content(name, Content::Bytes(bytes.into()))
    }

    fn content(mut self, name: &str, content: Content) -> Self {
        self.files.push((name.to_owned(), content));
        self
    }

    fn edit(self, file: &str, from: &str, to: &str) -> Self {
        Self { edit: Some([file, from, to].map(str::to_owned)), ..self }
    }

    fn write(&self, case: &Case<'_>) -> Result<()> {
        for (name, content) in &self.files {
            let path = case.path(name);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let written = match content {
                Content::Bytes(bytes) => fs::write(&path, bytes),
                Content::Folder => fs::create_dir(&path),
                Content::Link(to) => make_by(Command::new("ln").args(["-s", to]).arg(&path)),
                Content::Fifo => make_by(Command::new("mkfifo").arg(&path)),
            };
            written.with_context(|| format!("{}: cannot make the file", path.display()))?;
        }
        Ok(())
    }
}

impl Cases for Silent {
    fn n_listed(&self) -> u64 {
        self.rows.len() as u64
    }

    fn run(&self, case: &mut Case<'_>) -> Result<()> {
        let row = &self.rows[case.index as usize % self.rows.len()];
        row.write(case)?;
        row.kill(case)?;
        let lines = row.addressed()?;
        if let Some((last, first)) = lines.split_last()
            && !row.run(case, first, last)?
        {
            return Ok(());
        }
        let Some(within) = &row.within else { return Ok(()) };
        case.count();
        let dir = case.dir.clone();
        match catch_unwind(AssertUnwindSafe(|| within(&dir))) {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => case.find(Kind::Wrong, &row.name, format!("{problem:#}")),
            Err(_) => case.find(Kind::Panic, &row.name, "the attack itself panics: see above"),
        }
        Ok(())
    }
}

impl Row {
    /// Starts the first program and kills it, at moments that grow.
    fn kill(&self, case: &Case<'_>) -> Result<()> {
        for n in 0..self.n_kills {
            let Some(line) = self.lines.first() else { return Ok(()) };
            let mut running = command(case, line)?.start()?;
            if running.runs_at(Duration::from_millis(5 + u64::from(n) * 12)) {
                running.kill();
            }
            running.wait()?;
        }
        Ok(())
    }

    /// The programs with their arguments. The server, if there is one, answers until this process ends.
    fn addressed(&self) -> Result<Vec<String>> {
        let Some(answer) = self.server else { return Ok(self.lines.clone()) };
        let listener = TcpListener::bind("127.0.0.1:0").context("there is no free port")?;
        let address = format!("http://{}", listener.local_addr()?);
        // It is not an error of the server if a client has closed the connection.
        thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(answer(stream))));
        Ok(self.lines.iter().map(|line| line.replace("{server}", &address)).collect())
    }

    /// Runs the programs; returns whether the last one did what is expected.
    fn run(&self, case: &mut Case<'_>, first: &[String], last: &str) -> Result<bool> {
        let row = self;
        for line in first {
            let run = command(case, line)?;
            if case.succeed(run, &format!("{}: an earlier command fails", row.name))?.is_none() {
                return Ok(false);
            }
        }
        if let Some([file, from, to]) = &row.edit {
            let text = fs::read_to_string(case.path(file))?;
            ensure!(text.contains(from), "{file} has no {from}: {text}");
            fs::write(case.path(file), text.replacen(from, to, 1))?;
        }
        let ended = row.end(case, last)?;
        if ended.timed_out || ended.panic().is_some() {
            return Ok(false);
        }
        let dir = case.dir.clone();
        if let Err(problem) = row.expected.check(&Found { dir: &dir, ended: &ended }) {
            case.find(Kind::Wrong, &row.name, format!("{problem:#}\n{ended}"));
            return Ok(false);
        }
        Ok(true)
    }

    /// Runs a program to its end, or until it is asked to terminate.
    fn end(&self, case: &mut Case<'_>, line: &str) -> Result<Ended> {
        let run = command(case, line)?;
        let Some(word) = self.stopped_at else { return case.end(run) };
        let mut running = run.start()?;
        if running.runs_until(|running| running.has_said(word)) {
            running.signal(Signal::Terminate);
        }
        let ended = running.wait()?;
        case.check_manners_of_stopped(&ended);
        Ok(ended)
    }
}

/// An example, `xtask`, or this program as a child of itself.
fn command(case: &Case<'_>, line: &str) -> Result<Run> {
    let mut words = line.split(' ');
    let tool = |path: &Path| case.attack.tool(&path.to_string_lossy(), &case.dir);
    let run = match words.next().unwrap_or_default() {
        "xtask" => tool(case.attack.xtask()),
        "attack" => tool(&std::env::current_exe().context("a process has an executable")?),
        name => case.program(name),
    };
    Ok(run.args(words))
}

impl Expected {
    fn check(&self, found: &Found<'_>) -> Result<()> {
        match (&self.refused, &self.computed) {
            (Some(refusal), None) => found.refused(refusal.statuses, &refusal.words),
            (Some(refusal), Some(_)) if found.was_refused(refusal.statuses) => found.said(&refusal.words),
            (_, Some(check)) => found.succeeded().and_then(|()| check(found)),
            (None, None) => Ok(()),
        }
    }
}

/// Links and named pipes are made by programs of Unix, so that the other parts compile on any system.
fn make_by(program: &mut Command) -> std::io::Result<()> {
    let status = program.status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(format!("{} fails", program.get_program().display()))) }
}
