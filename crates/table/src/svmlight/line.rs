//! One line: `label [qid:n] [index:value …] [# comment]`.

use std::path::Path;

use super::{FirstIndex, MAX_INDEX, SvmlightOptions};
use crate::csv::{Position, number, shown};
use crate::error::Error;
use crate::import::{Labels, Missing, expected, is_missing};
use crate::remedy::{Expected, Remedy};

#[derive(Debug)]
pub(super) struct LineParser {
    pub(super) labels: Labels,
    missing: Missing,
    first_index: FirstIndex,
}

/// A feature that a line gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) index: usize,
    /// NaN if it is missing.
    pub(super) value: f32,
    /// Its position in the line.
    pub(super) at: usize,
}

/// A valid label.
#[derive(Debug)]
pub(super) enum Label<'a> {
    Number(f32),
    /// The name of a class, which may be new.
    Found(&'a str),
    /// The number of a class.
    Known(u32),
}

/// What is wrong with a line.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) problem: String,
    pub(super) remedies: &'static [Remedy],
}

/// The position of a problem in a line, and the problem.
pub(super) type Wrong = (usize, Problem);

impl Problem {
    /// Something other than what was expected; `what` says what it is.
    pub(super) fn found(what: &str, found: &str, expected: &Expected) -> Self {
        Self { problem: format!("{what} {found:?}, expected {}", expected.what), remedies: expected.remedies }
    }

    /// The error for a line of the file at `path`.
    pub(super) fn at(&self, at: Position, path: &Path) -> Error {
        at.line_error(self.problem.clone(), self.remedies).at(path)
    }
}

impl LineParser {
    pub(super) fn new(labels: Labels, options: &SvmlightOptions) -> Self {
        Self { labels, missing: options.missing, first_index: options.first_index }
    }

    /// Parses a line: returns its label, and stores its features in `entries`, sorted by index. `None` if the line has only a
    /// comment.
    pub(super) fn read<'a>(&self, line: &'a [u8], entries: &mut Vec<Entry>) -> Result<Option<Label<'a>>, Wrong> {
        entries.clear();
        let comment = memchr::memchr(b'#', line).unwrap_or(line.len());
        let mut words = Words { line: &line[..comment], at: 0 };
        let Some((at, word)) = words.next() else { return Ok(None) };
        let label = self.label(word).map_err(|wrong| (at, wrong))?;
        let mut words = words.peekable();
        if let Some((at, query)) = words.next_if(|(_, word)| word.starts_with(b"qid:"))
            && whole_number(&query[4..]).is_none()
        {
            return Err((at, Problem::found("found the query", &shown(query), &QUERY)));
        }
        for (at, word) in words {
            let previous = entries.last().map(|entry| entry.index);
            let (index, value) = self.feature(word, previous).map_err(|wrong| (at, wrong))?;
            entries.push(Entry { index, value, at });
        }
        Ok(Some(label))
    }

    fn label<'a>(&self, word: &'a [u8]) -> Result<Label<'a>, Problem> {
        let wrong = |expected| Problem::found("found the label", &shown(word), expected);
        if let Labels::Found | Labels::Known(_) = &self.labels {
            let Ok(name) = str::from_utf8(word) else {
                return Err(wrong(&expected::CLASS_IN_UTF8));
            };
            if is_missing(word) {
                return Err(wrong(&expected::CLASS));
            }
            let Labels::Known(known) = &self.labels else { return Ok(Label::Found(name)) };
            return known.number(name).map(Label::Known).ok_or_else(|| wrong(&expected::GIVEN_CLASS));
        }
        match number(word, b'.') {
            Some(label) if self.labels == Labels::Binary && label != 0.0 && label != 1.0 => Err(wrong(&BINARY_LABEL)),
            Some(label) if label.is_finite() => Ok(Label::Number(label)),
            _ => Err(wrong(&LABEL)),
        }
    }

    fn feature(&self, word: &[u8], previous: Option<usize>) -> Result<(usize, f32), Problem> {
        let no_feature = || Problem::found("found", &shown(word), &FEATURE);
        let colon = memchr::memchr(b':', word).ok_or_else(no_feature)?;
        let (index, value) = (&word[..colon], &word[colon + 1..]);
        let digits = whole_number(index).ok_or_else(no_feature)?;
        let index = match digits.parse() {
            Ok(index) if index <= MAX_INDEX => index,
            _ => {
                let found = shown(index);
                let problem = format!(
                    "feature {found}, indices up to {MAX_INDEX} are read since rows become dense; hash or choose features first"
                );
                return Err(Problem { problem, remedies: &[] });
            }
        };
        let refuse = |problem: String, remedies| Err(Problem { problem, remedies });
        match previous {
            Some(previous) if index == previous => {
                return refuse(format!("feature {index} is given twice"), &[Remedy::Correct, Remedy::SkipRows]);
            }
            Some(previous) if index < previous => {
                let problem = format!("feature {index} follows {previous}, expected rising indices");
                return refuse(problem, &[Remedy::SortRow, Remedy::SkipRows]);
            }
            _ if index == 0 && self.first_index == FirstIndex::One => {
                let problem = "feature 0 in a file whose first index is said to be 1".to_owned();
                return refuse(problem, &[Remedy::FirstIndexZero]);
            }
            _ => {}
        }
        let wrong = |expected| Problem::found(&format!("feature {index}: found"), &shown(value), expected);
        match number(value, b'.') {
            Some(value) if value.is_finite() => Ok((index, value)),
            Some(number) if number.is_infinite() && value.iter().any(u8::is_ascii_digit) => Err(wrong(&expected::IN_RANGE)),
            Some(number) if number.is_infinite() && self.missing == Missing::Keep => Ok((index, number)),
            Some(number) if number.is_infinite() => Err(wrong(&expected::FINITE)),
            None if value.is_empty() => Err(no_feature()),
            None if !is_missing(value) => Err(wrong(&NUMBER)),
            _ if self.missing == Missing::Error => Err(wrong(&expected::NOT_MISSING)),
            _ => Ok((index, f32::NAN)),
        }
    }
}

// These differ from those of columns: a row of svmlight has only one label, and no named columns.
const BINARY_LABEL: Expected = Expected { what: "a label 0 or 1", remedies: &[Remedy::LabelsAsNumbers, Remedy::LabelsAsClasses] };
const LABEL: Expected =
    Expected { what: "one finite number", remedies: &[Remedy::Correct, Remedy::LabelsAsClasses, Remedy::SkipRows] };
const QUERY: Expected = Expected { what: "`qid:` and a whole number", remedies: &[Remedy::Correct, Remedy::SkipRows] };
const FEATURE: Expected = Expected { what: "`index:value`", remedies: &[Remedy::Correct, Remedy::SkipRows] };
const NUMBER: Expected = Expected { what: "a number", remedies: &[Remedy::Correct, Remedy::SkipRows] };

/// Words between blanks, with their positions.
struct Words<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at + self.line[self.at..].iter().position(|byte| !byte.is_ascii_whitespace())?;
        let rest = &self.line[start..];
        let len = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        self.at = start + len;
        Some((start, &rest[..len]))
    }
}

/// The text, if it consists of digits and is not empty.
fn whole_number(text: &[u8]) -> Option<&str> {
    let is_one = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if is_one { str::from_utf8(text).ok() } else { None }
}
