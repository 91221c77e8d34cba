//! Cells that differ from the others of their column, or that were looked for.

use crate::csv::shown;

/// How many cells that differ from the others, or that were looked for, are kept.
pub(super) const MAX_ODD: usize = 3;

/// One of the cells of a column, such as one that differs from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddCell {
    /// Its line, counted from 1; or its row in a source that is not text.
    pub line: u64,
    /// Its text, shortened if long.
    pub text: String,
}

/// Adds a cell, unless there are enough.
pub(super) fn note(cells: &mut Vec<OddCell>, cell: &[u8], line: impl Fn() -> u64) {
    if cells.len() < MAX_ODD {
        cells.push(OddCell { line: line(), text: shown(cell) });
    }
}

/// Adds cells of later rows, whose lines are counted from `line`.
pub(super) fn note_later(cells: &mut Vec<OddCell>, later: &[OddCell], line: u64) {
    let room = MAX_ODD - cells.len();
    cells.extend(later.iter().take(room).map(|cell| OddCell { line: line + cell.line, ..cell.clone() }));
}
