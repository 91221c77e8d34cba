use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Map, MapReduce, Reducer};

use crate::error::Error;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;
use crate::reduce::broadcast;

impl Tensor {
    /// Each element divided by the sum of all, or 0 if that sum is 0; not differentiable. The sum of losses, weighted by the
    /// shares of their weights, is their mean, however many parts it is computed in.
    ///
    /// # Dtypes
    /// Any for `self`; the result f32.
    /// # Errors
    /// [`Error::Program`] if there are no elements.
    #[track_caller]
    pub fn shares(&self) -> Self {
        self.graph().apply(Shares, &[self])
    }
}

/// `y = x / total`, or 0 if the total is 0, as for a batch without rows.
fn share(n: usize) -> Map {
    let [x, total] = [0, 1].map(Expr::input);
    broadcast(Expr::eq(&total, 0.0).select(0.0, x / total), &[n], &[&[n], &[1]])
}

#[derive(Debug)]
struct Shares;

impl Operation for Shares {
    fn signature(&self) -> Signature {
        Signature { dtype: Some(DType::F32), is_differentiable: false, ..Signature::new("shares", &["x"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let n = inputs[0].n_elements();
        check_kernel(&MapReduce::of(Reducer::Sum, &[n], &[0]))?;
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, total, y) = (forward.input(0), forward.transient("total", DType::F32, 1), forward.output());
        forward.push(MapReduce::of(Reducer::Sum, &[x.len()], &[0]), &[x, total])?;
        forward.push(share(x.len()), &[x, total, y])
    }
}
