use std::path::Path;

use super::chunks::{Chunk, ChunkEnds, ChunkError, Chunks, MAX_ROW_BYTES};
use super::head::Head;
use super::pipeline::parse_in_order;
use super::quotes::{cell_content, cell_end};
use super::{CsvOptions, Decimal};
use crate::import::{Categorical, Indicators, Input, n_threads, read_error};
use crate::survey::{ColumnSurvey, Survey};
use crate::{ColumnOptions, Error, LabelKind};

/// Reads all of a CSV or TSV file, plain or compressed, and returns what the cells of each column are: numbers, dates, text, and which cells are
/// unlike the others. Delimiter, header and blanks are treated as in [`import_csv`](crate::import_csv); the roles of columns are ignored.
///
/// # Errors
/// [`Error::Io`], [`Error::NoRows`], [`Error::HeaderOrRow`] and similar, as [`import_csv`](crate::import_csv).
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
///
/// # Errors
/// As for [`survey_csv`].
pub fn survey_csv_with_progress(
    source: impl AsRef<Path>,
    options: &CsvOptions,
    mut progress: impl FnMut(u64),
) -> Result<Survey, Error> {
    let path = source.as_ref();
    let missing = &options.columns.missing_values;
    let columns = ColumnOptions {
        label_kind: LabelKind::Absent,
        features: None,
        offsets: Vec::new(),
        weight: None,
        drop: Vec::new(),
        categorical: Categorical::No,
        indicators: Indicators::No,
        like: None,
        ..options.columns.clone()
    };
    let input = Input::open(path)?;
    let unreadable = read_error(path, input.action);
    let mut chunks = Chunks::new(input.bytes);
    let head = Head::find(path, chunks.peek().map_err(&unreadable)?, &CsvOptions { columns, ..options.clone() }, None)?;
    let delimiter = head.marks.delimiter;
    chunks.start_at(head.start, ChunkEnds::Rows { delimiter });

    let new = || -> Part {
        let columns = head.roles.names.iter().map(|name| ColumnSurvey::new(name, options.decimal, missing)).collect();
        Part { n_rows: 0, n_lines: 0, columns }
    };
    let mut whole = new();
    whole.n_lines = head.line;
    let take = |part: Result<&mut Part, ChunkError>| {
        let part = part.map_err(|error| match error {
            ChunkError::Read(error) => unreadable(error),
            ChunkError::RowTooLong => {
                let line = whole.n_lines;
                Error::RowTooLong { path: path.to_owned(), line, byte: head.start as u64, limit_bytes: MAX_ROW_BYTES }
            }
        })?;
        let line = whole.n_lines;
        whole.columns.iter_mut().zip(&part.columns).for_each(|(column, later)| column.merge(later, line));
        whole.n_rows += part.n_rows;
        whole.n_lines += part.n_lines;
        progress(whole.n_rows);
        Ok(())
    };
    parse_in_order(
        chunks,
        n_threads(options.n_threads),
        new,
        |chunk, part| {
            *part = new();
            part.read(chunk, delimiter);
        },
        take,
    )?;
    Ok(Survey { n_rows: whole.n_rows, columns: whole.columns, index_columns: head.roles.left_out })
}

/// The survey of one chunk.
struct Part {
    n_rows: u64,
    n_lines: u64,
    columns: Vec<ColumnSurvey>,
}

impl Part {
    fn read(&mut self, chunk: &Chunk, delimiter: u8) {
        let text = chunk.rows();
        let mut spans = Vec::with_capacity(self.columns.len());
        let mut at = 0;
        // The lines before `counted`.
        let (mut line, mut counted) = (0, 0);
        while let Some(row) = next_row(text, &mut at, delimiter, &mut spans) {
            line += n_lines(&text[counted..row]);
            counted = row;
            if spans.len() == self.columns.len() {
                self.n_rows += 1;
                for (column, span) in self.columns.iter_mut().zip(&spans) {
                    let here = || line + n_lines(&text[row..span.start]);
                    column.add_bytes(&cell_content(text, span.start, span.end), 1, here);
                }
            }
        }
        self.n_lines = line + n_lines(&text[counted..]);
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

fn n_lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
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
