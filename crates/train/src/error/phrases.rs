//! Parts of messages.

use std::collections::BTreeSet;
use std::path::Path;

use brisk_atomic_file::printable;

use crate::nearest::likely_metric;
use crate::resume::{ResumeDifference, ResumeMismatch};

/// The names of the kinds, each once.
pub(super) fn mismatches(differences: &[ResumeDifference]) -> String {
    let kinds: BTreeSet<ResumeMismatch> = differences.iter().map(|difference| difference.mismatch).collect();
    kinds.into_iter().map(ResumeMismatch::name).collect::<Vec<_>>().join(", ")
}

pub(super) fn written(checkpoint: Option<&Path>) -> String {
    checkpoint.map_or("no checkpoint was written".to_owned(), |path| format!("a checkpoint was written to {}", path.display()))
}

/// `did you mean `valid_loss`? `, if one of the names is likely.
pub(super) fn did_you_mean(found: &str, known: &[String]) -> String {
    likely_metric(found, known).map_or_else(String::new, |name| format!("did you mean `{name}`? "))
}

/// `the label of row 3`; `label 2 of row 3` if there are several; each with its name, if it has one.
pub(super) fn label_of(row: usize, label: Option<usize>, name: Option<&str>) -> String {
    let label = label.map_or_else(|| "the label".to_owned(), |label| format!("label {label}"));
    format!("{label}{} of row {row}", quoted(name))
}

/// What to do about rows that have another number of labels than the task takes.
pub(super) fn way_out_of_label_count(found: usize, expected: usize) -> String {
    if found == 0 {
        return format!("give the rows {}, or train a task that takes none", count(expected, "label"));
    }
    format!("choose as many label columns, or a task for {found}")
}

/// `column 3 of row 17`, `column 3 (`age`) of row 17`.
pub(super) fn feature_of(row: usize, column: usize, name: Option<&str>) -> String {
    format!("column {column}{} of row {row}", quoted(name))
}

/// ` (`age`)`, or nothing.
fn quoted(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!(" (`{}`)", printable(name)))
}

/// `1 row`, `2 rows`.
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// `epoch 2`, `epochs 1 to 3`.
pub(super) fn epochs(first: usize, last: usize) -> String {
    if first == last { format!("epoch {first}") } else { format!("epochs {first} to {last}") }
}
