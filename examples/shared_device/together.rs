//! Starts several workers at a time, and adds up what they did.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::worker::READY;

/// A child process that is killed when this value is dropped.
struct Worker {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Killing fails if the process has ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    /// Starts this program again with the same options, as one of `n` processes.
    fn start(n: usize) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(std::env::args_os().skip(1))
            .args(["--worker-of", &n.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start another process")?;
        let stdout = child.stdout.take().context("a process without an output")?;
        Ok(Self { child, said: BufReader::new(stdout) })
    }

    fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.said.read_line(&mut line).unwrap_or(0) == 0 {
            // It has printed the reason to standard error.
            bail!("one of the processes failed: {}", self.child.wait()?);
        }
        Ok(line.trim_end().to_owned())
    }

    fn release(&mut self) -> Result<()> {
        let stdin = self.child.stdin.as_mut().context("a process without an input")?;
        writeln!(stdin).and_then(|()| stdin.flush()).context("one of the processes has ended")
    }
}

/// The results of `n` workers that run at the same time.
pub(crate) fn run(n: usize) -> Result<Vec<Value>> {
    let mut workers = (0..n).map(|_| Worker::start(n)).collect::<Result<Vec<_>>>()?;
    // Each part begins when all workers are ready for it.
    loop {
        let said = workers.iter_mut().map(Worker::read_line).collect::<Result<Vec<_>>>()?;
        if said.iter().any(|line| line != READY) {
            return said
                .iter()
                .map(|line| serde_json::from_str(line).with_context(|| format!("a process said `{line}`")))
                .collect();
        }
        workers.iter_mut().try_for_each(Worker::release)?;
    }
}

/// Items per second of all workers together, from the start of the first to the end of the last.
pub(crate) fn rate(results: &[Value], count: &str, span: &str) -> f64 {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let n: f64 = results.iter().map(|result| number(&result[count])).sum();
    let began = results.iter().map(|result| number(&result[span][0])).fold(f64::INFINITY, f64::min);
    let ended = results.iter().map(|result| number(&result[span][1])).fold(0.0, f64::max);
    n / (ended - began)
}
