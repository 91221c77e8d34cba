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
        let norm = self.grad_norm(graph)?;
        self.clip_grads_with_norm(graph, &norm, max_norm)?;
        Ok(norm)
    }

    /// Records the norm of all gradients, on the device: of those that this replica keeps, where they are [divided](Self::divided).
    ///
    /// # Errors
    /// [`Error::Program`].
    /// # Reference
    /// `torch.nn.utils.get_total_norm`.
    pub fn grad_norm(&self, graph: &Graph) -> Result<Tensor, Error> {
        let norm = graph.with_program(|program| {
            let grads = program.persistent(self.grads());
            let norm = program.transient("norm", DType::F32, 1);
            program.push(Reduce::all(grads.len(), ReduceOp::Norm), &[grads, norm]).map(|()| norm)
        })?;
        graph.wrap(norm, &[])
    }

    /// Records that gradients are scaled by what brings `norm` to at most `max_norm`.
    ///
    /// # Errors
    /// [`Error::Program`] if `max_norm` is negative or NaN, or the norm is not one number.
    /// # Reference
    /// `torch.nn.utils.clip_grads_with_norm_`.
    pub fn clip_grads_with_norm(&self, graph: &Graph, norm: &Tensor, max_norm: f32) -> Result<(), Error> {
        Ok(graph.with_program(|program| {
            let grads = program.persistent(self.grads());
            program.push(ClipByNorm { n: grads.len(), max_norm }, &[norm.slice(), grads])
        })?)
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
            program.push(ClipByValue { n: grads.len(), limit }, &[grads])
        })?)
    }
}
