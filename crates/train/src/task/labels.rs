use brisk_loader::{RowSource, labels_of};
use brisk_nn::tensor::DType;

use crate::Error;
use crate::feed::inspect::{check_label_count, failed, source_row};

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
}

impl Labels {
    /// How labels are stored on a device: u32 for classes, else f32.
    pub fn dtype(self) -> DType {
        match self {
            Self::Classes { .. } => DType::U32,
            Self::Binary | Self::Numbers => DType::F32,
        }
    }

    /// All labels of `source`, which has one per row.
    ///
    /// # Errors
    /// [`Error::LabelCount`] for a source with several labels per row; [`Error::BinaryLabel`], [`Error::ClassLabel`], [`Error::NonFiniteLabel`] name `set` and the first row
    /// with a label that is not allowed; [`Error::Rows`] if the source fails.
    pub fn read<S: RowSource>(self, set: &'static str, source: &S) -> Result<Vec<f32>, Error> {
        self.read_columns(set, source, 1)
    }

    /// All labels of `source`, which has `n_labels` per row: `[n_rows, n_labels]`, row-major.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_columns<S: RowSource>(self, set: &'static str, source: &S, n_labels: usize) -> Result<Vec<f32>, Error> {
        check_label_count(set, source, n_labels)?;
        let labels = labels_of(source).map_err(|error| failed(set, &error))?;
        self.check(set, source, &labels)?;
        Ok(labels)
    }

    /// Checks all labels of `source`, given their values.
    pub(crate) fn check<S: RowSource>(self, set: &'static str, source: &S, labels: &[f32]) -> Result<(), Error> {
        let n_labels = source.n_labels();
        match labels.iter().position(|&label| !self.allows(label)) {
            None => Ok(()),
            Some(i) => {
                let label = (n_labels > 1).then_some(i % n_labels);
                let name = source.label_name(i % n_labels).map(str::to_owned);
                Err(self.refusal(set, (source_row(source, i / n_labels), label), name, labels[i]))
            }
        }
    }

    fn allows(self, label: f32) -> bool {
        match self {
            Self::Binary => label == 0.0 || label == 1.0,
            Self::Classes { n_classes } => label >= 0.0 && label.fract() == 0.0 && (label as usize) < n_classes,
            Self::Numbers => label.is_finite(),
        }
    }

    fn refusal(self, set: &'static str, (row, label): (usize, Option<usize>), name: Option<String>, found: f32) -> Error {
        match self {
            Self::Binary => Error::BinaryLabel { set, row, label, name, found },
            Self::Classes { n_classes } => Error::ClassLabel { set, row, label, name, found, n_classes },
            Self::Numbers => Error::NonFiniteLabel { set, row, label, name, found },
        }
    }
}
