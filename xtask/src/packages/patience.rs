//! Runs commands again while they fail for a temporary reason: another process holds a lock, or a server cannot be reached.

use std::io::{Read, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow};

use crate::shell::shown;

/// Parts of lines, in lower case, by which package managers and rustup say that they could not do their work now.
#[rustfmt::skip]
const TEMPORARY: [&str; 35] = [
    // Another process holds a lock: unattended upgrades of a new machine do so for minutes.
    "could not get lock", "unable to lock", "unable to acquire the dpkg frontend lock", "could not lock database", "transaction lock",
    "management is locked", "has already locked", "another active homebrew", "another `brew",
    // A server could not be reached, or sent something incomplete.
    "temporary failure resolving", "could not resolve", "couldn't resolve", "could not connect", "unable to connect", "failed to connect",
    "connection failed", "connection aborted", "timed out", "timeout exceeded", "network is unreachable", "network error", "temporary error",
    "dns error", "error sending request", "failed to fetch", "unable to fetch", "failed to download", "could not download", "cannot download",
    "download library error", "curl error", "failed retrieving file", "failed to synchronize", "hash sum mismatch", "metadata not found",
];

/// Pauses before the next attempt, five minutes in total.
const PAUSES_S: [u64; 9] = [1, 2, 4, 8, 15, 30, 60, 90, 90];

/// Runs the commands that `steps` makes, in order. After a failure that waiting may cure, all are run again, since a package list
/// may have become outdated meanwhile.
///
/// # Errors
/// A command cannot be started, or it fails, and neither its output nor that of an earlier step has one of the [`TEMPORARY`]
/// signs, or it has one after five minutes of attempts.
pub(crate) fn run_patiently(steps: &mut [Command]) -> Result<()> {
    let mut pauses = PAUSES_S.iter();
    while let Err((error, output)) = attempt(steps) {
        let Some(why) = sign(&output) else { return Err(error) };
        let Some(&pause) = pauses.next() else {
            return Err(error.context(format!("it did not help to wait {} s: {why}", PAUSES_S.iter().sum::<u64>())));
        };
        eprintln!("{why}\nwaiting {pause} s before trying again ({} more attempts)", 1 + pauses.len());
        std::thread::sleep(Duration::from_secs(pause));
    }
    Ok(())
}

/// Runs the steps once; an error comes with the output so far.
fn attempt(steps: &mut [Command]) -> Result<(), (Error, String)> {
    let mut output = String::new();
    for step in steps {
        eprintln!("+ {}", shown(step));
        let ended = listen(step, &mut output).with_context(|| format!("could not run `{}`", shown(step)));
        match ended {
            Ok(status) if status.success() => {}
            Ok(status) => return Err((anyhow!("`{}` failed ({status})", shown(step)), output)),
            Err(error) => return Err((error, String::new())),
        }
    }
    Ok(())
}

/// The first line with a sign. `apt-get` prints `Waiting for cache lock: …` while it waits for a lock that it then gets.
fn sign(output: &str) -> Option<&str> {
    let is_sign =
        |line: &&str| TEMPORARY.iter().any(|sign| line.to_lowercase().contains(sign)) && !line.starts_with("Waiting for ");
    output.lines().map(str::trim).find(is_sign)
}

/// Runs `command` to its end; copies its output to standard error as it arrives, and to `output`.
fn listen(command: &mut Command, output: &mut String) -> std::io::Result<std::process::ExitStatus> {
    let (mut reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // Our copies of the end that is written to are closed, so that reading ends with the child.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (mut buffer, mut bytes) = ([0; 4096], Vec::new());
    while let Ok(n @ 1..) = reader.read(&mut buffer) {
        // A closed standard error does not stop the installation.
        drop(std::io::stderr().write_all(&buffer[..n]));
        bytes.extend_from_slice(&buffer[..n]);
    }
    output.push_str(&String::from_utf8_lossy(&bytes));
    child.wait()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_tells_a_temporary_failure_is_found() {
        let lock = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)";
        let server = "W: Failed to fetch http://deb.debian.org/InRelease  Temporary failure resolving 'deb.debian.org'";
        assert_eq!(sign(&format!("Reading package lists...\n{lock}\nE: Unable to lock directory\n")), Some(lock));
        assert_eq!(sign(&format!("Waiting for cache lock: {}...\n{server}\n", &lock[3..])), Some(server));
        assert_eq!(sign("Get:1 http://deb.debian.org 12 downloads\nFetched 7 MB\nE: Unable to locate package mesa\n"), None);
    }
}
