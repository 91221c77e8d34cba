use std::error::Error as StdError;

use brisk_atomic_file::{listed, printable};
use brisk_table::Dictionary;

use crate::columns::Columns;
use crate::digest::digest;
use crate::target::Target;

/// Why rows could not be [preprocessed](super::Preprocessed).
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum PreprocessedError<E: StdError + 'static> {
    /// The error of the rows as they are stored.
    #[error(transparent)]
    Source(E),
    /// A row, counted from 0 where the rows are stored, is of a class that no row of training has; `known` are those of training.
    #[error(
        "row {row}: `{}` is `{}`, a class of which training had no row; it had {}; leave such rows out, or train on some of them",
        printable(target),
        printable(class),
        listed(known)
    )]
    UnknownClass { row: usize, target: String, class: String, known: Vec<String> },
}

/// How the labels of a source become those of the task.
#[derive(Debug, Clone)]
pub(super) struct TaskLabels {
    target: Target,
    /// Of the target.
    pub(super) digest: u64,
    /// The number of each class of the source among those of the target; `None` for another class. Empty if the source has no
    /// names of classes.
    classes: Vec<Option<f32>>,
    /// What is added to numbers, from which the source and the target have subtracted different ones.
    shift: f64,
}

impl TaskLabels {
    pub(super) fn new(target: &Target, columns: &Columns) -> Self {
        // As values of categories are found: in any spelling of the same number.
        let known = Dictionary::new(target.name(), target.classes()).ok().filter(|known| !known.values().is_empty());
        let number = |known: &Dictionary, name: &String| known.code(name).checked_sub(1).map(|class| class as f32);
        let classes = known.map(|known| columns.label_classes.iter().map(|name| number(&known, name)).collect());
        let shift = if target.classes().is_empty() { columns.label_offset - target.offset() } else { 0.0 };
        Self { target: target.clone(), digest: digest(target), classes: classes.unwrap_or_default(), shift }
    }

    /// The label that the task takes; `None` for a class that the target does not have. A label that is missing stays so.
    pub(super) fn label(&self, label: f32) -> Option<f32> {
        if label.is_nan() {
            return Some(label);
        }
        if self.classes.is_empty() {
            let own = self.target.label((f64::from(label) + self.shift) as f32);
            return Some(own).filter(|own| !own.is_nan() || self.target.classes().is_empty());
        }
        let is_number = label >= 0.0 && label.fract() == 0.0;
        if is_number { self.classes.get(label as usize).copied().flatten() } else { None }
    }

    /// The error for a row of a class that the target does not have.
    pub(super) fn unknown_class<E: StdError>(&self, row: u32, label: f32, columns: &Columns) -> PreprocessedError<E> {
        let class = columns.label_classes.get(label as usize).filter(|_| label.fract() == 0.0 && label >= 0.0);
        let class = class.cloned().unwrap_or_else(|| label.to_string());
        let (target, known) = (self.target.name().to_owned(), self.target.classes().to_vec());
        PreprocessedError::UnknownClass { row: row as usize, target, class, known }
    }
}
