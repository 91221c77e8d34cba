use crate::{Error, Graph};

impl Graph {
    /// Records what `record` records without keeping its activations for the backward pass, which computes again what it needs of them: less
    /// memory, and the time of a second forward pass. A graph for inference keeps nothing anyway.
    ///
    /// What is read behind the segment is kept, its result above all; so is what cannot be computed twice, such as statistics
    /// of a batch that have moved the running ones. The rest is computed by the same kernels from the same values: dropout draws the same,
    /// running statistics move once, and gradients are the same bits. In a segment within a segment the outer one counts.
    ///
    /// # Errors
    /// What `record` returns.
    /// # Reference
    /// `torch.utils.checkpoint.checkpoint`.
    /// # Examples
    /// ```
    /// use brisk_tensor::{Activation, DType, Graph, Persistent};
    ///
    /// let graph = Graph::training("deep");
    /// let (values, grads) = (Persistent::new("values", DType::F32, 64), Persistent::new("grads", DType::F32, 64));
    /// let weight = graph.parameter(&values, &grads, 0..64, &[8, 8])?;
    /// let mut x = graph.constant("x", &[0.5; 32], &[4, 8])?;
    /// for _ in 0..3 {
    ///     let layer = |x: &_| weight.matmul(x, brisk_tensor::Transpose::B)?.activate(Activation::Gelu);
    ///     x = graph.checkpoint(|| layer(&x.reshape(&[4, 8])?))?;
    /// }
    /// graph.backward(&x.mean(..)?)?;
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    pub fn checkpoint<T>(&self, record: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        if std::mem::replace(&mut self.inner_mut().in_segment, true) {
            return record();
        }
        let first = self.with_program(|program| program.n_kernels());
        let _region = self.at_end(|inner| {
            inner.in_segment = false;
            inner.segments.push(first..inner.program.n_kernels());
        });
        record()
    }
}
