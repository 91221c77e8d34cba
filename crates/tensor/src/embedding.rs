use brisk_kernels::{Embedding, EmbeddingGrad};

use crate::error::Error;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// The row of this table for each code in a column of `index`.
    ///
    /// The gradient of an entry is the sum over the rows that have its code, in a fixed order. The entry `padding`, if given,
    /// gets no gradient. A code beyond the table is read as 0, the code of missing and unknown values.
    ///
    /// # Shapes
    /// `self`: `[n_entries, dim]`; `index`: `[n]`, or `[n, n_cols]`; the result `[n, dim]`.
    /// # Dtypes
    /// `index` u32, such as the result of [`Graph::gather_categories`](crate::Graph::gather_categories), or a bound buffer.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`]; [`Error::Dtype`] for codes that are not u32; [`Error::Program`] for a padding
    /// entry or a column that does not exist.
    /// # Reference
    /// `torch.nn.functional.embedding`, which refuses codes beyond the table.
    #[track_caller]
    pub fn embedding(&self, index: &Self, index_col: usize, padding: Option<usize>) -> Self {
        let (n, n_index_cols) = match *index.shape() {
            [n] => (n, 1),
            [n, n_cols] => (n, n_cols),
            // Refused by the operation.
            _ => (index.n_elements(), 1),
        };
        self.graph().apply(Lookup { n, n_index_cols, index_col, padding }, &[self, index])
    }
}

const NAME: &str = "embedding";

#[derive(Debug)]
struct Lookup {
    n: usize,
    n_index_cols: usize,
    index_col: usize,
    padding: Option<usize>,
}

impl Lookup {
    fn kernel(&self, [n_entries, dim]: [usize; 2]) -> Embedding {
        Embedding { n: self.n, n_entries, dim, n_index_cols: self.n_index_cols, index_col: self.index_col }
    }

    fn grad_kernel(&self, table: [usize; 2]) -> EmbeddingGrad {
        EmbeddingGrad { forward: self.kernel(table), padding: self.padding }
    }
}

impl Operation for Lookup {
    fn signature(&self) -> Signature {
        Signature { n_operands: 1, ..Signature::new(NAME, &["weight", "index"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let (n_entries, dim) = inputs[0].matrix(NAME, "weight")?;
        if inputs[1].shape().len() != 1 {
            inputs[1].matrix(NAME, "index")?;
        }
        inputs[1].check_codes(NAME, "index")?;
        check_kernel(&self.kernel([n_entries, dim]))?;
        // Checked here too, so that a padding entry that does not exist is refused without a backward pass.
        check_kernel(&self.grad_kernel([n_entries, dim]))?;
        Ok(vec![self.n, dim])
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        vec![self.n, inputs[0].shape().get(1).copied().unwrap_or(1)]
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(self.kernel(forward.dims(0)))
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (dy, index) = (backward.grad(), backward.input(1));
        backward.give(0, self.grad_kernel(backward.dims(0)), &[dy, index])
    }
}
