//! What people read: notes on standard error, results on standard output.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};

use anyhow::{Context, Result};

/// A line on standard error, in one piece, since ranks of a job may write at the same time. What it cannot take is lost: a run does not end because
/// nobody looks.
pub fn note(line: impl Display) {
    let _ = stderr().write_all(format!("{line}\n").as_bytes());
}

/// The line that says why a program ends, `error: …`, on standard error.
pub fn error(error: &anyhow::Error) {
    note(format_args!("error: {}", told(error)));
}

/// An error with its causes, but for those that it already tells.
fn told(error: &anyhow::Error) -> String {
    let causes = error.chain().map(ToString::to_string);
    causes.reduce(|told, cause| if told.contains(&cause) { told } else { format!("{told}: {cause}") }).unwrap_or_default()
}

/// Lines on standard output.
///
/// A reader that has seen enough, as `head` has, is no error.
///
/// # Errors
/// When they cannot be written for another reason, as on a full disk.
pub fn result(lines: impl Display) -> Result<()> {
    let mut out = stdout().lock();
    match writeln!(out, "{lines}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}
