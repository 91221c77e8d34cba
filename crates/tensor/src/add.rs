use crate::elementwise::binary;
use crate::graph::tensor::Tensor;

impl Tensor {
    /// `self + b`, elementwise.
    ///
    /// # Shapes
    /// Both broadcast by NumPy's rules.
    /// # Dtypes
    /// The dtype of both; f32 where they differ.
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape), [`Error::Dtype`](crate::Error::Dtype),
    /// [`Error::ForeignTensor`](crate::Error::ForeignTensor).
    /// # Reference
    /// `torch.add`.
    #[track_caller]
    pub fn add(&self, b: &Self) -> Self {
        binary(self, b, "add", |a, b| a + b)
    }
}
