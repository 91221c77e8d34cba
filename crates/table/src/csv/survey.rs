//! What the cells of each column of a text file are, found by reading all of it before anything is decided.

mod column;
mod dates;
mod found;
mod marked;
mod odd_cell;
mod sketch;
mod thousands;
mod units;

use std::borrow::Cow;
use std::path::Path;

use super::chunks::{Chunk, ChunkEnds};
use super::decimal::number64;
use super::head::Head;
use super::quotes::{cell_content, cell_end};
use super::text::{Parsed, Text, n_lines};
use super::{CsvOptions, Decimal};
use crate::error::{Error, SourceError};
use crate::import::{ColumnOptions, ColumnRef, LabelKind};

pub use column::{ColumnKind, ColumnSurvey};
pub use found::FoundNumbers;
pub use odd_cell::OddCell;

/// What each column of a text file contains: [`survey_csv`](crate::survey_csv).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Survey {
    /// The number of rows. Rows of a wrong length, which an import reports, are not counted.
    pub n_rows: u64,
    /// The columns, in the order of the file.
    pub columns: Vec<ColumnSurvey>,
    /// Those that are the index of a data frame: see [`ColumnOptions::keep_index`](crate::ColumnOptions::keep_index).
    pub index_columns: Vec<String>,
}

/// Reads all of a CSV or TSV file, plain or compressed, and returns what the cells of each column are: numbers, dates, text, and
/// which cells are unlike the others. Delimiter, header and blanks are treated as in [`CsvOptions`](crate::CsvOptions); the roles
/// of columns are ignored.
///
/// # Errors
/// [`Error::Io`], [`Error::Source`] and similar, as [`CsvOptions`](crate::CsvOptions).
/// # Cost
/// Parses the file once, on all cores. Memory: a few megabytes per core.
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let source = folder.path().join("rows.csv");
/// use brisk_table::{ColumnKind, CsvOptions, survey_csv};
///
/// std::fs::write(&source, "day,zip,price\n2024-01-05,01234,-\n2024-01-06,1234,2.5\n")?;
/// let survey = survey_csv(&source, &CsvOptions::default())?;
/// let kinds: Vec<_> = survey.columns.iter().map(|column| column.kind()).collect();
/// assert_eq!(kinds, [ColumnKind::Dates, ColumnKind::Codes, ColumnKind::Numbers]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn survey_csv(source: impl AsRef<Path>, options: &CsvOptions) -> Result<Survey, Error> {
    survey_csv_with_progress(source, options, |_| ())
}

/// Like [`survey_csv`]; `progress` is called on this thread after about every megabyte of text, with the number of rows so far.
pub fn survey_csv_with_progress(
    source: impl AsRef<Path>,
    options: &CsvOptions,
    mut progress: impl FnMut(u64),
) -> Result<Survey, Error> {
    let missing = &options.columns.missing_values;
    let new = |head: &Head| -> Vec<ColumnSurvey> {
        head.roles.names.iter().map(|name| ColumnSurvey::new(name, options.decimal, missing)).collect()
    };
    let add = |columns: &mut Vec<ColumnSurvey>, cells: &Cells<'_>| {
        for (col, column) in columns.iter_mut().enumerate() {
            column.add_bytes(&cells.content(col), 1, || cells.line(col));
        }
    };
    let merge = |columns: &mut Vec<ColumnSurvey>, later: &Vec<ColumnSurvey>, line| {
        columns.iter_mut().zip(later).for_each(|(column, later)| column.merge(later, line));
    };
    let (n_rows, columns, head) = scan(source.as_ref(), options, &mut progress, new, add, merge)?;
    Ok(Survey { n_rows, columns, index_columns: head.roles.left_out })
}

/// The numbers of a column of a CSV or TSV file for which `is_wanted` is true: how many there are, and the first cells with their
/// lines. The file is read as by [`survey_csv`].
///
/// # Errors
/// As for [`survey_csv`]; [`SourceError::NoColumn`].
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let source = folder.path().join("rows.csv");
/// use brisk_table::{CsvOptions, find_numbers};
///
/// std::fs::write(&source, "y,a\n1,20\n0,-999\n1,-999.0\n")?;
/// let found = find_numbers(&source, &CsvOptions::default(), &"a".into(), |number| number == -999.0)?;
/// assert_eq!((found.n, found.first[0].line), (2, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn find_numbers(
    source: impl AsRef<Path>,
    options: &CsvOptions,
    column: &ColumnRef,
    is_wanted: impl Fn(f64) -> bool + Sync,
) -> Result<FoundNumbers, Error> {
    let path = source.as_ref();
    // The column is known once the head is.
    let find = |head: &Head| column.find(&head.roles.names, "column to look at");
    let decimal = options.decimal.mark();
    let new = |head: &Head| (find(head), FoundNumbers::default());
    let add = |(column, found): &mut (Result<usize, SourceError>, FoundNumbers), cells: &Cells<'_>| {
        if let Ok(column) = *column {
            let cell = cells.content(column);
            if number64(&cell, decimal).is_some_and(&is_wanted) {
                found.add(&cell, || cells.line(column));
            }
        }
    };
    let merge = |(_, found): &mut (Result<usize, SourceError>, FoundNumbers),
                 later: &(Result<usize, SourceError>, FoundNumbers),
                 line| {
        found.merge(&later.1, line);
    };
    let (_, (column, found), _) = scan(path, options, &mut |_| (), new, add, merge)?;
    column.map(|_| found).map_err(|reason| reason.at(path))
}

