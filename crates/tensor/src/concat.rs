use crate::error::Error;
use crate::graph::tensor::Tensor;
use crate::narrow::sizes_around;

impl Tensor {
    /// Concatenates this tensor and `others` along dimension `dim`.
    ///
    /// # Shapes
    /// All have the same shape, except along `dim`, where the length of the result is the sum of theirs.
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, or another dimension differs; [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.cat(xs, dim)`.
    #[track_caller]
    pub fn concat(&self, others: &[&Self], dim: usize) -> Self {
        if let Err(error) = self.check_concat(others, dim) {
            return self.refused(error, self.shape());
        }
        let [n_rows, length, n_inner] = sizes_around(self.shape(), dim);
        // The dimensions before `dim` are rows, and `dim` with those after it are columns.
        let columns = |x: &Self| x.reshape(&[n_rows, x.shape()[dim] * n_inner]);
        let mut shape = self.shape().to_vec();
        shape[dim] = length + others.iter().map(|other| other.shape()[dim]).sum::<usize>();
        let others: Vec<Self> = others.iter().map(|&other| columns(other)).collect();
        columns(self).concat_columns(&others.iter().collect::<Vec<_>>()).reshape(&shape)
    }

    fn check_concat(&self, others: &[&Self], dim: usize) -> Result<(), Error> {
        const OP: &str = "concat";
        self.check_dim(OP, dim)?;
        for other in others {
            self.graph().check_own(OP, "x", other)?;
            let length = other.shape().get(dim).copied().unwrap_or(0);
            let expected = [&self.shape()[..dim], &[length], &self.shape()[dim + 1..]].concat();
            if other.shape() != expected {
                let expected = format!("{:?}, the shape of the first, except for dimension {dim}", self.shape());
                return Err(Error::Shape { op: OP, arg: "x", expected, found: other.shape().to_vec() });
            }
        }
        Ok(())
    }
}
