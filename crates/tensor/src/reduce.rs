use std::ops::{Bound, RangeBounds};
use std::rc::Rc;

use brisk_kernels::{DType, Kernel, Reduce, ReduceGrad, ReduceMask, ReduceOp};

use crate::{Error, Tensor};

impl Tensor {
    /// The sum over the dimensions `dims`, which go: `..` for one number, `0..1` for columns' sums, `1..` for rows'.
    ///
    /// # Errors
    /// [`Error::Shape`] if the range is empty or reaches beyond the dimensions.
    /// # Reference
    /// `torch.sum`.
    pub fn sum(&self, dims: impl RangeBounds<usize>) -> Result<Self, Error> {
        self.reduce(ReduceOp::Sum, dims)
    }

    /// The mean over the dimensions `dims`, which go.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.mean`.
    pub fn mean(&self, dims: impl RangeBounds<usize>) -> Result<Self, Error> {
        self.reduce(ReduceOp::Mean, dims)
    }

    /// The greatest over the dimensions `dims`, which go. Where several are, they share the gradient evenly.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.amax`.
    pub fn max(&self, dims: impl RangeBounds<usize>) -> Result<Self, Error> {
        self.reduce(ReduceOp::Max, dims)
    }

    /// The least over the dimensions `dims`, which go. Where several are, they share the gradient evenly.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.amin`.
    pub fn min(&self, dims: impl RangeBounds<usize>) -> Result<Self, Error> {
        self.reduce(ReduceOp::Min, dims)
    }

    /// The Euclidean norm over the dimensions `dims`, which go. Where it is 0, so is the gradient.
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
        // One number may be reduced over all of its no dimensions.
        if end > shape.len() || start >= end && !(shape.is_empty() && start == end) {
            let expected = format!("dimensions {start}..{end} of it, at least one");
            return Err(Error::Shape { op: "reduce", arg: "x", expected, found: shape.to_vec() });
        }
        let product = |lengths: &[usize]| lengths.iter().product();
        let forward =
            Reduce { n_outer: product(&shape[..start]), n: product(&shape[start..end]), n_inner: product(&shape[end..]), op };
        let graph = self.graph();
        let name = forward.name();
        let (dtype, [input]) = graph.operands(name, &forward, [self])?;
        let y = graph.transient(name, dtype, forward.n_outer * forward.n_inner);
        graph.push(forward, &[input.slice(), y])?;
        let (x_id, x) = (input.id(), input.slice());
        let rule = move |backward: &mut crate::Backward<'_>, dy| match op {
            ReduceOp::Max | ReduceOp::Min => {
                let mask = backward.transient("mask", DType::F32, x.len());
                let n_equal = backward.transient("n_equal", DType::F32, y.len());
                backward.push(ReduceMask { forward }, &[x, y, mask])?;
                backward.push(Reduce { op: ReduceOp::Sum, ..forward }, &[mask, n_equal])?;
                backward.give(x_id, ReduceGrad { forward }, &[dy, mask, n_equal])
            }
            ReduceOp::Norm => backward.give(x_id, ReduceGrad { forward }, &[dy, x, y]),
            _ => backward.give(x_id, ReduceGrad { forward }, &[dy]),
        };
        graph.result(name, &[&input], y, &[&shape[..start], &shape[end..]].concat(), None, Rc::new(rule))
    }
}
