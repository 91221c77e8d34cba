//! The rows of a source: what they consist of, and whether a run can use them.

mod element;
pub(crate) mod inspect;
mod names;

use brisk_nn::tensor::DType;

pub(crate) use element::Sealed;
pub use element::{FeedElement, FeedRows};
pub use names::check_encoding;
pub(crate) use names::{Difference, RowNames};

/// The fields of a source's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowLayout {
    pub(crate) dtype: DType,
    /// f32, or u32 for class numbers.
    pub(crate) labels: DType,
    pub(crate) n_labels: usize,
    pub(crate) n_cols: usize,
    pub(crate) n_categories: usize,
    pub(crate) has_weights: bool,
}

/// Features of either type.
#[derive(Debug, Clone, Copy)]
pub enum Features<'a> {
    F32(&'a [f32]),
    U8(&'a [u8]),
}

impl RowLayout {
    /// Bytes of a row on the device.
    pub(crate) fn row_bytes(&self) -> usize {
        self.n_cols * self.dtype.size_bytes() + 4 * (self.n_labels + self.n_categories + usize::from(self.has_weights))
    }
}
