use brisk_kernels::{Correct, DType};

use crate::error::Error;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// For each row 1 if its maximum is in the column of its target, else 0; not differentiable. The mean of it is the accuracy.
    ///
    /// # Shapes
    /// `self`: `[…, n_classes]`; `target` (u32): one element per row; the result `[…]`.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`]; [`Error::Program`] if `target` is not u32.
    /// # Reference
    /// `torch.argmax(x, -1) == target`.
    #[track_caller]
    pub fn correct(&self, target: &Self) -> Self {
        let (n_rows, n_classes) = self.rows_of_last();
        self.graph().apply(Correct { n_rows, n_classes }, &[self, target])
    }
}

impl Operation for Correct {
    fn signature(&self) -> Signature {
        Signature {
            n_operands: 1,
            dtype: Some(DType::F32),
            is_differentiable: false,
            ..Signature::new("correct", &["x", "target"])
        }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let shape = inputs[0].shape();
        inputs[1].check_len("correct", "target", shape, self.n_rows)?;
        check_kernel(self)?;
        Ok(shape[..shape.len().saturating_sub(1)].to_vec())
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        let shape = inputs[0].shape();
        shape[..shape.len().saturating_sub(1)].to_vec()
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(*self)
    }
}
