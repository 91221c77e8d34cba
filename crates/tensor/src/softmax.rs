use brisk_kernels::{Kernel, Softmax, SoftmaxForm, SoftmaxGrad};

use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;
use crate::narrow::sizes_around;

impl Tensor {
    /// Probabilities along dimension `dim`: `exp(x) / Σ exp(x)`. Unless `dim` is the last dimension, a
    /// [transposed](Self::transpose) copy is made.
    ///
    /// For training, use [`Tensor::cross_entropy`] of the logits, which never takes the logarithm of a small probability.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension; [`Error::Program`] for no elements, or more than a kernel can address.
    /// # Reference
    /// `torch.softmax`.
    #[track_caller]
    pub fn softmax(&self, dim: usize) -> Self {
        self.softmax_of(dim, SoftmaxForm::Probability)
    }

    /// Logarithms of the probabilities along dimension `dim`: `x - log Σ exp(x)`.
    ///
    /// # Errors
    /// As [`softmax`](Self::softmax).
    /// # Reference
    /// `torch.log_softmax`.
    #[track_caller]
    pub fn log_softmax(&self, dim: usize) -> Self {
        self.softmax_of(dim, SoftmaxForm::Log)
    }

    #[track_caller]
    fn softmax_of(&self, dim: usize, form: SoftmaxForm) -> Self {
        let kernel = |n_rows, n_cols| Softmax { n_rows, n_cols, form };
        if let Err(error) = self.check_dim(Kernel::name(&kernel(1, 1)), dim) {
            return self.refused(error, self.shape());
        }
        let [_, n_cols, n_inner] = sizes_around(self.shape(), dim);
        if n_inner == 1 {
            return self.graph().apply(kernel(self.n_elements() / n_cols.max(1), n_cols), &[self]);
        }
        let last = self.shape().len() - 1;
        self.transpose(dim, last).softmax_of(last, form).transpose(dim, last)
    }
}

impl Operation for Softmax {
    fn signature(&self) -> Signature {
        Signature { autocast: AutocastRule::Full, ..Signature::new(Kernel::name(self), &["x"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        check_kernel(self)?;
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(*self)
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (dy, y) = (backward.grad(), backward.output());
        backward.give(0, SoftmaxGrad { forward: *self }, &[dy, y])
    }
}
