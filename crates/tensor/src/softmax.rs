use std::rc::Rc;

use brisk_kernels::{Kernel, Softmax, SoftmaxForm, SoftmaxGrad};

use crate::{Error, Tensor};

impl Tensor {
    /// Probabilities along the last dimension: `exp(x) / Σ exp(x)`.
    ///
    /// To train with, take [`Tensor::cross_entropy`] of the logits, which never takes the logarithm of a small probability.
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
        let graph = self.graph();
        let (n_rows, n_cols) = self.rows_of_last();
        let forward = Softmax { n_rows, n_cols, form };
        let name = forward.name();
        let (dtype, [x]) = graph.operands(name, &forward, [self])?;
        let y = graph.transient(name, dtype, self.n_elements());
        graph.push(forward, &[x.slice(), y])?;
        let x_id = x.id();
        let rule = move |backward: &mut crate::Backward<'_>, dy| backward.give(x_id, SoftmaxGrad { forward }, &[dy, y]);
        graph.result(name, &[&x], y, self.shape(), None, Rc::new(rule))
    }
}
