//! What people read: notes on standard error, results on standard output.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};

use anyhow::{Context, Result};

/// A line on standard error, in one piece, since ranks of a job may write at the same time. If it cannot be written it is lost: a run does
/// not end because its messages are not read.
pub fn note(line: impl Display) {
    let _ = stderr().write_all(format!("{}\n", without_escapes(&line.to_string())).as_bytes());
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
/// A reader that closes the pipe early, as `head` does, is not an error.
///
/// # Errors
/// When they cannot be written for another reason, as on a full disk.
pub fn result(lines: impl Display) -> Result<()> {
    let mut out = stdout().lock();
    match writeln!(out, "{}", without_escapes(&lines.to_string())).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// The text with control characters other than line ends and tabs escaped, so that none from a file or a file's name reaches the terminal.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' | '\t' => plain.push(char),
            control if control.is_control() => plain.extend(control.escape_debug()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::without_escapes;

    #[test]
    fn only_line_ends_and_tabs_are_not_escaped() {
        assert_eq!(without_escapes("a\tμ\n"), "a\tμ\n");
        assert_eq!(without_escapes("\u{1b}[2J\r\n"), "\\u{1b}[2J\\r\n");
    }
}
