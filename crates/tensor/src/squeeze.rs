use crate::error::Error;
use crate::graph::tensor::Tensor;

impl Tensor {
    /// This tensor without dimension `dim`, if that has length 1; else unchanged. No kernel runs.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension.
    /// # Reference
    /// `torch.squeeze(x, dim)`.
    #[track_caller]
    pub fn squeeze(&self, dim: usize) -> Self {
        let mut shape = self.shape().to_vec();
        if let Err(error) = self.check_dim("squeeze", dim) {
            return self.refused(error, &shape);
        }
        if shape[dim] == 1 {
            shape.remove(dim);
        }
        self.reshape(&shape)
    }

    /// This tensor with a dimension of length 1 inserted at position `dim`. No kernel runs.
    ///
    /// # Errors
    /// [`Error::Shape`] if `dim` is greater than the number of dimensions.
    /// # Reference
    /// `torch.unsqueeze`.
    #[track_caller]
    pub fn unsqueeze(&self, dim: usize) -> Self {
        let mut shape = self.shape().to_vec();
        shape.insert(dim.min(shape.len()), 1);
        if dim > self.shape().len() {
            let expected = format!("at least {dim} dimensions");
            let error = Error::Shape { op: "unsqueeze", arg: "x", expected, found: self.shape().to_vec() };
            return self.refused(error, &shape);
        }
        self.reshape(&shape)
    }
}
