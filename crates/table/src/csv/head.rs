//! The first rows of a file: the delimiter, the names of the columns, and the role of each.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::{memchr, memchr_iter};

use super::chunks::{MAX_ROW_BYTES, too_long};
use super::decimal::{Marks, number, number64};
use super::quotes::cells;
use super::text::Position;
use super::{CsvOptions, Delimiter, Header};
use crate::error::SourceError;
use crate::import::{Categorical, ImportWarning, Like, Roles, has_leading_zero, is_missing};
use crate::remedy::Remedy;

/// The slot of the first column that is read as text: categories, followed by the label if it is a class.
pub(super) const TEXT: usize = usize::MAX / 2;

/// Added to the slot of a number from which an offset is subtracted.
pub(super) const SHIFTED: usize = usize::MAX / 4;

/// The slot of a dropped column.
pub(super) const SKIPPED: usize = usize::MAX;

/// How to read a file, with all options resolved.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) marks: Marks,
    pub(super) roles: Roles,
    /// For each column, where its value goes in a row: to a feature, or after them to the labels and the weight, or nowhere
    /// ([`SKIPPED`]).
    pub(super) slots: Vec<usize>,
    /// Where the rows start.
    pub(super) start: Position,
    pub(super) has_header: bool,
    /// A warning about the first row, if it is one.
    pub(super) warning: Option<ImportWarning>,
}

type Cells<'a> = Vec<Cow<'a, [u8]>>;

impl Head {
    /// Determines the head from the first `text` of a file.
    pub(super) fn find(text: &[u8], options: &CsvOptions, like: Option<&Like>) -> Result<Self, SourceError> {
        if let Some(found) = what_else(text) {
            return Err(SourceError::NoRows { found });
        }
        let bom = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let skipped = bom + lines_end(&text[bom..], options.skip_lines);
        let named = named_delimiter(&text[skipped..]).filter(|_| options.delimiter == Delimiter::Auto);
        let skipped = skipped + named.map_or(0, |(_, len)| len);
        // Blank lines before the first row are not rows.
        let start = skipped + text[skipped..].iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        let line = 1 + text[..start].iter().filter(|&&byte| byte == b'\n').count() as u64;
        if text[start..].trim_ascii().is_empty() {
            let found = match (text.is_empty(), options.skip_lines) {
                (true, _) => "an empty file",
                (false, 0) => "only blank lines",
                (false, _) => "nothing after the lines to skip",
            };
            return Err(SourceError::NoRows { found });
        }
        let delimiter = named.map_or_else(|| delimiter(text, start, options), |(delimiter, _)| delimiter);
        let marks = Marks { delimiter, decimal: options.decimal.mark() };
        if marks.delimiter == marks.decimal || matches!(marks.delimiter, b'"' | b'\n' | b'\r' | b'-' | b'+' | b'.' | b'0'..=b'9')
        {
            let delimiter = char::from(marks.delimiter);
            let problem = format!("{delimiter:?} cannot separate cells, since it occurs in numbers or ends lines; pass another");
            return Err(SourceError::roles(problem, &[]));
        }
        let at = Position { line, byte: start as u64 };
        let Some((first, end)) = cells(text, start, marks.delimiter) else {
            return Err(at.line_error(too_long(text.len().min(MAX_ROW_BYTES)), &[]));
        };
        if let Some((n_cells, line_of_table)) = title(text, start, &first, options) {
            let (found, after) = (shown(&first[0]), line + line_of_table);
            let problem = format!(
                "{found:?} is the only cell of the first line, and line {after} has {n_cells} cells, as if the table began there"
            );
            return Err(at.line_error(problem, &[Remedy::SkipLines, Remedy::HeaderPresent]));
        }
        let has_header = match options.header {
            Header::Present => true,
            Header::Absent => false,
            Header::Auto => is_header(at, &first, marks)?,
        };
        let looks_like_names = options.header == Header::Auto && !has_header && are_like_names(&first, &text[end..], marks);
        let warning = looks_like_names.then(|| {
            let cells = first.iter().map(|cell| String::from_utf8_lossy(cell)).collect::<Vec<_>>().join(",");
            ImportWarning::NumbersAsNames { line, cells: shown(cells.as_bytes()) }
        });
        let names = if has_header { column_names(at, &first)? } else { (0..first.len()).map(unnamed).collect() };
        let header_lines = text[start..end].iter().filter(|&&byte| byte == b'\n').count() as u64;
        let (start, line) = if has_header { (end, line + header_lines) } else { (start, line) };
        let columns = &options.columns;
        let has_text = match columns.categorical {
            Categorical::Auto => text_columns(&text[start..], marks, names.len(), &columns.missing_values),
            Categorical::No | Categorical::Columns(_) => Vec::new(),
        };
        // The index of a data frame is written before its columns, and rarely has a name.
        let n_index = if has_header { first.iter().take_while(|cell| cell.is_empty()).count() } else { 0 };
        let index: Vec<usize> = (0..n_index).collect();
        let roles = Roles::find(&names, columns, like, &index, &|col| has_text[col])?;
        let slots = slots(&roles);
        let start = Position { line, byte: start as u64 };
        Ok(Self { marks, roles, slots, start, has_header, warning })
    }
}

