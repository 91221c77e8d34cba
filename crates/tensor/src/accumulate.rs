use crate::graph::Graph;

impl Graph {
    /// Within `record`, backward passes add to gradients instead of replacing them, and there may be several.
    ///
    /// So one recorded step processes a large batch in parts that share memory for their activations: a forward and a backward
    /// pass for each part, the first one outside of this region so that it replaces the old gradients, then one update.
    /// Everything else sees a single batch, with one learning rate and one loss. If the losses of the parts add up to the loss of
    /// the batch, the gradients are those of the batch, summed in another order: weight each row by its
    /// [share](crate::Tensor::shares) of the batch and sum. That also holds for a short last batch.
    ///
    /// Batch normalisation uses the statistics of each part.
    ///
    /// # Reference
    /// `loss.backward()` for each part of a batch, in PyTorch.
    /// # Examples
    /// ```
    /// use brisk_tensor::{Activation, DType, Graph, Persistent, Reduction};
    ///
    /// let graph = Graph::training("two parts");
    /// let (values, grads) = (Persistent::new("values", DType::F32, 4), Persistent::new("grads", DType::F32, 4));
    /// let weight = graph.parameter(&values, &grads, 0..4, &[1, 4]);
    /// let (order, state) = (Graph::order_buffer(), Graph::state_buffer());
    /// let table = brisk_tensor::Windows::new("table", DType::F32, 1000, 4, usize::MAX);
    /// let (mean, inv_std) = (Persistent::new("mean", DType::F32, 4), Persistent::new("inv_std", DType::F32, 4));
    /// let zeros = graph.constant("targets", &[0.0; 8], &[8, 1]);
    /// // The weight of each of the 16 rows in the mean.
    /// let shares = graph.batch(&order, &state, 16).weights.shares();
    /// let loss_of = |part: std::ops::Range<usize>| {
    ///     let batch = graph.batch_part(&order, &state, part.clone());
    ///     let y = graph.gather(&batch, &table, &mean, &inv_std).linear(&weight, None, Activation::identity());
    ///     y.mse_loss(&zeros, &shares.narrow(0, part), Reduction::Sum)
    /// };
    /// let first = loss_of(0..8);
    /// graph.backward(&first)?;
    /// let second = loss_of(8..16);
    /// graph.accumulate(|| graph.backward(&second))?;
    /// let loss = first + second;
    /// // … clip, optimizer, `graph.store(&loss, …)`, `graph.advance(&state)`: once.
    /// # assert_eq!(loss.shape(), [0; 0]);
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    pub fn accumulate<T>(&self, record: impl FnOnce() -> T) -> T {
        let outer = std::mem::replace(&mut self.inner_mut().accumulates, true);
        let _region = self.at_end(|inner| inner.accumulates = outer);
        record()
    }
}
