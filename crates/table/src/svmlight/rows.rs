//! Conversion of chunks of lines to rows of numbers.

use super::MAX_INDEX;
use super::line::{Entry, Label, LineParser, Problem, Wrong};
use crate::csv::{Chunk, Parsed, Position};
use crate::import::{BadRows, ChunkLabels, FeatureRules, RowChunk};
use crate::remedy::Remedy;

/// Lines of which some may be bad.
type Lines<T> = Parsed<T, Problem>;

/// Reads the lines of a chunk one by one. Unless bad rows are skipped, it stops after the first of them.
fn read_lines<T>(
    chunk: &Chunk,
    bad_rows: BadRows,
    Lines { rows, rejected, .. }: &mut Lines<T>,
    mut read: impl FnMut(&[u8], &mut T) -> Result<(), Wrong>,
) {
    let (text, mut start) = (chunk.rows(), 0);
    for (line, end) in (0..).zip(memchr::memchr_iter(b'\n', text)) {
        if let Err((at, reason)) = read(&text[start..end], rows)
            && rejected.add(bad_rows.skips(false), || (Position { line, byte: (start + at) as u64 }, reason))
        {
            return;
        }
        start = end + 1;
    }
}

/// The result of the first pass for the rows of a chunk, except bad ones.
#[derive(Debug, Default)]
pub(super) struct Scanned {
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
    pub(super) fn scan(chunk: &Chunk, scanned: &mut Lines<Self>, parser: &LineParser, bad_rows: BadRows) {
        (scanned.rows.n_rows, scanned.rows.indices) = (0, IndexRange::default());
        read_lines(chunk, bad_rows, scanned, |line, Self { n_rows, indices, entries }| {
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

pub(super) fn parse(
    chunk: &Chunk,
    dense: &mut Lines<RowChunk>,
    parser: &LineParser,
    bad_rows: BadRows,
    shape: Shape,
    rules: &FeatureRules,
) {
    dense.rows.clear();
    let mut entries = Vec::new();
    read_lines(chunk, bad_rows, dense, |line, rows| {
        let Some(label) = parser.read(line, &mut entries)? else { return Ok(()) };
        let start = rows.features.len();
        rows.features.resize(start + shape.n_features, 0.0);
        if let Err(wrong) = fill_in(&mut rows.features[start..], &entries, shape, rules) {
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
    dense.rows.seal();
}

/// Stores the features in a row of zeros.
fn fill_in(row: &mut [f32], entries: &[Entry], shape: Shape, rules: &FeatureRules) -> Result<(), Wrong> {
    let Shape { first_index, n_features } = shape;
    for &Entry { index, value, at } in entries {
        // An index below the first is reported when the line is parsed, or does not occur in the file.
        let place = index.checked_sub(first_index).and_then(|place| row.get_mut(place));
        let last = n_features + first_index - 1;
        *place.ok_or_else(|| {
            let problem = format!("feature {index}, rows have {n_features} features and the last is {last}");
            (at, Problem { problem, remedies: &[Remedy::MoreFeatures, Remedy::SkipRows] })
        })? = value;
    }
    if rules.is_plain() {
        return Ok(());
    }
    rules.finish(row).map_err(|(place, expected)| {
        let index = place + first_index;
        // Only values that were given can be invalid: 0 fits every type.
        let at = entries.iter().find(|entry| entry.index == index).map_or(0, |entry| entry.at);
        (at, Problem::found(&format!("feature {index}: found"), &row[place].to_string(), expected))
    })
}
