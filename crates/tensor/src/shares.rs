use brisk_kernels::{DType, Reduce, ReduceOp, Share};

use crate::{Error, Tensor};

impl Tensor {
    /// Each element over the sum of all, 0 where that is 0; without a gradient. A sum of losses weighted by the shares of their weights is their mean,
    /// in however many parts it is taken.
    ///
    /// # Dtypes
    /// Any for `self`; the result f32.
    /// # Errors
    /// [`Error::Program`] if there are no elements.
    pub fn shares(&self) -> Result<Self, Error> {
        let (graph, n) = (self.graph(), self.n_elements());
        let (total, y) = (graph.transient("total", DType::F32, 1), graph.transient("shares", DType::F32, n));
        graph.push(Reduce::all(n, ReduceOp::Sum), &[self.slice(), total])?;
        graph.push(Share { n }, &[self.slice(), total, y])?;
        graph.wrap(y, self.shape())
    }
}