/// Recognises files of other formats, which would only lead to confusing errors later.
pub(crate) fn what_else(text: &[u8]) -> Option<&'static str> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let known: [(&[u8], &str); 6] = [
        (b"BZh", "bzip2 data (unpack it first)"),
        (b"PK\x03\x04", "a zip archive (unpack it first)"),
        (b"PAR1", "a Parquet file"),
        (b"\xd0\xcf\x11\xe0", "an Excel workbook (save its sheet as CSV first)"),
        (b"\xff\xfe", "UTF-16 text (convert it to UTF-8 first)"),
        (b"\xfe\xff", "UTF-16 text (convert it to UTF-8 first)"),
    ];
    let found = known.iter().find(|(start, _)| text.starts_with(start)).map(|(_, what)| *what);
    let first: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).take(9).collect();
    let is_json = [&b"{\""[..], b"[{", b"[["].iter().any(|start| first.starts_with(start));
    let starts = |word: &[u8]| first.to_ascii_lowercase().starts_with(word);
    let is_page = [&b"<!doctype"[..], b"<html", b"<table"].into_iter().any(starts);
    let found = found.or(is_json.then_some("JSON (convert it to CSV or Parquet first)"));
    let found = found.or(is_utf16(text).then_some("UTF-16 text (convert it to UTF-8 first)"));
    let found = found.or(starts(b"<?xml").then_some("XML (convert it to CSV first)"));
    let found = found.or(starts(b"@relation").then_some("an ARFF file (convert it to CSV first)"));
    found.or(is_page.then_some("an HTML page (save its table as CSV first)")).or_else(|| {
        ends_lines_with_cr(text)
            .then_some("lines that end in a carriage return without a line feed (convert them to line feeds first)")
    })
}

/// Whether every other byte is 0, as in English text in UTF-16 without a byte order mark.
fn is_utf16(text: &[u8]) -> bool {
    const FEWEST_BYTES: usize = 16;
    let start = &text[..text.len().min(FEWEST_BYTES)];
    let are_zeros = |first: usize, is_zero: bool| start.iter().skip(first).step_by(2).all(|&byte| (byte == 0) == is_zero);
    start.len() == FEWEST_BYTES && (0..2).any(|first| are_zeros(first, true) && are_zeros(1 - first, false))
}

/// The delimiter that the first line names for Excel, `sep=;`, and the length of this line.
fn named_delimiter(text: &[u8]) -> Option<(u8, usize)> {
    let (start, rest) = text.split_at_checked(4).filter(|(start, _)| start.eq_ignore_ascii_case(b"sep="))?;
    match rest {
        [delimiter, b'\n', ..] => Some((*delimiter, start.len() + 2)),
        [delimiter, b'\r', b'\n', ..] => Some((*delimiter, start.len() + 3)),
        _ => None,
    }
}

