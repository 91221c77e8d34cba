use brisk_kernels::{ArgMax, DType};

use crate::error::Error;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;
use crate::narrow::sizes_around;

impl Tensor {
    /// The index of the maximum along dimension `dim`, which is removed; the first of equal ones. Not differentiable.
    ///
    /// NaN is greater than all numbers.
    ///
    /// # Dtypes
    /// The result is u32, which [`gather`](Self::gather) accepts as an index.
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension.
    /// # Reference
    /// `torch.argmax(x, dim)`.
    #[track_caller]
    pub fn arg_max(&self, dim: usize) -> Self {
        if let Err(error) = self.check_dim("arg_max", dim) {
            return self.graph().failed(error, DType::U32, self.shape());
        }
        let [n_outer, n, n_inner] = sizes_around(self.shape(), dim);
        self.graph().apply(MaximumAlong { kernel: ArgMax { n_outer, n, n_inner }, dim }, &[self])
    }
}

#[derive(Debug)]
struct MaximumAlong {
    kernel: ArgMax,
    dim: usize,
}

impl Operation for MaximumAlong {
    fn signature(&self) -> Signature {
        Signature { dtype: Some(DType::U32), is_differentiable: false, ..Signature::new("arg_max", &["x"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        check_kernel(&self.kernel)?;
        let mut shape = inputs[0].shape().to_vec();
        shape.remove(self.dim);
        Ok(shape)
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(self.kernel)
    }
}
