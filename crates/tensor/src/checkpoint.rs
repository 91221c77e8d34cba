use crate::graph::Graph;

impl Graph {
    /// Records what `record` records without keeping its activations for the backward pass, which recomputes those it needs: less
    /// memory, for the time of a second forward pass. A graph for inference keeps no activations anyway.
    ///
    /// Values that are read after the segment are kept, such as its result. So are values that cannot be computed twice, such as
    /// the statistics of a batch that have updated the running ones. The others are recomputed by the same kernels from the same
    /// values: dropout draws the same mask, running statistics are updated once, and gradients are bit-identical. Of nested
    /// segments only the outermost counts.
    ///
    /// # Reference
    /// `torch.utils.checkpoint.checkpoint`.
    /// # Examples
    /// ```
    /// use brisk_tensor::{Activation, DType, Graph, Persistent, Transpose};
    ///
    /// let graph = Graph::training("deep");
    /// let (values, grads) = (Persistent::new("values", DType::F32, 64), Persistent::new("grads", DType::F32, 64));
    /// let weight = graph.parameter(&values, &grads, 0..64, &[8, 8]);
    /// let mut x = graph.constant("x", &[0.5; 32], &[4, 8]);
    /// for _ in 0..3 {
    ///     x = graph.checkpoint(|| x.matmul(&weight, Transpose::B).activate(Activation::gelu()));
    /// }
    /// graph.backward(&x.mean(..))?;
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    pub fn checkpoint<T>(&self, record: impl FnOnce() -> T) -> T {
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