/// Whether the first row is probably a title: it has one cell, and a few lines after it there are two rows in sequence with the
/// same number of several cells, which is returned with the number of lines between.
fn title(text: &[u8], start: usize, first: &Cells<'_>, options: &CsvOptions) -> Option<(usize, u64)> {
    const MOST_LINES: usize = 20;
    let [title, others @ ..] = &first[..] else { return None };
    let is_title = !title.is_empty() && others.iter().all(|cell| cell.is_empty()) && !(1..3).contains(&others.len());
    if !is_title || options.header != Header::Auto {
        return None;
    }
    let ends = memchr_iter(b'\n', &text[start..]).take(MOST_LINES).map(|at| start + at + 1);
    let rows = ends.zip(1..).filter(|&(at, _)| !text[at..].starts_with(b"\n") && !text[at..].starts_with(b"\r\n"));
    rows.into_iter().find_map(|(at, n_lines)| {
        let delimiter = delimiter(text, at, options);
        let (row, end) = cells(text, at, delimiter)?;
        let (next, _) = cells(text, end, delimiter)?;
        (row.len() >= 2 && row.len() == next.len() && row.iter().all(|cell| !cell.is_empty())).then_some((row.len(), n_lines))
    })
}

/// Whether lines end in a carriage return and no line feed follows, as on old Macintosh systems.
fn ends_lines_with_cr(text: &[u8]) -> bool {
    // The last line may have been given its line feed by the reader.
    let lines = text.strip_suffix(b"\n").unwrap_or(text);
    let lines = lines.strip_suffix(b"\r").unwrap_or(lines);
    memchr(b'\r', lines).is_some() && memchr(b'\n', lines).is_none()
}

/// The first of tab, semicolon, comma and vertical bar that splits the first two rows into equally many cells, more than one.
fn delimiter(text: &[u8], start: usize, options: &CsvOptions) -> u8 {
    const CANDIDATES: [u8; 4] = [b'\t', b';', b',', b'|'];
    if let Delimiter::Byte(byte) = options.delimiter {
        return byte;
    }
    let cuts_evenly = |&candidate: &u8| {
        let Some((first, end)) = cells(text, start, candidate) else { return false };
        let second = cells(text, end, candidate);
        first.len() > 1 && second.is_none_or(|(second, _)| second.len() == first.len())
    };
    let found = CANDIDATES.into_iter().find(cuts_evenly);
    // The rows differ: take a delimiter that occurs in the first row, and let the second row be reported as an error.
    let occurs = |&candidate: &u8| cells(text, start, candidate).is_some_and(|(first, _)| first.len() > 1);
    found.or_else(|| CANDIDATES.into_iter().find(occurs)).unwrap_or(b',')
}

fn is_header(at: Position, first: &Cells<'_>, marks: Marks) -> Result<bool, SourceError> {
    let is_number = |cell: &Cow<'_, [u8]>| number(cell, marks.decimal).is_some();
    let a_number = first.iter().find(|cell| is_number(cell) && !is_missing(cell));
    let a_text = first.iter().find(|cell| !is_number(cell) && !is_missing(cell));
    if counts_columns(first) {
        return Ok(true);
    }
    match (a_number, a_text) {
        (Some(number), Some(text)) => {
            let (number, text) = (shown(number), shown(text));
            let problem = format!("{number:?} is a number and {text:?} is not, so this may be a header or a row");
            Err(at.line_error(problem, &[Remedy::HeaderPresent, Remedy::HeaderAbsent]))
        }
        (_, text) => Ok(text.is_some()),
    }
}

/// Whether this is the header of a data frame whose columns have no names, with an index: `,0,1,2`.
fn counts_columns(first: &Cells<'_>) -> bool {
    let (index, columns) = first.split_at(first.len().min(1));
    let counts = columns.iter().enumerate().all(|(i, cell)| **cell == *i.to_string().as_bytes());
    index.iter().all(|cell| cell.is_empty()) && columns.len() > 1 && counts
}

