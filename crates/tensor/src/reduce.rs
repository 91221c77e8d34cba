use std::ops::{Bound, Range, RangeBounds};

use brisk_kernels::{DType, Kernel as _, Reduce, ReduceGrad, ReduceMask, ReduceOp};

use crate::operation::check_kernel;
use crate::{AutocastRule, Backward, Error, Forward, Operation, Tensor};

impl Tensor {
    /// The sum over the dimensions `dims`, which are removed: `..` for a single number, `0..1` for the sums of columns, `1..` for those of rows.
    ///
    /// # Errors
    /// [`Error::Shape`] if the range is empty or reaches beyond the dimensions.
    /// # Reference
    /// `torch.sum`.
    pub fn sum(&self, dims: impl RangeBounds<usize>) -> Result<Self, Error> {
        self.reduce(ReduceOp::Sum, dims)
    }

    /// The mean over the dimensions `dims`, which are removed.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.mean`.
    pub fn mean(&self, dims: impl RangeBounds<usize>) -> Result<Self, Error> {
        self.reduce(ReduceOp::Mean, dims)
    }

    /// The maximum over the dimensions `dims`, which are removed. Elements that tie share the gradient evenly.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.amax`.
    pub fn max(&self, dims: impl RangeBounds<usize>) -> Result<Self, Error> {
        self.reduce(ReduceOp::Max, dims)
    }

    /// The minimum over the dimensions `dims`, which are removed. Elements that tie share the gradient evenly.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.amin`.
    pub fn min(&self, dims: impl RangeBounds<usize>) -> Result<Self, Error> {
        self.reduce(ReduceOp::Min, dims)
    }

    /// The Euclidean norm over the dimensions `dims`, which are removed. Where it is 0, so is the gradient.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.linalg.vector_norm`.
    pub fn norm(&self, dims: impl RangeBounds<usize>) -> Result<Self, Error> {
        self.reduce(ReduceOp::Norm, dims)
    }

    fn reduce(&self, op: ReduceOp, dims: impl RangeBounds<usize>) -> Result<Self, Error> {
        let shape = self.shape();
        let start = match dims.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
        };
        let end = match dims.end_bound() {
            Bound::Unbounded => shape.len(),
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
        };
        // A single number may be reduced over all of its dimensions, of which it has none.
        if end > shape.len() || start >= end && !(shape.is_empty() && start == end) {
            let expected = format!("dimensions {start}..{end} of it, at least one");
            return Err(Error::Shape { op: "reduce", arg: "x", expected, found: shape.to_vec() });
        }
        self.graph().apply(Reduction { op, dims: start..end }, &[self])
    }
}

#[derive(Debug)]
struct Reduction {
    op: ReduceOp,
    dims: Range<usize>,
}

impl Reduction {
    fn kernel(&self, shape: &[usize]) -> Reduce {
        let product = |lengths: &[usize]| lengths.iter().product();
        let (outer, inner) = (&shape[..self.dims.start], &shape[self.dims.end..]);
        Reduce { n_outer: product(outer), n: product(&shape[self.dims.clone()]), n_inner: product(inner), op: self.op }
    }
}

impl Operation for Reduction {
    fn name(&self) -> &'static str {
        Reduce::all(1, self.op).name()
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x"]
    }

    fn autocast_rule(&self) -> AutocastRule {
        match self.op {
            ReduceOp::Sum | ReduceOp::Norm => AutocastRule::Full,
            _ => AutocastRule::Promote,
        }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let shape = inputs[0].shape();
        check_kernel(&self.kernel(shape))?;
        Ok([&shape[..self.dims.start], &shape[self.dims.end..]].concat())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        forward.push(self.kernel(forward.shape(0)), &[x, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let forward = self.kernel(backward.shape(0));
        let (dy, x, y) = (backward.grad(), backward.input(0), backward.output());
        match self.op {
            ReduceOp::Max | ReduceOp::Min => {
                let mask = backward.transient("mask", DType::F32, x.len());
                let n_equal = backward.transient("n_equal", DType::F32, y.len());
                backward.push(ReduceMask { forward }, &[x, y, mask])?;
                backward.push(Reduce { op: ReduceOp::Sum, ..forward }, &[mask, n_equal])?;
                backward.give(0, ReduceGrad { forward }, &[dy, mask, n_equal])
            }
            ReduceOp::Norm => backward.give(0, ReduceGrad { forward }, &[dy, x, y]),
            _ => backward.give(0, ReduceGrad { forward }, &[dy]),
        }
    }
}
