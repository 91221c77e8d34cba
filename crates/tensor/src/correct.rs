use brisk_kernels::{Correct, DType};

use crate::loss::check_len;
use crate::{Error, Tensor};

impl Tensor {
    /// For each row 1 if its greatest value stands in the column of its target, else 0; without a gradient. The mean of it is the accuracy.
    ///
    /// # Shapes
    /// `self`: `[…, n_classes]`; `target` (u32): an element a row; the result `[…]`.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`]; [`Error::Program`] if `target` is not u32.
    /// # Reference
    /// `torch.argmax(x, -1) == target`.
    pub fn correct(&self, target: &Self) -> Result<Self, Error> {
        let graph = self.graph();
        let (n_rows, n_classes) = self.rows_of_last();
        check_len("correct", "target", self, target, n_rows)?;
        let y = graph.transient("correct", DType::F32, n_rows);
        graph.push(Correct { n_rows, n_classes }, &[self.slice(), target.slice(), y])?;
        graph.wrap(y, &self.shape()[..self.shape().len().saturating_sub(1)])
    }
}
