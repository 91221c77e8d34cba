//! Rows of text to rows of numbers.

use memchr::memchr_iter;

use super::CsvOptions;
use super::chunks::Chunk;
use super::decimal::{LOOK_AHEAD, Marks, Place, long_cell, number, simple_cell};
use super::head::{Head, shown};
use super::quotes::{cell_content, cell_end, row_end};
use crate::import::{BadRows, LabelKind, Missing};
use crate::statistics::Moments;

/// The slot of a column that is left out.
pub(super) const SKIPPED: usize = usize::MAX;

/// How many bad rows are remembered; the others are only counted.
pub(super) const MAX_REPORTS: usize = 10;

/// What a chunk of text says.
#[derive(Debug)]
pub(super) struct ParsedRows {
    /// `[n_rows, n_features]`
    pub(super) features: Vec<f32>,
    pub(super) labels: Vec<f32>,
    /// As many as labels, or none.
    pub(super) weights: Vec<f32>,
    pub(super) moments: Moments,
    pub(super) n_lines: u64,
    pub(super) n_bad: u64,
    /// The first of the bad rows.
    pub(super) problems: Vec<Problem>,
}

/// Why a row is bad.
#[derive(Debug)]
pub(super) struct Problem {
    /// The line, counted from 0 at the start of the chunk.
    pub(super) line: u64,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// A cell that is not what its column holds.
    Cell {
        col: usize,
        found: String,
        expected: &'static str,
    },
    Ragged {
        found: usize,
    },
    QuoteLeftOpen,
}

/// How rows become numbers.
#[derive(Debug)]
pub(super) struct RowParser {
    marks: Marks,
    slots: Vec<usize>,
    n_features: usize,
    label: usize,
    has_weight: bool,
    label_kind: LabelKind,
    missing: Missing,
    bad_rows: BadRows,
}

impl RowParser {
    pub(super) fn new(head: &Head, options: &CsvOptions) -> Self {
        Self {
            marks: head.marks,
            slots: head.slots.clone(),
            n_features: head.roles.features.len(),
            label: head.roles.label,
            has_weight: head.roles.weight.is_some(),
            label_kind: options.columns.label_kind,
            missing: options.columns.missing,
            bad_rows: options.columns.bad_rows,
        }
    }

    /// Makes `parsed` what the rows of `chunk` say. Unless bad rows are skipped, it ends before the first of them.
    pub(super) fn parse(&self, chunk: &Chunk, parsed: &mut ParsedRows) {
        let (text, len) = (chunk.with_look_ahead(), chunk.rows().len());
        parsed.clear(self.n_features);
        let mut row = vec![0.0; self.n_features + 2];
        let mut at = 0;
        while at < len {
            if text[at] == b'\n' || text[at..].starts_with(b"\r\n") {
                at += if text[at] == b'\n' { 1 } else { 2 };
                continue;
            }
            match self.parse_row(text, at, &mut row) {
                Ok(next) => {
                    parsed.features.extend_from_slice(&row[..self.n_features]);
                    parsed.labels.push(row[self.n_features]);
                    if self.has_weight {
                        parsed.weights.push(row[self.n_features + 1]);
                    }
                    at = next;
                }
                Err((place, what)) => {
                    if parsed.problems.len() < MAX_REPORTS {
                        parsed.problems.push(Problem { line: n_lines(&text[..place]), what });
                    }
                    parsed.n_bad += 1;
                    if self.bad_rows == BadRows::Error {
                        break;
                    }
                    at = row_end(&text[..len], at, self.marks.delimiter).unwrap_or(len);
                }
            }
        }
        parsed.n_lines = n_lines(&text[..len]);
        parsed.moments.add(&parsed.features);
    }

    /// Parses the row at `start` into `row`; the byte after it, or where it went wrong and how.
    #[inline]
    fn parse_row(&self, text: &[u8], start: usize, row: &mut [f32]) -> Result<usize, (usize, What)> {
        let (&last, inner) = self.slots.split_last().expect("a file has a label and a feature at least");
        let mut at = start;
        for (col, &slot) in inner.iter().enumerate() {
            at += self.parse_cell(text, at, col, slot, Place::Inner, row)?;
            if text[at] != self.marks.delimiter {
                return Err((at, What::Ragged { found: col + 1 }));
            }
            at += 1;
        }
        at += self.parse_cell(text, at, inner.len(), last, Place::Last, row)?;
        if text[at] != b'\n' {
            return Err((start, What::Ragged { found: self.count_cells(text, start) }));
        }
        if self.label_kind == LabelKind::Binary && row[self.n_features] != 0.0 && row[self.n_features] != 1.0 {
            return Err(self.not_binary(text, start));
        }
        Ok(at + 1)
    }

