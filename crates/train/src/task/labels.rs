use brisk_loader::RowSource;
use brisk_nn::tensor::DType;

use crate::Error;
use crate::feed::inspect::{for_each_chunk, source_row};

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

    /// All labels of `source`.
    ///
    /// # Errors
    /// [`Error::BinaryLabel`], [`Error::ClassLabel`], [`Error::NonFiniteLabel`] name `set` and the first row with a label that is not allowed; [`Error::Rows`] if the
    /// source fails.
    pub fn read<S: RowSource>(self, set: &'static str, source: &S) -> Result<Vec<f32>, Error> {
        let mut labels = Vec::with_capacity(source.n_rows());
        for_each_chunk(set, source, |read| {
            labels.extend_from_slice(read.labels);
            Ok(())
        })?;
        match labels.iter().position(|&label| !self.allows(label)) {
            None => Ok(labels),
            Some(row) => Err(self.refusal(set, source_row(source, row), labels[row])),
        }
    }

    fn allows(self, label: f32) -> bool {
        match self {
            Self::Binary => label == 0.0 || label == 1.0,
            Self::Classes { n_classes } => label >= 0.0 && label.fract() == 0.0 && (label as usize) < n_classes,
            Self::Numbers => label.is_finite(),
        }
    }

    fn refusal(self, set: &'static str, row: usize, found: f32) -> Error {
        match self {
            Self::Binary => Error::BinaryLabel { set, row, found },
            Self::Classes { n_classes } => Error::ClassLabel { set, row, found, n_classes },
            Self::Numbers => Error::NonFiniteLabel { set, row, found },
        }
    }
}
