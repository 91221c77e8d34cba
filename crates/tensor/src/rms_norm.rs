use brisk_kernels::DType;

use crate::error::Error;
use crate::graph::tensor::Tensor;

impl Tensor {
    /// Divides by the root mean square along the last dimension: `x / √(mean(x²) + eps)`, times `weight`, if given. The result is
    /// f32.
    ///
    /// # Shapes
    /// `self`: `[…, n_cols]`, the result likewise; `weight`: `[n_cols]`.
    /// # Errors
    /// [`Error::Shape`]; [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.nn.functional.rms_norm` over the last dimension; Zhang & Sennrich 2019, arXiv:1910.07467.
    #[track_caller]
    pub fn rms_norm(&self, weight: Option<&Self>, eps: f32) -> Self {
        const OP: &str = "rms_norm";
        let &[.., n_cols] = self.shape() else {
            let error = Error::Shape { op: OP, arg: "x", expected: "[…, n_cols]".to_owned(), found: Vec::new() };
            return self.refused(error, self.shape());
        };
        if let Err(error) = weight.map_or(Ok(()), |weight| weight.check_len(OP, "weight", self.shape(), n_cols)) {
            return self.refused(error, self.shape());
        }
        let x = self.cast(DType::F32);
        let last = self.shape().len() - 1;
        let scale = x.map(|x| x.clone() * x).mean(last).map(|square| (square + eps).rsqrt()).unsqueeze(last);
        let y = x.multiply(&scale);
        weight.map_or(y.clone(), |weight| y.multiply(weight))
    }
}
