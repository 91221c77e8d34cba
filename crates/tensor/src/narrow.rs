use std::ops::Range;

use crate::error::Error;
use crate::graph::tensor::Tensor;

impl Tensor {
    /// The elements of this tensor in `range` along dimension `dim`.
    ///
    /// # Shapes
    /// The result has the shape of `self`, except for `range.len()` along `dim`.
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, or the range is empty or reaches beyond it.
    /// # Reference
    /// `torch.narrow(x, dim, range.start, range.len())`; `x[:, range]` for dimension 1.
    #[track_caller]
    pub fn narrow(&self, dim: usize, range: Range<usize>) -> Self {
        const OP: &str = "narrow";
        let mut shape = self.shape().to_vec();
        if let Err(error) = self.check_dim(OP, dim) {
            return self.refused(error, &shape);
        }
        let [n_rows, length, n_inner] = sizes_around(&shape, dim);
        shape[dim] = range.len();
        if range.is_empty() || range.end > length {
            let expected = format!("{range:?} along dimension {dim}, at least one");
            return self.refused(Error::Shape { op: OP, arg: "x", expected, found: self.shape().to_vec() }, &shape);
        }
        // The dimensions before `dim` are rows, and `dim` with those after it are columns.
        let rows = self.reshape(&[n_rows, length * n_inner]);
        rows.columns(range.start * n_inner..range.end * n_inner).reshape(&shape)
    }

    /// Whether there is a dimension `dim`.
    pub(crate) fn check_dim(&self, op: &'static str, dim: usize) -> Result<(), Error> {
        let found = self.shape();
        if dim < found.len() {
            return Ok(());
        }
        Err(Error::Shape { op, arg: "x", expected: format!("a dimension {dim}"), found: found.to_vec() })
    }
}

/// The elements before dimension `dim`, its length, and the elements after it.
pub(crate) fn sizes_around(shape: &[usize], dim: usize) -> [usize; 3] {
    [shape[..dim].iter().product(), shape[dim], shape[dim + 1..].iter().product()]
}
