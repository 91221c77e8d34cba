use brisk_kernels::{CumulativeSum, SumOrder};

use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;
use crate::narrow::sizes_around;

impl Tensor {
    /// The sum of each element and all before it along dimension `dim`.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension.
    /// # Reference
    /// `torch.cumsum`.
    #[track_caller]
    pub fn cumsum(&self, dim: usize) -> Self {
        if let Err(error) = self.check_dim("cumsum", dim) {
            return self.refused(error, self.shape());
        }
        let [n_outer, n, n_inner] = sizes_around(self.shape(), dim);
        self.graph().apply(CumulativeSum { n_outer, n, n_inner, order: SumOrder::Forward }, &[self])
    }
}

impl Operation for CumulativeSum {
    fn signature(&self) -> Signature {
        Signature { autocast: AutocastRule::Full, ..Signature::new("cumsum", &["x"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        check_kernel(self)?;
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(*self)
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let dy = backward.grad();
        backward.give(0, self.grad(), &[dy])
    }
}
