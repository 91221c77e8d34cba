use std::rc::Rc;

use brisk_kernels::{Embedding, EmbeddingGrad};

use crate::{Error, Tensor};

impl Tensor {
    /// A row of this table for each code in a column of `index`.
    ///
    /// The gradient of an entry is the sum over its rows in a fixed order. The entry `padding`, if there is one, gets none. A code beyond the table is
    /// read as 0, the entry for what is missing or unknown.
    ///
    /// # Shapes
    /// `self`: `[n_entries, dim]`; `index`: `[n]`, or `[n, n_cols]`; the result `[n, dim]`.
    /// # Dtypes
    /// `index` u32, such as [`Graph::gather_categories`](crate::Graph::gather_categories) gives, or a bound buffer.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`]; [`Error::Program`] for codes that are not u32, a padding entry or column that is not there.
    /// # Reference
    /// `torch.nn.functional.embedding`, which refuses codes beyond the table.
    pub fn embedding(&self, index: &Self, index_col: usize, padding: Option<usize>) -> Result<Self, Error> {
        const OP: &str = "embedding";
        let graph = self.graph();
        graph.check_own(OP, "index", index)?;
        let (n_entries, dim) = self.matrix(OP, "weight")?;
        let (n, n_index_cols) = match *index.shape() {
            [n] => (n, 1),
            _ => index.matrix(OP, "index")?,
        };
        let kernel = Embedding { n, n_entries, dim, n_index_cols, index_col };
        let grad = EmbeddingGrad { forward: kernel, padding };
        // A padding entry that is not there is known now, not only where somebody goes backward.
        brisk_kernels::Kernel::check(&grad).map_err(brisk_program::Error::from)?;
        let (dtype, [table]) = graph.operands(OP, &kernel, [self])?;
        let y = graph.transient(OP, dtype, n * dim);
        let codes = index.slice();
        graph.push(kernel, &[table.slice(), codes, y])?;
        let weight = table.id();
        let rule = move |backward: &mut crate::Backward<'_>, dy| backward.give(weight, grad, &[dy, codes]);
        graph.result(OP, &[&table], y, &[n, dim], None, Rc::new(rule))
    }
}
