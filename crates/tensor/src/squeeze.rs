use crate::{Error, Tensor};

impl Tensor {
    /// This tensor without dimension `dim`, if that has length 1; else as it is. No kernel runs.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension.
    /// # Reference
    /// `torch.squeeze(x, dim)`.
    pub fn squeeze(&self, dim: usize) -> Result<Self, Error> {
        let [_, length, _] = self.around("squeeze", dim)?;
        let mut shape = self.shape().to_vec();
        if length == 1 {
            shape.remove(dim);
        }
        self.reshape(&shape)
    }

    /// This tensor with a dimension of length 1 inserted as number `dim`. No kernel runs.
    ///
    /// # Errors
    /// [`Error::Shape`] if `dim` is greater than the number of dimensions.
    /// # Reference
    /// `torch.unsqueeze`.
    pub fn unsqueeze(&self, dim: usize) -> Result<Self, Error> {
        if dim > self.shape().len() {
            let expected = format!("at least {dim} dimensions");
            return Err(Error::Shape { op: "unsqueeze", arg: "x", expected, found: self.shape().to_vec() });
        }
        let mut shape = self.shape().to_vec();
        shape.insert(dim, 1);
        self.reshape(&shape)
    }
}