/// Whether numbers in the first row are probably names, such as years: whole numbers in ascending order, as no row after it has
/// them.
fn are_like_names(first: &Cells<'_>, rest: &[u8], marks: Marks) -> bool {
    const FEWEST_COLUMNS: usize = 3;
    const FEWEST_ROWS: usize = 3;
    const MOST_ROWS: usize = 100;
    let ascend = |row: &Cells<'_>| {
        let numbers = row.iter().map(|cell| number64(cell, marks.decimal).filter(|number| number.fract() == 0.0));
        numbers.collect::<Option<Vec<f64>>>().is_some_and(|numbers| numbers.windows(2).all(|pair| pair[0] < pair[1]))
    };
    let (mut at, mut n_rows) = (0, 0);
    while n_rows < MOST_ROWS
        && let Some((row, end)) = cells(rest, at, marks.delimiter)
    {
        // A blank line is not a row, nor is what follows the last one.
        let is_row = row.len() == first.len();
        if is_row && ascend(&row) {
            return false;
        }
        (at, n_rows) = (end, n_rows + usize::from(is_row));
        if !is_row && row.len() > 1 {
            break;
        }
    }
    first.len() >= FEWEST_COLUMNS && n_rows >= FEWEST_ROWS && ascend(first)
}

fn column_names(at: Position, first: &Cells<'_>) -> Result<Vec<String>, SourceError> {
    let mut seen = HashMap::new();
    let mut names = Vec::with_capacity(first.len());
    for (i, cell) in first.iter().enumerate() {
        let Ok(name) = str::from_utf8(cell) else {
            let problem = format!("the name of column {}, {:?}, is not UTF-8", i + 1, shown(cell));
            return Err(at.line_error(problem, &[Remedy::ConvertText, Remedy::HeaderAbsent]));
        };
        let name = if name.is_empty() { unnamed(i) } else { name.to_owned() };
        if let Some(first) = seen.insert(name.clone(), i) {
            let problem = format!("columns {} and {} are both named `{name}`", first + 1, i + 1);
            return Err(SourceError::roles(problem, &[Remedy::RenameColumn, Remedy::HeaderAbsent]));
        }
        names.push(name);
    }
    Ok(names)
}

/// Where the value of each column goes.
fn slots(roles: &Roles) -> Vec<usize> {
    let n_features = roles.rules.n_features();
    let mut slots = vec![SKIPPED; roles.names.len()];
    for (slot, &col) in roles.features.iter().enumerate() {
        slots[col] = if roles.rules.offset(slot) == 0.0 { slot } else { SHIFTED + slot };
    }
    for (place, &col) in roles.categories.iter().enumerate() {
        slots[col] = TEXT + place;
    }
    for (place, &label) in roles.label_columns.iter().enumerate() {
        slots[label] = match n_features + place {
            _ if roles.labels.are_classes() => TEXT + roles.categories.len(),
            slot if roles.rules.offset(slot) != 0.0 => SHIFTED + slot,
            slot => slot,
        };
    }
    if let Some(weight) = roles.weight {
        slots[weight] = n_features + roles.n_labels();
    }
    slots
}

/// Which columns contain text in some row of `text`: a cell that is neither a number nor missing, or a code such as `01234`.
fn text_columns(text: &[u8], marks: Marks, n_columns: usize, missing: &[String]) -> Vec<bool> {
    let is_word = |cell: &[u8]| is_missing(cell) || missing.iter().any(|word| cell.eq_ignore_ascii_case(word.trim().as_bytes()));
    let (mut has_text, mut at) = (vec![false; n_columns], 0);
    while let Some((row, end)) = cells(text, at, marks.delimiter) {
        at = end;
        // Rows of other lengths are bad, or blank lines.
        if row.len() == n_columns {
            for (has_text, cell) in has_text.iter_mut().zip(&row) {
                *has_text |= (number(cell, marks.decimal).is_none() || has_leading_zero(cell)) && !is_word(cell);
            }
        }
    }
    has_text
}

fn lines_end(text: &[u8], n: usize) -> usize {
    let Some(last) = n.checked_sub(1) else { return 0 };
    memchr_iter(b'\n', text).nth(last).map_or(text.len(), |at| at + 1)
}

fn unnamed(index: usize) -> String {
    format!("column_{index}")
}

/// A cell as text for a message, shortened if long.
pub(crate) fn shown(cell: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(cell);
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.into_owned(),
    }
}
