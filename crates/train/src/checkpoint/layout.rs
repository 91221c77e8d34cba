//! The order of a convolution's weights: OHWI in brisk, OIHW in PyTorch.

use super::{Checkpoint, Tensor, TensorData};
use crate::error::Error;

/// The name of the string that says how weights are laid out in files for PyTorch.
const KEY: &str = "conv_layout";
const OIHW: &str = "oihw";

impl Checkpoint {
    /// The weights of convolutions as brisk has them: every f32 tensor of four dimensions, `[out, in, height, width]` in PyTorch,
    /// becomes `[out, height, width, in]`.
    #[must_use]
    pub fn oihw_to_ohwi(mut self) -> Self {
        self.metadata.remove(KEY);
        self.permuted([0, 2, 3, 1])
    }

    /// The weights of convolutions as PyTorch has them: the inverse of [`oihw_to_ohwi`](Self::oihw_to_ohwi). A file that is saved
    /// afterwards says so in its string `conv_layout`.
    #[must_use]
    pub fn ohwi_to_oihw(mut self) -> Self {
        self.insert_metadata(KEY, OIHW);
        self.permuted([0, 3, 1, 2])
    }

    /// The same with the weights of convolutions as brisk has them. The layout of a file that brisk wrote is known.
    ///
    /// # Errors
    /// [`Error::CheckpointEntry`] for a file of another program, with weights of convolutions, unless `foreign_is_oihw`.
    pub(crate) fn in_ohwi(self, foreign_is_oihw: bool) -> Result<Self, Error> {
        let is_oihw = match (self.metadata.get(KEY).map(String::as_str), self.format_version) {
            (Some(OIHW), _) => true,
            (_, Some(_)) => false,
            (_, None) => foreign_is_oihw,
        };
        if is_oihw {
            return Ok(self.oihw_to_ohwi());
        }
        let is_known = self.format_version.is_some();
        match self.tensors.iter().find(|(_, tensor)| is_weight(tensor)).filter(|_| !is_known) {
            None => Ok(self),
            Some((name, tensor)) => {
                let found = format!("{:?}, a weight in a file of another program", tensor.shape);
                let expected = "one in brisk's layout; load it with `Model::load_pytorch` if it is [out, in, height, width], as PyTorch's are";
                Err(self.entry("tensor", name, found, expected))
            }
        }
    }

    /// Dimension `i` of a weight is afterwards what dimension `order[i]` was before.
    fn permuted(mut self, order: [usize; 4]) -> Self {
        for tensor in self.tensors.values_mut() {
            if let ([d0, d1, d2, d3], TensorData::F32(values)) = (tensor.shape.as_slice(), &mut tensor.values) {
                let shape = [*d0, *d1, *d2, *d3];
                *values = permuted(values, shape, order).into();
                tensor.shape = order.map(|dim| shape[dim]).to_vec();
            }
        }
        self
    }
}

fn is_weight(tensor: &Tensor) -> bool {
    tensor.shape.len() == 4 && matches!(tensor.values, TensorData::F32(_))
}

fn permuted(values: &[f32], shape: [usize; 4], order: [usize; 4]) -> Vec<f32> {
    if values.is_empty() {
        return Vec::new();
    }
    let strides = [shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1];
    let ([n0, n1, n2, n3], [s0, s1, s2, s3]) = (order.map(|dim| shape[dim]), order.map(|dim| strides[dim]));
    let mut permuted = Vec::with_capacity(values.len());
    for i0 in 0..n0 {
        for i1 in 0..n1 {
            for i2 in 0..n2 {
                permuted.extend((0..n3).map(|i3| values[i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3]));
            }
        }
    }
    permuted
}
