use brisk_kernels::Multiply;

use crate::elementwise::binary;
use crate::operation::check_kernel;
use crate::{Backward, Error, Forward, Operation, Tensor};

impl Tensor {
    /// `self * b`, elementwise.
    ///
    /// # Shapes
    /// Both broadcast by NumPy's rules.
    /// # Dtypes
    /// The dtype of both; f32 where they differ.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.mul`.
    #[track_caller]
    pub fn multiply(&self, b: &Self) -> Self {
        if self.shape() != b.shape() {
            return binary(self, b, "multiply", |a, b| a * b);
        }
        self.graph().apply(Multiply { n: self.n_elements() }, &[self, b])
    }
}

impl Operation for Multiply {
    fn name(&self) -> &'static str {
        "multiply"
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["a", "b"]
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        inputs[0].check_same_shape("multiply", inputs[1])?;
        check_kernel(self)?;
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (a, b, y) = (forward.input(0), forward.input(1), forward.output());
        forward.push(*self, &[a, b, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let dy = backward.grad();
        for (i, other) in [(0, 1), (1, 0)] {
            if backward.wants(i) {
                backward.give(i, *self, &[dy, backward.input(other)])?;
            }
        }
        Ok(())
    }
}
