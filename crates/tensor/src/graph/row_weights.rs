//! Which rows of a batch exist, and how much each counts.

use std::ops::Range;

use brisk_program::Slice;

/// The rows of an epoch in batches, from which it follows how many rows the last batch has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochRows {
    /// Rows of an epoch.
    pub n_rows: usize,
    /// Rows of a batch.
    pub batch_rows: usize,
    /// The rows of each batch that a graph computes: all of them, or the part of one replica.
    pub part: Range<usize>,
}

impl EpochRows {
    /// The rows of the last batch.
    pub fn n_last(&self) -> usize {
        match self.n_rows.checked_rem(self.batch_rows) {
            None | Some(0) => self.batch_rows.min(self.n_rows),
            Some(n_last) => n_last,
        }
    }

    pub(crate) fn n_last_of_part(&self) -> usize {
        self.n_last().clamp(self.part.start, self.part.end.max(self.part.start)) - self.part.start
    }
}

/// The weights of a graph's rows.
#[derive(Debug, Clone)]
pub(crate) struct RowWeights {
    pub(crate) weights: Slice,
    pub(crate) epoch: EpochRows,
    /// For a number of groups of rows, the weights divided by the sum of those of their group.
    pub(crate) shares: Vec<(usize, Slice)>,
}
