//! Conversion of chunks of lines to rows of numbers.

use super::MAX_INDEX;
use super::line::{Entry, Label, LineParser, Wrong};
use crate::csv::Chunk;
use crate::error::SvmlightError;
use crate::import::{BadRows, ChunkLabels, FeatureRules, MAX_REPORTS, RowChunk};

/// The lines of a chunk, and which of them are bad.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) n_lines: u64,
    pub(super) n_bytes: u64,
    pub(super) n_bad: u64,
    /// The first few of the bad lines.
    pub(super) problems: Vec<Problem>,
}

/// Why a line is bad.
#[derive(Debug)]
pub(super) struct Problem {
    /// The line, counted from 0 at the start of the chunk.
    pub(super) line: u64,
    /// The byte offset of the problem in the chunk.
    pub(super) byte: u64,
    pub(super) reason: SvmlightError,
}

impl Lines {
    /// Reads the lines one by one. Unless bad rows are skipped, it stops after the first of them.
    fn read(&mut self, text: &[u8], bad_rows: BadRows, mut read: impl FnMut(&[u8]) -> Result<(), Wrong>) {
        (self.n_lines, self.n_bytes, self.n_bad) = (0, text.len() as u64, 0);
        self.problems.clear();
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text) {
            if let Err((at, reason)) = read(&text[start..end]) {
                if self.problems.len() < MAX_REPORTS {
                    self.problems.push(Problem { line: self.n_lines, byte: (start + at) as u64, reason });
                }
                self.n_bad += 1;
                if bad_rows != BadRows::Skip {
                    return;
                }
            }
            (start, self.n_lines) = (end + 1, self.n_lines + 1);
        }
    }
}

/// The result of the first pass for the rows of a chunk, except bad ones.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    pub(super) lines: Lines,
    pub(super) n_rows: u64,
    pub(super) indices: IndexRange,
    entries: Vec<Entry>,
}

/// The smallest and the largest index, if there are any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IndexRange(pub(super) Option<(usize, usize)>);

impl IndexRange {
    pub(super) fn add(&mut self, other: Self) {
        self.0 = match (self.0, other.0) {
            (Some((low, high)), Some((other_low, other_high))) => Some((low.min(other_low), high.max(other_high))),
            (one, none) => one.or(none),
        };
    }
}

impl Scanned {
    pub(super) fn scan(&mut self, chunk: &Chunk, parser: &LineParser, bad_rows: BadRows) {
        let Self { lines, n_rows, indices, entries } = self;
        (*n_rows, *indices) = (0, IndexRange::default());
        lines.read(chunk.rows(), bad_rows, |line| {
            if parser.read(line, entries)?.is_some() {
                *n_rows += 1;
                // The indices are sorted.
                indices.add(IndexRange(entries.first().zip(entries.last()).map(|(first, last)| (first.index, last.index))));
            }
            Ok(())
        });
    }
}

/// The features of a dense row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The index of the first feature: 0 or 1.
    pub(super) first_index: usize,
    pub(super) n_features: usize,
}

impl Shape {
    /// The number of rows that are made dense at a time, so that long rows take no more memory than short ones.
    pub(super) fn rows_at_once(self) -> usize {
        const DENSE_BYTES: usize = 4 << 20;
        (DENSE_BYTES / size_of::<f32>() / self.n_features).max(1)
    }

    pub(super) const MAX_FEATURES: usize = MAX_INDEX + 1;
}

/// The rows of a chunk.
#[derive(Debug)]
pub(super) struct DenseRows {
    pub(super) lines: Lines,
    pub(super) rows: RowChunk,
    entries: Vec<Entry>,
}

impl DenseRows {
    pub(super) fn new(rows: RowChunk) -> Self {
        Self { lines: Lines::default(), rows, entries: Vec::new() }
    }

    pub(super) fn parse(&mut self, chunk: &Chunk, parser: &LineParser, bad_rows: BadRows, shape: Shape, rules: &FeatureRules) {
        let Self { lines, rows, entries } = self;
        rows.clear();
        lines.read(chunk.rows(), bad_rows, |line| {
            let Some(label) = parser.read(line, entries)? else { return Ok(()) };
            let start = rows.features.len();
            rows.features.resize(start + shape.n_features, 0.0);
            if let Err(wrong) = fill_in(&mut rows.features[start..], entries, shape, rules) {
                rows.features.truncate(start);
                return Err(wrong);
            }
            match (&mut rows.labels, label) {
                (ChunkLabels::Numbers(labels), Label::Number(label)) => labels.push(label),
                (ChunkLabels::Found(labels, values), Label::Found(name)) => labels.push(values.code(name)),
                (ChunkLabels::Known(labels), Label::Known(label)) => labels.push(label),
                _ => unreachable!("a chunk has labels of the kind that lines are read with"),
            }
            Ok(())
        });
        rows.seal();
    }
}

/// Stores the features in a row of zeros.
fn fill_in(row: &mut [f32], entries: &[Entry], shape: Shape, rules: &FeatureRules) -> Result<(), Wrong> {
    let Shape { first_index, n_features } = shape;
    for &Entry { index, value, at } in entries {
        // An index below the first is reported when the line is parsed, or does not occur in the file.
        let place = index.checked_sub(first_index).and_then(|place| row.get_mut(place));
        let last = n_features + first_index - 1;
        *place.ok_or((at, SvmlightError::BeyondLast { index, n_features, last }))? = value;
    }
    if rules.is_plain() {
        return Ok(());
    }
    rules.finish(row).map_err(|(place, expected)| {
        let index = place + first_index;
        // Only values that were given can be invalid: 0 fits every type.
        let at = entries.iter().find(|entry| entry.index == index).map_or(0, |entry| entry.at);
        (at, SvmlightError::Value { index, found: row[place].to_string().into(), expected })
    })
}
