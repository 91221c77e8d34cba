use crate::{Error, Tensor};

impl Tensor {
    /// The entries of this tensor's first dimension that `index` names, in its order, any of them more than once or never.
    ///
    /// The gradient of an entry is the sum over all places that name it, in a fixed order, so that a run repeats bit for bit. An index beyond the last
    /// entry is read as 0: a device has nobody to complain to.
    ///
    /// # Shapes
    /// `self`: `[n_entries, …]`; `index`: any; the result has `index`'s dimensions, then those of an entry.
    /// # Dtypes
    /// `index` u32.
    /// # Errors
    /// [`Error::Shape`] for one number, or entries without elements; [`Error::ForeignTensor`]; [`Error::Program`] for an index that is not u32.
    /// # Cost
    /// That of an [`embedding`](Self::embedding), also of its gradient, which compares indices with one another where there are many entries.
    /// # Reference
    /// `torch.index_select(x, 0, index)`, which refuses indices beyond the last; `x[index]`.
    pub fn gather_rows(&self, index: &Self) -> Result<Self, Error> {
        const OP: &str = "gather_rows";
        self.graph().check_own(OP, "index", index)?;
        let [_, n_entries, dim] = self.around(OP, 0)?;
        let table = self.reshape(&[n_entries, dim])?;
        let rows = table.embedding(&index.reshape(&[index.n_elements()])?, 0, None)?;
        rows.reshape(&[index.shape(), &self.shape()[1..]].concat())
    }
}
