use std::rc::Rc;

use brisk_kernels::{Softmax, SoftmaxForm, SoftmaxGrad};

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
        let y = graph.transient("softmax", self.n_elements());
        let forward = Softmax { n_rows, n_cols, form };
        graph.with_program(|program| program.push(forward, &[self.slice(), y]))?;
        let x_id = self.id();
        let rule = move |backward: &mut crate::Backward<'_>, dy| backward.give(x_id, SoftmaxGrad { forward }, &[dy, y]);
        Ok(graph.result(&[self], y, self.shape(), None, Rc::new(rule)))
    }
}
