use crate::{Error, Tensor};

impl Tensor {
    /// This tensor and `others`, one behind the other along dimension `dim`.
    ///
    /// # Shapes
    /// All have as many dimensions, and the same lengths along all of them but `dim`; the result is as long along `dim` as they are together.
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, or another has another length; [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.cat(xs, dim)`.
    pub fn concat(&self, others: &[&Self], dim: usize) -> Result<Self, Error> {
        const OP: &str = "concat";
        let [n_rows, _, n_inner] = self.around(OP, dim)?;
        let mut shape = self.shape().to_vec();
        let mut columns = Vec::with_capacity(others.len());
        for other in others {
            self.graph().check_own(OP, "x", other)?;
            let length = other.shape().get(dim).copied().unwrap_or(0);
            let expected = [&self.shape()[..dim], &[length], &self.shape()[dim + 1..]].concat();
            if other.shape() != expected {
                let expected = format!("{:?}, as the first has, but for dimension {dim}", self.shape());
                return Err(Error::Shape { op: OP, arg: "x", expected, found: other.shape().to_vec() });
            }
            shape[dim] += length;
            columns.push(other.reshape(&[n_rows, length * n_inner])?);
        }
        // What comes before the dimension are rows, and all behind it lies side by side.
        let first = self.reshape(&[n_rows, self.shape()[dim] * n_inner])?;
        first.concat_columns(&columns.iter().collect::<Vec<_>>())?.reshape(&shape)
    }
}
