use std::ops::Range;

use crate::{Error, Tensor};

impl Tensor {
    /// The part of this tensor that lies in `range` along dimension `dim`.
    ///
    /// # Shapes
    /// The result has `self`'s, but for `range.len()` along `dim`.
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, or nothing of it in the range, or it ends before the range does.
    /// # Reference
    /// `torch.narrow(x, dim, range.start, range.len())`; `x[:, range]` for dimension 1.
    pub fn narrow(&self, dim: usize, range: Range<usize>) -> Result<Self, Error> {
        const OP: &str = "narrow";
        let [n_rows, length, n_inner] = self.around(OP, dim)?;
        if range.is_empty() || range.end > length {
            let expected = format!("{range:?} along dimension {dim}, at least one");
            return Err(Error::Shape { op: OP, arg: "x", expected, found: self.shape().to_vec() });
        }
        let mut shape = self.shape().to_vec();
        shape[dim] = range.len();
        // What comes before the dimension are rows, and all behind it lies side by side.
        let rows = self.reshape(&[n_rows, length * n_inner])?;
        rows.columns(range.start * n_inner..range.end * n_inner)?.reshape(&shape)
    }

    /// The elements before dimension `dim`, its own length, and the elements behind it.
    pub(crate) fn around(&self, op: &'static str, dim: usize) -> Result<[usize; 3], Error> {
        let shape = self.shape();
        match shape.get(dim) {
            Some(&length) => Ok([shape[..dim].iter().product(), length, shape[dim + 1..].iter().product()]),
            None => Err(Error::Shape { op, arg: "x", expected: format!("a dimension {dim}"), found: shape.to_vec() }),
        }
    }
}
