use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Map, MapInput, MapOutput, MapReduce, Reducer};

use crate::dims::{Dims, Reduced};
use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// The sum over the dimensions `dims`, which are removed unless they are [kept](Dims::keep): `..` for a single number, `0`
    /// for the sums of columns, `1..` for those of rows.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, one is named twice, or a range is empty.
    /// # Reference
    /// `torch.sum`.
    #[track_caller]
    pub fn sum(&self, dims: impl Into<Dims>) -> Self {
        self.reduce(Reducer::Sum, dims)
    }

    /// The mean over the dimensions `dims`.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.mean`.
    #[track_caller]
    pub fn mean(&self, dims: impl Into<Dims>) -> Self {
        self.reduce(Reducer::Mean, dims)
    }

    /// The maximum over the dimensions `dims`. Elements that tie share the gradient evenly.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.amax`.
    #[track_caller]
    pub fn max(&self, dims: impl Into<Dims>) -> Self {
        self.reduce(Reducer::Max, dims)
    }

    /// The minimum over the dimensions `dims`. Elements that tie share the gradient evenly.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.amin`.
    #[track_caller]
    pub fn min(&self, dims: impl Into<Dims>) -> Self {
        self.reduce(Reducer::Min, dims)
    }

    /// The Euclidean norm over the dimensions `dims`. Where it is 0, so is the gradient.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.linalg.vector_norm`.
    #[track_caller]
    pub fn norm(&self, dims: impl Into<Dims>) -> Self {
        self.reduce(Reducer::Norm, dims)
    }

    #[track_caller]
    fn reduce(&self, op: Reducer, dims: impl Into<Dims>) -> Self {
        match dims.into().of(op.name(), self) {
            Ok(dims) => self.graph().apply(ReductionOp { op, dims }, &[self]),
            Err(error) => self.refused(error, self.shape()),
        }
    }
}

#[derive(Debug)]
struct ReductionOp {
    op: Reducer,
    dims: Reduced,
}

impl Operation for ReductionOp {
    fn signature(&self) -> Signature {
        let autocast = match self.op {
            Reducer::Sum | Reducer::Norm => AutocastRule::Full,
            _ => AutocastRule::Promote,
        };
        Signature { autocast, ..Signature::new(self.op.name(), &["x"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let shape = inputs[0].shape();
        check_kernel(&self.kernel(shape))?;
        Ok(self.dims.shape(shape))
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(self.kernel(forward.shape(0)))
    }

    /// The gradient of each result, repeated along the dimensions that were reduced.
    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let shape = &backward.shape(0).to_vec()[..];
        let kept = &self.dims.kept_shape(shape)[..];
        let (grad, x, y) = (backward.grad(), backward.input(0), backward.output());
        let [dy, of_x, of_y, n_equal] = [0, 1, 2, 3].map(Expr::input);
        match self.op {
            Reducer::Max | Reducer::Min => {
                let [a, b] = [0, 1].map(Expr::input);
                let count = reduction(Reducer::Sum, Expr::eq(&a, &b), shape, &[shape, kept], self.dims.numbers());
                let n = backward.transient("n_equal", DType::F32, y.len());
                backward.push(count, &[x, y, n])?;
                let slope = dy * Expr::eq(&of_x, &of_y) / n_equal;
                backward.give(0, broadcast(slope, shape, &[kept, shape, kept, kept]), &[grad, x, y, n])
            }
            // Where the norm is 0, so is the gradient.
            Reducer::Norm => {
                let slope = Expr::eq(&of_y, 0.0).select(0.0, dy * of_x / &of_y);
                backward.give(0, broadcast(slope, shape, &[kept, shape, kept]), &[grad, x, y])
            }
            Reducer::Mean => backward.give(0, broadcast(dy / self.dims.n(shape) as f32, shape, &[kept]), &[grad]),
            _ => backward.give(0, broadcast(dy, shape, &[kept]), &[grad]),
        }
    }
}

impl ReductionOp {
    fn kernel(&self, shape: &[usize]) -> MapReduce {
        reduction(self.op, Expr::input(0), shape, &[shape], self.dims.numbers())
    }
}

/// The reduction over `dims` of `expr` of f32 inputs that broadcast to `shape`.
pub(crate) fn reduction(op: Reducer, expr: Expr, shape: &[usize], inputs: &[&[usize]], dims: Vec<usize>) -> MapReduce {
    let inputs = inputs.iter().map(|shape| MapInput::new(shape, DType::F32)).collect();
    MapReduce { inputs, exprs: vec![expr], ..MapReduce::of(op, shape, &dims) }
}

/// `expr` of f32 inputs that broadcast to `shape`.
pub(crate) fn broadcast(expr: Expr, shape: &[usize], inputs: &[&[usize]]) -> Map {
    let inputs = inputs.iter().map(|shape| MapInput::new(shape, DType::F32)).collect();
    Map { shape: shape.to_vec(), inputs, outputs: vec![MapOutput { expr, dtype: DType::F32 }] }
}
