//! Runs a command again while it fails for a temporary reason: another process holds a lock, or a server cannot be reached.

use std::io::{Read, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, anyhow};

use crate::shell::shown;

/// Parts of lines by which a program says that it could not do its work now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signs {
    /// Another process holds its lock.
    pub(crate) locked: &'static [&'static str],
    /// A server could not be reached, or sent something incomplete.
    pub(crate) unreachable: &'static [&'static str],
}

/// How long another process may hold a lock: unattended upgrades of a new machine take minutes.
const LOCK_LIMIT: Duration = Duration::from_secs(600);
/// Pauses before a server that could not be reached is tried again, two minutes in total.
const PAUSES_S: [u64; 8] = [1, 2, 4, 8, 15, 30, 30, 30];

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Done,
    /// The command reported success, and this line says that a server could not be reached: `apt-get update` does so.
    DoneInPart(String),
    Failed(Failure),
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// Names the command and its exit status.
    error: Error,
    reason: Reason,
    began: Instant,
}

/// The reason of a failure, with the line of output that states it.
#[derive(Debug, PartialEq, Eq)]
enum Reason {
    Locked(String),
    Unreachable(String),
    Other,
}

/// Decides whether, and when, a command is run again.
#[derive(Debug)]
pub(super) struct Patience<'a> {
    signs: &'a Signs,
    n_locked: usize,
    /// When the first attempt began that was refused because of a lock.
    locked_since: Option<Instant>,
    n_unreachable: usize,
}

/// Runs `command` until it succeeds, or fails for a reason other than those in `signs`.
///
/// # Errors
/// The command failed, or the lock was held for 10 minutes, or the server could not be reached for about 2 minutes.
pub(crate) fn run_patiently(command: &mut Command, signs: &Signs) -> Result<()> {
    let mut patience = Patience::new(signs);
    loop {
        match patience.attempt(command)? {
            Outcome::Done | Outcome::DoneInPart(_) => return Ok(()),
            Outcome::Failed(failure) => patience.wait(failure, None)?,
        }
    }
}

impl<'a> Patience<'a> {
    pub(super) fn new(signs: &'a Signs) -> Self {
        Self { signs, n_locked: 0, locked_since: None, n_unreachable: 0 }
    }

    /// Runs `command` once. Its output is printed to standard error as it arrives.
    pub(super) fn attempt(&self, command: &mut Command) -> Result<Outcome> {
        eprintln!("+ {}", shown(command));
        let began = Instant::now();
        let (status, output) = run_and_listen(command).with_context(|| format!("could not start `{}`", shown(command)))?;
        let reason = self.signs.reason(&output);
        Ok(match (status.success(), reason) {
            (true, Reason::Unreachable(line)) => Outcome::DoneInPart(line),
            (true, _) => Outcome::Done,
            (false, reason) => {
                Outcome::Failed(Failure { error: anyhow!("`{}` failed ({status})", shown(command)), reason, began })
            }
        })
    }

    /// Waits until it is time to try again, and prints the reason.
    ///
    /// `incomplete` is a line of an earlier command on which this one depends: it could not reach a server either.
    ///
    /// # Errors
    /// Waiting does not help against this failure, or has not helped for too long.
    pub(super) fn wait(&mut self, failure: Failure, incomplete: Option<String>) -> Result<()> {
        let reason = match (failure.reason, incomplete) {
            (Reason::Other, Some(line)) => Reason::Unreachable(line),
            (reason, _) => reason,
        };
        match reason {
            Reason::Other => Err(failure.error),
            Reason::Locked(line) => {
                let since = *self.locked_since.get_or_insert(failure.began);
                if since.elapsed() >= LOCK_LIMIT {
                    let minutes = LOCK_LIMIT.as_secs() / 60;
                    return Err(failure.error.context(format!("another process has held a lock for {minutes} minutes: {line}")));
                }
                let pause = PAUSES_S[self.n_locked.min(3)];
                self.n_locked += 1;
                eprintln!("another process holds a lock: {line}");
                pause_for(pause, &format!("for up to {} s more", (LOCK_LIMIT - since.elapsed()).as_secs()));
                Ok(())
            }
            Reason::Unreachable(line) => {
                let Some(&pause) = PAUSES_S.get(self.n_unreachable) else {
                    let n = PAUSES_S.len() + 1;
                    return Err(failure.error.context(format!("a server could not be reached in {n} attempts: {line}")));
                };
                self.n_unreachable += 1;
                eprintln!("a server cannot be reached: {line}");
                pause_for(pause, &format!("retry {} of {}", self.n_unreachable, PAUSES_S.len()));
                Ok(())
            }
        }
    }
}

