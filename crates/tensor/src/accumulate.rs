use crate::{Error, Graph};

impl Graph {
    /// Records what `record` records with backward passes that add to gradients instead of replacing them, and of which there may be several.
    ///
    /// So one recorded step goes through a large batch in parts, whose activations take each other's memory: a forward and a backward pass for each
    /// part, the first outside, which replaces what was there, then one update. Nothing else sees the parts: the step has one batch, one
    /// learning rate, one loss. The gradients are those of the large batch, summed in another order, where the losses add up to its loss: take
    /// sums of rows weighted by [`Tensor::shares`](crate::Tensor::shares) of the batch, and a short last batch is right too.
    ///
    /// Statistics of a batch are those of each part.
    ///
    /// # Errors
    /// What `record` returns.
    /// # Reference
    /// `loss.backward()` for each part of a batch, in PyTorch.
    /// # Examples
    /// ```
    /// use brisk_tensor::{Activation, DType, Graph, Persistent, Reduction};
    ///
    /// let graph = Graph::training("two parts");
    /// let (values, grads) = (Persistent::new("values", DType::F32, 4), Persistent::new("grads", DType::F32, 4));
    /// let weight = graph.parameter(&values, &grads, 0..4, &[1, 4])?;
    /// let (order, state) = (Graph::order_buffer(), Graph::state_buffer());
    /// let table = brisk_tensor::Windows::new("table", DType::F32, 1000, 4, usize::MAX);
    /// let (mean, inv_std) = (Persistent::new("mean", DType::F32, 4), Persistent::new("inv_std", DType::F32, 4));
    /// let zeros = graph.constant("targets", &[0.0; 8], &[8, 1])?;
    /// // What each of the 16 rows counts, of 1 for all.
    /// let shares = graph.batch(&order, &state, 16)?.weights.shares()?;
    /// let loss_of = |part: std::ops::Range<usize>| {
    ///     let batch = graph.batch_part(&order, &state, part.clone())?;
    ///     let y = graph.gather(&batch, &table, &mean, &inv_std)?.linear(&weight, None, Activation::Identity)?;
    ///     y.mse_loss(&zeros, &shares.narrow(0, part)?, Reduction::Sum)
    /// };
    /// let first = loss_of(0..8)?;
    /// graph.backward(&first)?;
    /// let loss = graph.accumulate(|| {
    ///     let second = loss_of(8..16)?;
    ///     graph.backward(&second)?;
    ///     first.add(&second)
    /// })?;
    /// // … clip, optimizer, `graph.store(&loss, …)`, `graph.advance(&state)`: once.
    /// # assert_eq!(loss.shape(), [0; 0]);
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    pub fn accumulate<T>(&self, record: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let outer = std::mem::replace(&mut self.inner_mut().accumulates, true);
        let _region = self.at_end(|inner| inner.accumulates = outer);
        record()
    }
}
