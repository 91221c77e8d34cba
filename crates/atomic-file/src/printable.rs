//! Printing of untrusted text in messages: names and values from files, which may contain anything.

use std::ffi::OsStr;
use std::fmt::{self, Display, Write};

/// How many characters of a text are shown: as many as the longest path that Linux allows.
const MAX_CHARS: usize = 4096;

/// How many names of a list are shown, and how much of each.
const MAX_NAMES: usize = 10;
const MAX_NAME_CHARS: usize = 60;

/// Makes text from a file, or the name of a file, safe to print: control characters, with which a text could change the colours,
/// the title or the lines of a terminal, are escaped as in Rust; everything after the first 4096 characters is left out. In a
/// name that is not UTF-8, invalid bytes are shown as `�`.
///
/// Errors of the crates that read files show names and values in this form.
///
/// # Examples
/// ```
/// use brisk_atomic_file::printable;
///
/// assert_eq!(printable("pt").to_string(), "pt");
/// assert_eq!(printable("\u{1b}[31mpt\n").to_string(), "\\u{1b}[31mpt\\n");
/// ```
pub fn printable<T: AsRef<OsStr> + ?Sized>(text: &T) -> Printable<'_> {
    Printable { text: text.as_ref(), max_chars: MAX_CHARS }
}

/// See [`printable`].
///
/// Its `Debug` form is quoted, with quotes and backslashes escaped too.
#[derive(Clone, Copy)]
pub struct Printable<'a> {
    text: &'a OsStr,
    max_chars: usize,
}

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_escaped(f, char::is_control)
    }
}

impl fmt::Debug for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        self.write_escaped(f, |char| char.is_control() || matches!(char, '"' | '\\'))?;
        f.write_char('"')
    }
}

impl Printable<'_> {
    fn write_escaped(&self, f: &mut fmt::Formatter<'_>, is_escaped: impl Fn(char) -> bool) -> fmt::Result {
        let text = self.text.to_string_lossy();
        let mut chars = text.chars();
        for char in chars.by_ref().take(self.max_chars) {
            if is_escaped(char) {
                write!(f, "{}", char.escape_debug())?;
            } else {
                f.write_char(char)?;
            }
        }
        match chars.next() {
            Some(_) => f.write_char('…'),
            None => Ok(()),
        }
    }
}

/// Names in brackets, as `Debug` shows a slice of them; of a long list, only the first names.
pub fn listed<S: AsRef<str>>(names: &[S]) -> impl Display {
    fmt::from_fn(|f| {
        f.write_char('[')?;
        for (i, name) in names.iter().take(MAX_NAMES).enumerate() {
            let separator = if i > 0 { ", " } else { "" };
            let name = Printable { text: name.as_ref().as_ref(), max_chars: MAX_NAME_CHARS };
            write!(f, "{separator}{name:?}")?;
        }
        if names.len() > MAX_NAMES {
            write!(f, " and {} more", names.len() - MAX_NAMES)?;
        }
        f.write_char(']')
    })
}

#[cfg(test)]
mod tests {
    use super::{listed, printable};

    #[test]
    fn control_characters_are_escaped_and_others_are_not() {
        assert_eq!(printable("μ \"x\" \\").to_string(), "μ \"x\" \\");
        assert_eq!(printable("\u{1b}]0;title\u{7}\r\n\t\0\u{9b}").to_string(), r"\u{1b}]0;title\u{7}\r\n\t\0\u{9b}");
        assert_eq!(format!("{:?}", printable("a\"\\\u{1b}")), r#""a\"\\\u{1b}""#);
    }

    #[test]
    fn long_texts_and_lists_are_cut() {
        assert_eq!(printable(&"x".repeat(4096)).to_string().len(), 4096);
        assert_eq!(printable(&"ä".repeat(4097)).to_string(), "ä".repeat(4096) + "…");
        assert_eq!(listed(&["a", "b"]).to_string(), r#"["a", "b"]"#);
        let many = vec!["a"; 300_000];
        assert!(listed(&many).to_string().ends_with("\"a\" and 299990 more]"));
        assert!(listed(&many).to_string().len() < 200);
    }
}
