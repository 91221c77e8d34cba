use brisk_kernels::Add;

use crate::elementwise::binary;
use crate::operation::check_kernel;
use crate::{Backward, Error, Forward, Operation, Tensor};

impl Tensor {
    /// `self + b`, elementwise.
    ///
    /// # Shapes
    /// Both broadcast by NumPy's rules.
    /// # Dtypes
    /// The dtype of both; f32 where they differ.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.add`.
    #[track_caller]
    pub fn add(&self, b: &Self) -> Self {
        if self.shape() != b.shape() {
            return binary(self, b, "add", |a, b| a + b);
        }
        self.graph().apply(Add { n: self.n_elements() }, &[self, b])
    }
}

impl Operation for Add {
    fn name(&self) -> &'static str {
        "add"
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["a", "b"]
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        inputs[0].check_same_shape("add", inputs[1])?;
        check_kernel(self)?;
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (a, b, y) = (forward.input(0), forward.input(1), forward.output());
        forward.push(*self, &[a, b, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let dy = backward.grad();
        for i in [0, 1] {
            if backward.wants(i) {
                backward.pass(i, dy)?;
            }
        }
        Ok(())
    }
}