fn pause_for(seconds: u64, which: &str) {
    eprintln!("waiting {seconds} s before trying again ({which})");
    std::thread::sleep(Duration::from_secs(seconds));
}

impl Signs {
    /// The first line about a lock or, if there is none, about a server.
    fn reason(&self, output: &str) -> Reason {
        // apt prints `Waiting for cache lock: …` while it waits for a lock that it then gets.
        let lines = output.lines().map(str::trim).filter(|line| !line.starts_with("Waiting for "));
        let first = |signs: &[&str]| lines.clone().find(|line| signs.iter().any(|sign| line.contains(sign))).map(String::from);
        let locked = first(self.locked).map(Reason::Locked);
        locked.or_else(|| first(self.unreachable).map(Reason::Unreachable)).unwrap_or(Reason::Other)
    }
}

/// Runs `command` to its end, prints its output to our standard error, and returns it.
fn run_and_listen(command: &mut Command) -> std::io::Result<(ExitStatus, String)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (out, err) = std::thread::scope(|scope| {
        let out = scope.spawn(|| stdout.map(copy).unwrap_or_default());
        let err = stderr.map(copy).unwrap_or_default();
        (out.join().expect("copying does not panic"), err)
    });
    let status = child.wait()?;
    let text = [out, err].concat();
    Ok((status, String::from_utf8_lossy(&text).into_owned()))
}

/// Reads everything, copies it to standard error, and returns it.
fn copy(mut from: impl Read) -> Vec<u8> {
    let (mut buffer, mut all) = ([0; 4096], Vec::new());
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        // A closed standard error does not stop the installation.
        drop(std::io::stderr().write_all(&buffer[..n]));
        all.extend_from_slice(&buffer[..n]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNS: Signs = Signs { locked: &["Could not get lock"], unreachable: &["Temporary failure resolving"] };

    #[test]
    fn a_lock_is_told_from_a_server_and_from_other_failures() {
        let check = |output: &str, expected| assert_eq!(SIGNS.reason(output), expected, "{output}");
        let lock = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)";
        check(&format!("Reading package lists...\n{lock}\nE: Unable to lock directory\n"), Reason::Locked(lock.to_owned()));
        let server = "W: Failed to fetch http://deb.debian.org/InRelease  Temporary failure resolving 'deb.debian.org'";
        check(&format!("Ign:1\n{server}\n"), Reason::Unreachable(server.to_owned()));
        check(&format!("{server}\n{lock}"), Reason::Locked(lock.to_owned()));
        check(&format!("Waiting for cache lock: {}...\n{server}", &lock[3..]), Reason::Unreachable(server.to_owned()));
        check("E: Unable to locate package mesa\n", Reason::Other);
    }

    fn failure(reason: Reason, age: Duration) -> Failure {
        let began = Instant::now().checked_sub(age).expect("the clock has run for longer");
        Failure { error: anyhow!("`apt-get update` failed"), reason, began }
    }

    #[test]
    fn waiting_ends_with_an_error_that_names_the_command_and_the_reason() {
        let mut patience = Patience::new(&SIGNS);
        let error = patience.wait(failure(Reason::Other, Duration::ZERO), None).expect_err("nothing to wait for");
        assert_eq!(format!("{error:#}"), "`apt-get update` failed");

        let error = patience.wait(failure(Reason::Locked("held by 77".to_owned()), LOCK_LIMIT), None).expect_err("too long");
        assert_eq!(format!("{error:#}"), "another process has held a lock for 10 minutes: held by 77: `apt-get update` failed");

        patience.n_unreachable = PAUSES_S.len();
        let error = patience.wait(failure(Reason::Other, Duration::ZERO), Some("no DNS".to_owned())).expect_err("too often");
        assert_eq!(format!("{error:#}"), "a server could not be reached in 9 attempts: no DNS: `apt-get update` failed");
    }
}
