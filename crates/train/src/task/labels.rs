use std::borrow::Cow;

use brisk_loader::{RowSource, labels_of};
use brisk_nn::tensor::DType;

use crate::error::Error;
use crate::rows::inspect::{FINITE_LABEL, check_label_count, failed, wrong_label};

/// Which labels rows may have.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Labels {
    /// 0 or 1.
    Binary,
    /// The number of a class, from 0.
    Classes {
        /// How many classes there are.
        n_classes: usize,
    },
    /// Any finite number.
    Numbers,
    /// Of several kinds: those of [`Task::label_kinds`](crate::Task::label_kinds).
    Mixed,
}

impl Labels {
    /// How labels are stored on a device: u32 for classes, else f32.
    pub fn dtype(self) -> DType {
        match self {
            Self::Classes { .. } => DType::U32,
            Self::Binary | Self::Numbers | Self::Mixed => DType::F32,
        }
    }

    /// All labels of `source`, which has one per row.
    ///
    /// # Errors
    /// [`Error::RowLayout`] for a source with several labels per row; [`Error::Value`] name `set` and the first row
    /// with a label that is not allowed; [`Error::Rows`] if the source fails.
    pub fn read<S: RowSource>(self, set: &'static str, source: &S) -> Result<Vec<f32>, Error> {
        read_labels(&[self], set, source)
    }

    fn allows(self, label: f32) -> bool {
        match self {
            Self::Binary => label == 0.0 || label == 1.0,
            Self::Classes { n_classes } => label >= 0.0 && label.fract() == 0.0 && (label as usize) < n_classes,
            Self::Numbers | Self::Mixed => label.is_finite(),
        }
    }

    /// What a label must be, and what to do.
    fn expected(self) -> Cow<'static, str> {
        match self {
            Self::Binary => "0 or 1; choose another label column, or convert the labels to 0 and 1".into(),
            Self::Classes { n_classes } => format!(
                "the number of a class, 0 to {}; give the task more classes, number the labels from 0 as `import --first-label` does, or use `Regression` for labels that are not classes",
                n_classes.saturating_sub(1)
            )
            .into(),
            Self::Numbers | Self::Mixed => FINITE_LABEL.into(),
        }
    }
}

/// All labels of `source`, of which each row has these [`kinds`](crate::Task::label_kinds): `[n_rows, n_labels]`, row-major.
pub(crate) fn read_labels<S: RowSource>(kinds: &[Labels], set: &'static str, source: &S) -> Result<Vec<f32>, Error> {
    check_label_count(set, source, kinds.len())?;
    if kinds.is_empty() {
        return Ok(Vec::new());
    }
    let labels = labels_of(source).map_err(|error| failed(set, &error))?;
    match first_wrong_label(kinds, &labels) {
        Some(at) => Err(label_error(kinds, set, source, [at / kinds.len(), at % kinds.len()], labels[at])),
        None => Ok(labels),
    }
}

/// The first of some labels, `[n, n_labels]`, that is not of its [kind](crate::Task::label_kinds).
pub(crate) fn first_wrong_label(kinds: &[Labels], labels: &[f32]) -> Option<usize> {
    labels.iter().zip(kinds.iter().cycle()).position(|(&label, kind)| !kind.allows(label))
}

/// The error for a label, given its row and its number there, that is not of its kind.
pub(crate) fn label_error<S: RowSource>(kinds: &[Labels], set: &'static str, source: &S, place: [usize; 2], label: f32) -> Error {
    wrong_label(set, source, place, label, kinds[place[1]].expected())
}
