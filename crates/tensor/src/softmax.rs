use brisk_kernels::{Kernel, Softmax, SoftmaxForm, SoftmaxGrad};

use crate::operation::check_kernel;
use crate::{AutocastRule, Backward, Error, Forward, Operation, Tensor};

impl Tensor {
    /// Probabilities along the last dimension: `exp(x) / Σ exp(x)`.
    ///
    /// For training, use [`Tensor::cross_entropy`] of the logits, which never takes the logarithm of a small probability.
    ///
    /// # Errors
    /// [`Error::Program`] if there are no elements, or more than a kernel can address.
    /// # Reference
    /// `torch.softmax(x, -1)`.
    pub fn softmax(&self) -> Result<Self, Error> {
        self.softmax_of(SoftmaxForm::Probability)
    }

    /// Logarithms of the probabilities along the last dimension: `x - log Σ exp(x)`.
    ///
    /// # Errors
    /// As [`softmax`](Self::softmax).
    /// # Reference
    /// `torch.log_softmax(x, -1)`.
    pub fn log_softmax(&self) -> Result<Self, Error> {
        self.softmax_of(SoftmaxForm::Log)
    }

    fn softmax_of(&self, form: SoftmaxForm) -> Result<Self, Error> {
        let (n_rows, n_cols) = self.rows_of_last();
        self.graph().apply(Softmax { n_rows, n_cols, form }, &[self])
    }
}

impl Operation for Softmax {
    fn name(&self) -> &'static str {
        Kernel::name(self)
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x"]
    }

    fn autocast_rule(&self) -> AutocastRule {
        AutocastRule::Full
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        check_kernel(self)?;
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        forward.push(*self, &[x, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (dy, y) = (backward.grad(), backward.output());
        backward.give(0, SoftmaxGrad { forward: *self }, &[dy, y])
    }
}
