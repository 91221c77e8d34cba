use super::OddCell;
use crate::csv::{number64, shown};

/// Numbers of a column that were looked for: [`find_numbers`](crate::find_numbers).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundNumbers {
    /// How many there are.
    pub n: u64,
    /// The first three of them.
    pub first: Vec<OddCell>,
}

/// How many of the cells are kept.
const MAX_FOUND: usize = 3;

/// The numbers of one column that are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) is_wanted: &'a (dyn Fn(f64) -> bool + Sync),
    pub(crate) decimal: u8,
}

impl FoundNumbers {
    pub(crate) fn add(&mut self, cell: &[u8], wanted: Wanted<'_>, line: impl Fn() -> u64) {
        if number64(cell, wanted.decimal).is_some_and(wanted.is_wanted) {
            self.n += 1;
            if self.first.len() < MAX_FOUND {
                self.first.push(OddCell { line: line(), text: shown(cell) });
            }
        }
    }

    /// Adds what was found in the rows after those of `self`, whose lines are counted from `line`.
    pub(crate) fn merge(&mut self, later: &Self, line: u64) {
        self.n += later.n;
        let room = MAX_FOUND - self.first.len();
        self.first.extend(later.first.iter().take(room).map(|cell| OddCell { line: line + cell.line, ..cell.clone() }));
    }
}
