//! Output for people: notes on standard error, results on standard output.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

/// The maximum length of a word of a note that is printed in full: about twice the longest path of a folder and a name.
const MAX_WORD_LEN: usize = 1024;

/// Paths, and what they are called in everything that is printed.
static CALLED: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// From now on, whatever names this path is printed with another name for it, such as the URL of which the file is a copy.
pub fn call(path: &Path, name: impl Display) {
    let named = (path.display().to_string(), name.to_string());
    CALLED.lock().unwrap_or_else(PoisonError::into_inner).push(named);
}

fn as_called(text: &str) -> String {
    let called = CALLED.lock().unwrap_or_else(PoisonError::into_inner);
    called.iter().fold(text.to_owned(), |text, (path, name)| text.replace(path, name))
}

/// Prints a line to standard error, in one piece, since ranks of a job may write at the same time. Write errors are ignored: a
/// run does not end because its messages cannot be printed.
pub fn note(line: impl Display) {
    let _ = stderr().write_all(format!("{}\n", without_escapes(&with_short_words(&as_called(&line.to_string())))).as_bytes());
}

/// The line that says why a program ends, `error: …`, on standard error.
pub fn error(error: &anyhow::Error) {
    note(format_args!("error: {}", told(error)));
}

/// An error with its causes, except for those that its message already includes.
fn told(error: &anyhow::Error) -> String {
    let causes = error.chain().map(ToString::to_string);
    causes.reduce(|told, cause| if told.contains(&cause) { told } else { format!("{told}: {cause}") }).unwrap_or_default()
}

/// A word of a command line that a message shows, such as the name of a column, quoted for a shell if it has to be.
pub fn shell_word(word: impl Display) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./,:=+@%".contains(c);
    let word = word.to_string();
    if !word.is_empty() && word.chars().all(is_plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Lines on standard output.
///
/// A reader that closes the pipe early, as `head` does, is not an error.
///
/// # Errors
/// If they cannot be written for another reason, for example because the disk is full.
pub fn result(lines: impl Display) -> Result<()> {
    let mut out = stdout().lock();
    match writeln!(out, "{}", without_escapes(&as_called(&lines.to_string()))).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// The text with control characters other than line ends and tabs escaped, so that none from a file or a file name reaches the
/// terminal.
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

/// The text without the middle of words longer than any path, so that an argument that a script passes by mistake does not fill
/// the terminal.
fn with_short_words(text: &str) -> String {
    let short = |piece: &str| {
        let word = piece.trim_end();
        if word.len() <= MAX_WORD_LEN {
            return piece.to_owned();
        }
        let (head, tail) = (word.floor_char_boundary(MAX_WORD_LEN / 2), word.ceil_char_boundary(word.len() - MAX_WORD_LEN / 4));
        format!("{}…{} ({} bytes){}", &word[..head], &word[tail..], word.len(), &piece[word.len()..])
    };
    text.split_inclusive(char::is_whitespace).map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_called_by_what_it_is_a_copy_of() {
        call(Path::new("/tmp/copy-1/rows.csv"), "https://host/rows.csv");
        assert_eq!(as_called("error: /tmp/copy-1/rows.csv, line 7: 1,x"), "error: https://host/rows.csv, line 7: 1,x");
    }

    #[test]
    fn the_middle_of_very_long_words_is_left_out() {
        let path = "p".repeat(MAX_WORD_LEN);
        assert_eq!(with_short_words(&format!("error: {path}\n  no file\t\n")), format!("error: {path}\n  no file\t\n"));
        let shortened = with_short_words(&format!("'{}'\nfor more", "μ".repeat(50_000)));
        assert!(shortened.len() < 2 * MAX_WORD_LEN && shortened.ends_with("μ' (100002 bytes)\nfor more"), "{shortened}");
    }

    #[test]
    fn only_line_ends_and_tabs_are_not_escaped() {
        assert_eq!(without_escapes("a\tμ\n"), "a\tμ\n");
        assert_eq!(without_escapes("\u{1b}[2J\r\n"), "\\u{1b}[2J\\r\n");
    }
}
