use crate::graph::tensor::Tensor;
use crate::narrow::sizes_around;

impl Tensor {
    /// The entries of this tensor's first dimension at the indices `index`, which may repeat.
    ///
    /// The gradient of an entry is the sum over all indices that select it, in a fixed order, so that results are reproducible
    /// bit for bit. An index beyond the last entry is read as 0.
    ///
    /// # Shapes
    /// `self`: `[n_entries, …]`; `index`: any; the result has the dimensions of `index`, then those of an entry.
    /// # Dtypes
    /// `index` u32.
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) for a single number, or entries without elements;
    /// [`Error::ForeignTensor`](crate::Error::ForeignTensor); [`Error::Dtype`](crate::Error::Dtype) for an index that is not u32.
    /// # Cost
    /// That of an [`embedding`](Self::embedding), as is that of its gradient, which compares indices if there are many entries.
    /// # Reference
    /// `torch.index_select(x, 0, index)`, which refuses indices beyond the last; `x[index]`.
    #[track_caller]
    pub fn gather_rows(&self, index: &Self) -> Self {
        const OP: &str = "gather_rows";
        let own = self.graph().check_own(OP, "index", index);
        if let Err(error) = own.and_then(|()| self.check_dim(OP, 0)) {
            return self.refused(error, &[index.shape(), self.shape().get(1..).unwrap_or(&[])].concat());
        }
        let [_, n_entries, dim] = sizes_around(self.shape(), 0);
        let table = self.reshape(&[n_entries, dim]);
        let rows = table.embedding(&index.reshape(&[index.n_elements()]), 0, None);
        rows.reshape(&[index.shape(), &self.shape()[1..]].concat())
    }
}