    /// Parses the cell at `at`, and returns how long it is.
    #[inline(always)]
    fn parse_cell(
        &self,
        text: &[u8],
        at: usize,
        col: usize,
        slot: usize,
        place: Place,
        row: &mut [f32],
    ) -> Result<usize, (usize, What)> {
        if slot != SKIPPED
            && let Some(window) = text[at..].first_chunk::<LOOK_AHEAD>()
        {
            if let Some((value, len)) = simple_cell(window, self.marks, place) {
                row[slot] = value;
                return Ok(len);
            }
            if let Some((value, len)) = long_cell(window, self.marks, place) {
                row[slot] = value;
                return Ok(len);
            }
        }
        self.parse_any_cell(text, at, col, slot, row)
    }

    /// The same for cells of every kind: quoted, long, blank, missing, wrong.
    #[inline(never)]
    fn parse_any_cell(&self, text: &[u8], at: usize, col: usize, slot: usize, row: &mut [f32]) -> Result<usize, (usize, What)> {
        let Some(end) = cell_end(text, at, self.marks.delimiter) else {
            return Err((at, What::QuoteLeftOpen));
        };
        if slot == SKIPPED {
            return Ok(end - at);
        }
        let content = cell_content(text, at, end);
        let value = number(&content, self.marks.decimal);
        let expected = match value {
            Some(value) if value.is_finite() => {
                row[slot] = value;
                return Ok(end - at);
            }
            Some(value) if value.is_infinite() && content.iter().any(u8::is_ascii_digit) => {
                "a number within the range of f32, up to 3.4e38; scale the column"
            }
            _ if slot > self.n_features => "a finite weight; mend it, or pass `BadRows::Skip`",
            _ if slot == self.n_features => {
                "a label, which is a finite number; mend it, name another label column, or pass `BadRows::Skip`"
            }
            Some(value) if value.is_infinite() => {
                if self.missing == Missing::Keep {
                    row[slot] = value;
                    return Ok(end - at);
                }
                "a finite number; pass `Missing::Keep` to keep it, or `BadRows::Skip`"
            }
            None if !is_missing(&content) => "a number; mend it, drop the column, or pass `BadRows::Skip`",
            _ => {
                if self.missing == Missing::Keep {
                    row[slot] = f32::NAN;
                    return Ok(end - at);
                }
                "a number, this is a missing value; pass `Missing::Keep` to keep it as NaN, or `BadRows::Skip`"
            }
        };
        Err((at, What::Cell { col, found: shown(&content), expected }))
    }

    #[cold]
    fn not_binary(&self, text: &[u8], start: usize) -> (usize, What) {
        let mut at = start;
        for _ in 0..self.label {
            at = self.end_of_parsed(text, at) + 1;
        }
        let found = shown(&cell_content(text, at, self.end_of_parsed(text, at)));
        (at, What::Cell { col: self.label, found, expected: "a label 0 or 1; pass `LabelKind::Number` for others" })
    }

    /// How many cells the row has, as far as it goes.
    #[cold]
    fn count_cells(&self, text: &[u8], start: usize) -> usize {
        let (mut at, mut n) = (start, 1);
        while let Some(end) = cell_end(text, at, self.marks.delimiter) {
            if text[end] == b'\n' {
                break;
            }
            (at, n) = (end + 1, n + 1);
        }
        n
    }

    fn end_of_parsed(&self, text: &[u8], at: usize) -> usize {
        cell_end(text, at, self.marks.delimiter).expect("the row was parsed to its end")
    }
}

impl ParsedRows {
    pub(super) fn new(n_features: usize) -> Self {
        let (features, labels, weights, problems) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { features, labels, weights, moments: Moments::new(n_features), n_lines: 0, n_bad: 0, problems }
    }

    fn clear(&mut self, n_features: usize) {
        self.features.clear();
        self.labels.clear();
        self.weights.clear();
        self.problems.clear();
        self.moments = Moments::new(n_features);
        (self.n_lines, self.n_bad) = (0, 0);
    }
}

/// Whether the cell says that there is no value.
pub(super) fn is_missing(content: &[u8]) -> bool {
    const WORDS: [&str; 6] = ["nan", "na", "n/a", "null", "none", "?"];
    content.is_empty() || WORDS.iter().any(|word| content.eq_ignore_ascii_case(word.as_bytes()))
}

fn n_lines(text: &[u8]) -> u64 {
    memchr_iter(b'\n', text).count() as u64
}