/// The cells of some columns of a CSV or TSV file, without quotes, as they are in the file, in the order of its rows: for each
/// column its name and the cell of each row. The file is read as by [`survey_csv_with_progress`].
///
/// # Errors
/// As for [`survey_csv`]; [`SourceError::NoColumn`] for the first column that the file does not have.
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let source = folder.path().join("rows.csv");
/// use brisk_table::{CsvOptions, read_cells};
///
/// std::fs::write(&source, "id,a\n007,20\n\"NA\",\n")?;
/// let columns = read_cells(&source, &CsvOptions::default(), &["id".into()], |_| ())?;
/// assert_eq!(columns, [("id".to_owned(), vec!["007".to_owned(), "NA".to_owned()])]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_cells(
    source: impl AsRef<Path>,
    options: &CsvOptions,
    columns: &[ColumnRef],
    mut progress: impl FnMut(u64),
) -> Result<Vec<(String, Vec<String>)>, Error> {
    type Found = (Result<Vec<usize>, SourceError>, Vec<Vec<String>>);
    let path = source.as_ref();
    let new = |head: &Head| -> Found {
        let found = columns.iter().map(|column| column.find(&head.roles.names, "columns to read"));
        (found.collect(), vec![Vec::new(); columns.len()])
    };
    let add = |(found, texts): &mut Found, cells: &Cells<'_>| {
        for (&col, texts) in found.iter().flatten().zip(texts) {
            texts.push(String::from_utf8_lossy(&cells.content(col)).into_owned());
        }
    };
    let merge = |(_, texts): &mut Found, later: &Found, _| {
        texts.iter_mut().zip(&later.1).for_each(|(texts, later)| texts.extend_from_slice(later));
    };
    let (_, (found, texts), head) = scan(path, options, &mut progress, new, add, merge)?;
    let found = found.map_err(|reason| reason.at(path))?;
    Ok(found.into_iter().map(|col| head.roles.names[col].clone()).zip(texts).collect())
}

/// Reads all rows. `new` makes an empty result for a part of them, `add` adds a row, and `merge` adds the result for later rows,
/// whose lines are counted from a line.
fn scan<T: Send>(
    path: &Path,
    options: &CsvOptions,
    progress: &mut dyn FnMut(u64),
    new: impl Fn(&Head) -> T + Sync,
    add: impl Fn(&mut T, &Cells<'_>) + Sync,
    merge: impl Fn(&mut T, &T, u64),
) -> Result<(u64, T, Head), Error> {
    let keep_index = options.columns.keep_index;
    let columns = ColumnOptions { label_kind: LabelKind::Absent, keep_index, ..ColumnOptions::default() };
    let mut text = Text::open(path)?;
    let head = Head::find(text.peek()?, &CsvOptions { columns, ..options.clone() }, None).map_err(|reason| reason.at(path))?;
    let delimiter = head.marks.delimiter;
    text.start_at(head.start, ChunkEnds::Rows { delimiter });

    let (mut whole, mut n_rows) = (new(&head), 0);
    let empty = || Part { n_rows: 0, found: new(&head) };
    let read = |chunk: &Chunk, parsed: &mut Parsed<Part<T>, ()>| {
        parsed.rows = empty();
        parsed.rows.read(chunk, delimiter, head.roles.names.len(), &add);
    };
    text.parse(options.n_threads, empty, read, |parsed, start, _| {
        merge(&mut whole, &parsed.rows.found, start.line);
        n_rows += parsed.rows.n_rows;
        progress(n_rows);
        Ok(())
    })?;
    Ok((n_rows, whole, head))
}

/// What was found in one chunk.
struct Part<T> {
    n_rows: u64,
    found: T,
}

/// The cells of a row.
struct Cells<'a> {
    text: &'a [u8],
    /// The start of the row, and its line.
    row: usize,
    line: u64,
    spans: &'a [std::ops::Range<usize>],
}

impl Cells<'_> {
    fn content(&self, col: usize) -> Cow<'_, [u8]> {
        cell_content(self.text, self.spans[col].start, self.spans[col].end)
    }

    fn line(&self, col: usize) -> u64 {
        self.line + n_lines(&self.text[self.row..self.spans[col].start])
    }
}

impl<T> Part<T> {
    fn read(&mut self, chunk: &Chunk, delimiter: u8, n_columns: usize, add: &impl Fn(&mut T, &Cells<'_>)) {
        let text = chunk.rows();
        let mut spans = Vec::with_capacity(n_columns);
        let mut at = 0;
        // The lines before `counted`.
        let (mut line, mut counted) = (0, 0);
        while let Some(row) = next_row(text, &mut at, delimiter, &mut spans) {
            line += n_lines(&text[counted..row]);
            counted = row;
            if spans.len() == n_columns {
                self.n_rows += 1;
                add(&mut self.found, &Cells { text, row, line, spans: &spans });
            }
        }
    }
}

/// Finds the cells of the next row that is not blank; returns where it starts.
fn next_row(text: &[u8], at: &mut usize, delimiter: u8, spans: &mut Vec<std::ops::Range<usize>>) -> Option<usize> {
    while text[*at..].starts_with(b"\n") || text[*at..].starts_with(b"\r\n") {
        *at += if text[*at] == b'\n' { 1 } else { 2 };
    }
    let start = *at;
    spans.clear();
    loop {
        let end = cell_end(text, *at, delimiter)?;
        spans.push(*at..end);
        *at = end + 1;
        if text[end] == b'\n' {
            return Some(start);
        }
    }
}

impl Decimal {
    /// Its character.
    pub(crate) fn mark(self) -> u8 {
        match self {
            Self::Point => b'.',
            Self::Comma => b',',
        }
    }
}
