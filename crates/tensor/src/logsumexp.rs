use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Reducer};

use crate::dims::{Dims, Reduced};
use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;
use crate::reduce::{broadcast, reduction};

impl Tensor {
    /// `log Σ e^x` over the dimensions `dims`, which are removed unless they are [kept](Dims::keep). The maximum is subtracted
    /// first, so that large numbers do not overflow; the gradient is the softmax `e^(x - y)`, NaN for an infinite element whose
    /// difference from the result is.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, one is named twice, or a range is empty.
    /// # Reference
    /// `torch.logsumexp`.
    #[track_caller]
    pub fn logsumexp(&self, dims: impl Into<Dims>) -> Self {
        match dims.into().of("logsumexp", self) {
            Ok(dims) => self.graph().apply(LogSumExp { dims }, &[self]),
            Err(error) => self.refused(error, self.shape()),
        }
    }
}

#[derive(Debug)]
struct LogSumExp {
    dims: Reduced,
}

/// The maximum, or 0 where it is infinite: the difference of two infinities is NaN.
fn finite(max: &Expr) -> Expr {
    max.abs().lt(f32::INFINITY).select(max, 0.0)
}

impl Operation for LogSumExp {
    fn signature(&self) -> Signature {
        Signature { autocast: AutocastRule::Full, ..Signature::new("logsumexp", &["x"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let shape = inputs[0].shape();
        check_kernel(&reduction(Reducer::Max, Expr::input(0), shape, &[shape], self.dims.numbers()))?;
        Ok(self.dims.shape(shape))
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let shape = forward.shape(0).to_vec();
        let kept = &self.dims.kept_shape(&shape)[..];
        let (x, y) = (forward.input(0), forward.output());
        let [max, sum] = ["max", "sum"].map(|name| forward.transient(name, DType::F32, y.len()));
        let [a, b] = [0, 1].map(Expr::input);
        forward.push(reduction(Reducer::Max, a.clone(), &shape, &[&shape], self.dims.numbers()), &[x, max])?;
        let terms = (&a - finite(&b)).exp();
        forward.push(reduction(Reducer::Sum, terms, &shape, &[&shape, kept], self.dims.numbers()), &[x, max, sum])?;
        forward.push(broadcast(a.log() + finite(&b), kept, &[kept, kept]), &[sum, max, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let shape = backward.shape(0).to_vec();
        let kept = &self.dims.kept_shape(&shape)[..];
        let (dy, x, y) = (backward.grad(), backward.input(0), backward.output());
        let [of_dy, of_x, of_y] = [0, 1, 2].map(Expr::input);
        backward.give(0, broadcast(of_dy * (of_x - of_y).exp(), &shape, &[kept, &shape, kept]), &[dy, x, y])
    }
}
