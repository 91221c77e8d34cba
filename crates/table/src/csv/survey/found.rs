use super::odd_cell::{OddCell, note, note_later};

/// Numbers of a column that were looked for: [`find_numbers`](crate::find_numbers).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundNumbers {
    /// How many there are.
    pub n: u64,
    /// The first three of them.
    pub first: Vec<OddCell>,
}

impl FoundNumbers {
    pub(crate) fn add(&mut self, cell: &[u8], line: impl Fn() -> u64) {
        self.n += 1;
        note(&mut self.first, cell, line);
    }

    /// Adds what was found in the rows after those of `self`, whose lines are counted from `line`.
    pub(crate) fn merge(&mut self, later: &Self, line: u64) {
        self.n += later.n;
        note_later(&mut self.first, &later.first, line);
    }
}
