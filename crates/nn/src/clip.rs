use brisk_kernels::{ClipByNorm, ClipByValue, DType, Reduce, ReduceOp};
use brisk_tensor::{Error, Graph, Tensor};

use crate::Parameters;

impl Parameters {
    /// Records that the gradients are scaled down so that their norm, taken over all of them, is at most `max_norm`; behind the
    /// backward pass and before the optimizer. The result is the norm before that, on the device.
    ///
    /// # Errors
    /// [`Error::Program`] if `max_norm` is negative or NaN.
    /// # Reference
    /// `torch.nn.utils.clip_grad_norm_`.
    pub fn clip_grad_norm(&self, graph: &Graph, max_norm: f32) -> Result<Tensor, Error> {
        let n = self.len();
        let norm = graph.with_program(|program| {
            let grads = program.persistent(self.grads());
            let norm = program.transient("norm", DType::F32, 1);
            program.push(Reduce::all(n, ReduceOp::Norm), &[grads, norm])?;
            program.push(ClipByNorm { n, max_norm }, &[norm, grads]).map(|()| norm)
        })?;
        graph.wrap(norm, &[])
    }

    /// Records that each gradient is cut to `-limit..=limit`.
    ///
    /// # Errors
    /// [`Error::Program`] if `limit` is negative or NaN.
    /// # Reference
    /// `torch.nn.utils.clip_grad_value_`.
    pub fn clip_grad_value(&self, graph: &Graph, limit: f32) -> Result<(), Error> {
        Ok(graph.with_program(|program| {
            let grads = program.persistent(self.grads());
            program.push(ClipByValue { n: self.len(), limit }, &[grads])
        })?)
    }
}
