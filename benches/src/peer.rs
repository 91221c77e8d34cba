use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

/// A program that measures something each time it is asked, one line per question, so that measurements of peers and of brisk
/// alternate and peers are started only once.
pub(crate) struct Peer {
    name: String,
    process: Child,
    /// `None` once there are no more questions.
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the script at `path`, from the workspace's folder.
    pub(crate) fn python(python: &Path, path: &str, args: &[String]) -> Result<Self> {
        let script = format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"));
        Self::start(&script, Command::new(python).arg(&script).args(args))
    }

    /// Starts a program, which error messages call `name`.
    pub(crate) fn start(name: &str, command: &mut Command) -> Result<Self> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = spawned.with_context(|| format!("{}: cannot start", command.get_program().display()))?;
        let questions = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().context("a piped output")?);
        Ok(Self { name: name.to_owned(), process, questions, answers })
    }

    /// The line that the program prints at its start.
    pub(crate) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        if line.is_empty() {
            bail!("{} ended early, see above", self.name);
        }
        Ok(line.trim().to_owned())
    }

    /// The line that answers `question`.
    pub(crate) fn answer(&mut self, question: &str) -> Result<String> {
        let questions = self.questions.as_mut().context("the program is there until this is dropped")?;
        writeln!(questions, "{question}").with_context(|| format!("{} does not listen", self.name))?;
        self.line()
    }

    /// The figures that answer `question`.
    pub(crate) fn ask(&mut self, question: &str) -> Result<Vec<f64>> {
        let line = self.answer(question)?;
        let figures: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        figures.with_context(|| format!("{} answered `{question}` with `{line}`", self.name))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends when its input does.
        drop(self.questions.take());
        let _ = self.process.wait();
    }
}
