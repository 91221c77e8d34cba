use crate::dims::Dims;
use crate::graph::tensor::Tensor;

impl Tensor {
    /// This tensor with the order of its elements reversed along each dimension of `dims`.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if there is no such dimension, or it is given twice.
    /// # Cost
    /// A copy for each dimension longer than 1, and as many for the gradient.
    /// # Reference
    /// `torch.flip`.
    /// # Examples
    /// ```
    /// use brisk_tensor::Graph;
    ///
    /// // The mirror images of NHWC images.
    /// let graph = Graph::inference("images");
    /// let images = graph.constant("images", &[0.5; 2 * 8 * 8 * 3], &[2, 8, 8, 3]);
    /// assert_eq!(images.flip(2).shape(), [2, 8, 8, 3]);
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn flip(&self, dims: impl Into<Dims>) -> Self {
        self.flip_impl(&dims.into())
    }

    #[track_caller]
    fn flip_impl(&self, dims: &Dims) -> Self {
        let dims = match dims.of("flip", self) {
            Ok(dims) => dims.numbers(),
            Err(error) => return self.refused(error, self.shape()),
        };
        let mut flipped = self.clone();
        for dim in dims {
            let length = self.shape()[dim];
            if length > 1 {
                flipped = flipped.index_select(dim, &(0..length as u32).rev().collect::<Vec<_>>());
            }
        }
        flipped
    }
}
