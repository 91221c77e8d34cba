use brisk_kernels::{Correct, DType};

use crate::error::Error;
use crate::graph::operation::check_kernel;
use crate::graph::operation::{Forward, Operation};
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
    fn name(&self) -> &'static str {
        "correct"
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x", "target"]
    }

    fn is_differentiable(&self) -> bool {
        false
    }

    fn n_operands(&self, _: usize) -> usize {
        1
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

    fn output_dtype(&self, _: DType) -> DType {
        DType::F32
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, target, y) = (forward.input(0), forward.input(1), forward.output());
        forward.push(*self, &[x, target, y])
    }
}
