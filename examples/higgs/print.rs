//! What people read: notes on standard error, results on standard output.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};

use anyhow::{Context, Result};

/// A line on standard error. What it cannot take is lost: a run does not end because nobody looks.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(stderr(), "{line}");
}

/// Lines on standard output. A reader that has seen enough, as `head` has, is no error.
pub(crate) fn result(lines: impl Display) -> Result<()> {
    let mut out = stdout().lock();
    match writeln!(out, "{lines}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}
