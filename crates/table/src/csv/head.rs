//! The first rows of a file: what stands between cells, what the columns are called, and what each is for.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use super::chunks::MAX_ROW_BYTES;
use super::decimal::{Marks, number};
use super::quotes::cells;
use super::rows::{SKIPPED, is_missing};
use super::{CsvOptions, Decimal, Delimiter, Header};
use crate::Error;
use crate::import::Roles;

/// How a file is to be read, all questions answered.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) marks: Marks,
    pub(super) roles: Roles,
    /// For every column where its value goes in a row: to a feature, behind them to the label and the weight, or [`SKIPPED`].
    pub(super) slots: Vec<usize>,
    /// The byte at which the rows start, and its line.
    pub(super) start: usize,
    pub(super) line: u64,
    pub(super) has_header: bool,
}

type Cells<'a> = Vec<Cow<'a, [u8]>>;

impl Head {
    /// Looks at the first `text` of the file at `path`.
    pub(super) fn find(path: &Path, text: &[u8], options: &CsvOptions) -> Result<Self, Error> {
        if let Some(found) = what_else(text) {
            return Err(Error::NoRows { path: path.to_owned(), found });
        }
        let bom = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        // Blank lines before the first row are no rows.
        let start = bom + text[bom..].iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        let line = 1 + text[..start].iter().filter(|&&byte| byte == b'\n').count() as u64;
        if text[start..].trim_ascii().is_empty() {
            let found = if text.is_empty() { "an empty file" } else { "only blank lines" };
            return Err(Error::NoRows { path: path.to_owned(), found });
        }
        let marks = Marks {
            delimiter: delimiter(text, start, options),
            decimal: if options.decimal == Decimal::Comma { b',' } else { b'.' },
        };
        if marks.delimiter == marks.decimal || matches!(marks.delimiter, b'"' | b'\n' | b'\r' | b'-' | b'+' | b'.' | b'0'..=b'9')
        {
            let delimiter = char::from(marks.delimiter);
            let problem =
                format!("cells cannot be told apart by {delimiter:?}, which stands in numbers or ends lines; pass another");
            return Err(Error::ColumnRoles { path: path.to_owned(), problem });
        }
        let Some((first, end)) = cells(text, start, marks.delimiter) else {
            return Err(Error::RowTooLong { path: path.to_owned(), line, limit_bytes: text.len().min(MAX_ROW_BYTES) });
        };
        let has_header = match options.header {
            Header::Present => true,
            Header::Absent => false,
            Header::Auto => is_header(path, line, &first, marks)?,
        };
        let names = if has_header { column_names(path, line, &first)? } else { (0..first.len()).map(unnamed).collect() };
        let roles = Roles::find(path, names, &options.columns)?;
        let slots = slots(&roles);
        let header_lines = text[start..end].iter().filter(|&&byte| byte == b'\n').count() as u64;
        let (start, line) = if has_header { (end, line + header_lines) } else { (start, line) };
        Ok(Self { marks, roles, slots, start, line, has_header })
    }
}

/// Files that are something else, which would only make for odd messages further on.
fn what_else(text: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 5] = [
        (b"BZh", "bzip2 data (unpack it first)"),
        (b"PK\x03\x04", "a zip archive (unpack it first)"),
        (b"PAR1", "a Parquet file"),
        (b"\xff\xfe", "UTF-16 text (convert it to UTF-8 first)"),
        (b"\xfe\xff", "UTF-16 text (convert it to UTF-8 first)"),
    ];
    known.iter().find(|(start, _)| text.starts_with(start)).map(|(_, what)| *what)
}

/// The first of tab, semicolon and comma that cuts the first two rows into equally many cells, more than one.
fn delimiter(text: &[u8], start: usize, options: &CsvOptions) -> u8 {
    const CANDIDATES: [u8; 3] = [b'\t', b';', b','];
    if let Delimiter::Byte(byte) = options.delimiter {
        return byte;
    }
    let cuts_evenly = |&candidate: &u8| {
        let Some((first, end)) = cells(text, start, candidate) else { return false };
        let second = cells(text, end, candidate);
        first.len() > 1 && second.is_none_or(|(second, _)| second.len() == first.len())
    };
    let found = CANDIDATES.into_iter().find(cuts_evenly);
    // The rows differ: take what the first has, and let the second be reported.
    let occurs = |&candidate: &u8| cells(text, start, candidate).is_some_and(|(first, _)| first.len() > 1);
    found.or_else(|| CANDIDATES.into_iter().find(occurs)).unwrap_or(b',')
}

fn is_header(path: &Path, line: u64, first: &Cells<'_>, marks: Marks) -> Result<bool, Error> {
    let is_number = |cell: &Cow<'_, [u8]>| number(cell, marks.decimal).is_some();
    let a_number = first.iter().find(|cell| is_number(cell) && !is_missing(cell));
    let a_text = first.iter().find(|cell| !is_number(cell) && !is_missing(cell));
    match (a_number, a_text) {
        (Some(number), Some(text)) => {
            Err(Error::HeaderOrRow { path: path.to_owned(), line, number: shown(number), text: shown(text) })
        }
        (_, text) => Ok(text.is_some()),
    }
}

fn column_names(path: &Path, line: u64, first: &Cells<'_>) -> Result<Vec<String>, Error> {
    let mut seen = HashMap::new();
    let mut names = Vec::with_capacity(first.len());
    for (i, cell) in first.iter().enumerate() {
        let Ok(name) = str::from_utf8(cell) else {
            return Err(Error::HeaderNotUtf8 { path: path.to_owned(), line, col: i + 1, found: shown(cell) });
        };
        let name = if name.is_empty() { unnamed(i) } else { name.to_owned() };
        if let Some(first) = seen.insert(name.clone(), i) {
            return Err(Error::DuplicateColumn { path: path.to_owned(), name, first: first + 1, second: i + 1 });
        }
        names.push(name);
    }
    Ok(names)
}

/// Where the value of each column goes.
fn slots(roles: &Roles) -> Vec<usize> {
    let n_features = roles.features.len();
    let mut slots = vec![SKIPPED; roles.names.len()];
    for (slot, &col) in roles.features.iter().enumerate() {
        slots[col] = slot;
    }
    slots[roles.label] = n_features;
    if let Some(weight) = roles.weight {
        slots[weight] = n_features + 1;
    }
    slots
}

/// The name of a column that has none.
fn unnamed(index: usize) -> String {
    format!("column_{index}")
}

/// A cell for a message: as text, and not too much of it.
pub(super) fn shown(cell: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(cell);
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.into_owned(),
    }
}
