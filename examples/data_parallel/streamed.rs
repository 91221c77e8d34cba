//! Rows to train on and rows to validate with: any rows of a table in memory, consecutive ones of a table that is streamed.

use std::ops::Range;

use anyhow::{Result, ensure};
use brisk_examples::elsewhere::TableRows;
use brisk_loader::{Hint, Layout, Names, Order, RowBuffers, RowSelection, RowSource, Subset, split};
use brisk_table::Error;
use brisk_train::{FeedChoice, FeedConfig};

use crate::options::Options;

/// Bytes of a block of rows that is read at a time.
const BLOCK_BYTES: usize = 4 << 20;

/// The share of the rows that is held out for early stopping.
const VALID: f64 = 0.1;

/// A part of a table.
#[derive(Clone)]
pub(crate) enum Part<'a> {
    Any(Subset<&'a TableRows>),
    Range { rows: &'a TableRows, range: Range<usize> },
}

impl<'a> Part<'a> {
    /// The rows to train on, and those to validate with.
    pub(crate) fn of(rows: &'a TableRows, options: &Options) -> Result<[Self; 2]> {
        if options.stream.is_none() {
            return Ok(split(rows, options.run.seed, [1.0 - VALID, VALID])?.map(Self::Any));
        }
        let n_rows = rows.n_rows();
        let end = n_rows - (n_rows as f64 * VALID).round() as usize;
        ensure!(0 < end && end < n_rows, "{n_rows} rows are too few to hold some out; leave out --stream");
        Ok([0..end, end..n_rows].map(|range| Self::Range { rows, range }))
    }

    /// What is selected, as rows of the table.
    fn in_table<T>(range: &Range<usize>, rows: RowSelection<'_>, then: impl FnOnce(RowSelection<'_>) -> T) -> T {
        // Rows beyond the range get numbers beyond any table, which is an error, or ignored in a hint.
        let row = |row: usize| if row <= range.len() { row + range.start } else { usize::MAX };
        match rows {
            RowSelection::Range(rows) => then(RowSelection::Range(row(rows.start)..row(rows.end))),
            RowSelection::Numbers(numbers) => {
                let number = |&number: &u32| if (number as usize) < range.len() { number + range.start as u32 } else { u32::MAX };
                then(RowSelection::Numbers(&numbers.iter().map(number).collect::<Vec<_>>()))
            }
        }
    }
}

impl RowSource for Part<'_> {
    type Feature = f32;
    type Error = Error;

    fn layout(&self) -> Layout {
        match self {
            Self::Any(rows) => rows.layout(),
            Self::Range { rows, range } => Layout { n_rows: range.len(), ..rows.layout() },
        }
    }

    fn gather(&self, selected: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Error> {
        match self {
            Self::Any(rows) => rows.gather(selected, into),
            Self::Range { rows, range } => Self::in_table(range, selected, |selected| rows.gather(selected, into)),
        }
    }

    fn hint(&self, selected: RowSelection<'_>, hint: Hint) {
        match self {
            Self::Any(rows) => rows.hint(selected, hint),
            Self::Range { rows, range } => Self::in_table(range, selected, |selected| rows.hint(selected, hint)),
        }
    }

    fn names(&self) -> Names<'_> {
        match self {
            Self::Any(rows) => rows.names(),
            Self::Range { rows, .. } => rows.names(),
        }
    }

    fn fingerprint(&self) -> Option<u64> {
        match self {
            Self::Any(rows) => rows.fingerprint(),
            Self::Range { rows, range } => {
                Some(rows.fingerprint()?.rotate_left(1) ^ (range.start as u64) << 32 ^ range.end as u64)
            }
        }
    }

    fn check_intact(&self) -> Result<(), Error> {
        match self {
            Self::Any(rows) => rows.check_intact(),
            Self::Range { rows, .. } => rows.check_intact(),
        }
    }

    fn source_row(&self, row: u32) -> u32 {
        match self {
            Self::Any(rows) => rows.source_row(row),
            Self::Range { rows, range } => rows.source_row(row.saturating_add(range.start as u32)),
        }
    }
}

/// How rows reach the device: streamed ones in shuffled blocks, of which two windows fit into the memory for them.
pub(crate) fn feed(rows: &TableRows, options: &Options) -> FeedConfig {
    let Some(mebibytes) = options.stream else { return FeedConfig::default() };
    let row_bytes = (rows.n_cols() + rows.n_labels()) * size_of::<f32>();
    let block_rows = u32::try_from((BLOCK_BYTES / row_bytes.max(1)).max(1)).unwrap_or(u32::MAX);
    // A window is the one in use or the next one, and a third of the memory is left for rows in order.
    let window_blocks = u32::try_from((mebibytes << 20) / (3 * BLOCK_BYTES)).unwrap_or(u32::MAX).max(1);
    let order = Order::Blocks { seed: options.run.seed, block_rows, window_blocks };
    FeedConfig { choice: FeedChoice::Streamed, order: Some(order), ..FeedConfig::default() }
}
