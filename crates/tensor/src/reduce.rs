use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Kernel as _, Map, MapInput, MapOutput, Reduce, ReduceGrad, ReduceMask, ReduceOp};

use crate::dims::Reduced;
use crate::operation::check_kernel;
use crate::{AutocastRule, Backward, Dims, Error, Forward, Operation, Tensor};

impl Tensor {
    /// The sum over the dimensions `dims`, which are removed unless they are [kept](Dims::keep): `..` for a single number, `0` for the sums of columns,
    /// `1..` for those of rows.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, one is named twice, or a range is empty.
    /// # Reference
    /// `torch.sum`.
    #[track_caller]
    pub fn sum(&self, dims: impl Into<Dims>) -> Self {
        self.reduce(ReduceOp::Sum, dims)
    }

    /// The mean over the dimensions `dims`.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.mean`.
    #[track_caller]
    pub fn mean(&self, dims: impl Into<Dims>) -> Self {
        self.reduce(ReduceOp::Mean, dims)
    }

    /// The maximum over the dimensions `dims`. Elements that tie share the gradient evenly.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.amax`.
    #[track_caller]
    pub fn max(&self, dims: impl Into<Dims>) -> Self {
        self.reduce(ReduceOp::Max, dims)
    }

    /// The minimum over the dimensions `dims`. Elements that tie share the gradient evenly.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.amin`.
    #[track_caller]
    pub fn min(&self, dims: impl Into<Dims>) -> Self {
        self.reduce(ReduceOp::Min, dims)
    }

    /// The Euclidean norm over the dimensions `dims`. Where it is 0, so is the gradient.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.linalg.vector_norm`.
    #[track_caller]
    pub fn norm(&self, dims: impl Into<Dims>) -> Self {
        self.reduce(ReduceOp::Norm, dims)
    }

    /// The variance over the dimensions `dims`: the sum of squared differences from the mean over `n - correction`, for `n` elements.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.var`; a `correction` of 1 is Bessel's, of 0 none.
    #[track_caller]
    pub fn var(&self, dims: impl Into<Dims>, correction: usize) -> Self {
        let dims = dims.into();
        let n = match dims.of("var", self) {
            Ok(dims) => dims.n(self.shape()),
            Err(error) => return self.refused(error, self.shape()),
        };
        let from_mean = self.sub(&self.mean(dims.clone().keep()));
        // 0/0 or a number over 0, as in PyTorch, where there are no degrees of freedom.
        let scale = 1.0 / n.saturating_sub(correction) as f32;
        from_mean.map(|x| x.powi(2) * scale).sum(dims)
    }

    /// The standard deviation over the dimensions `dims`: the square root of [`var`](Self::var).
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.std`.
    #[track_caller]
    pub fn std(&self, dims: impl Into<Dims>, correction: usize) -> Self {
        self.var(dims, correction).sqrt()
    }

    #[track_caller]
    fn reduce(&self, op: ReduceOp, dims: impl Into<Dims>) -> Self {
        match dims.into().of(Reduce::all(1, op).name(), self) {
            Ok(dims) => self.graph().apply(Reduction { op, dims }, &[self]),
            Err(error) => self.refused(error, self.shape()),
        }
    }
}

#[derive(Debug)]
struct Reduction {
    op: ReduceOp,
    dims: Reduced,
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
        self.dims.kernels(shape, self.op).iter().try_for_each(check_kernel)?;
        Ok(self.dims.shape(shape))
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        let kernels = self.dims.kernels(forward.shape(0), self.op);
        let mut from = x;
        for (i, kernel) in kernels.iter().enumerate() {
            let is_last = i + 1 == kernels.len();
            let to = if is_last { y } else { forward.transient("reduced", DType::F32, kernel.n_outer * kernel.n_inner) };
            forward.push(*kernel, &[from, to])?;
            from = to;
        }
        Ok(())
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let shape = backward.shape(0).to_vec();
        let kernels = self.dims.kernels(&shape, self.op);
        match kernels[..] {
            [kernel] => one_range(kernel, backward),
            _ => self.several_ranges(&shape, backward),
        }
    }
}

impl Reduction {
    /// The gradient where the dimensions are not adjacent: a `Map` that repeats the gradient along them.
    fn several_ranges(&self, shape: &[usize], backward: &mut Backward<'_>) -> Result<(), Error> {
        let kept = self.dims.kept_shape(shape);
        let (dy, x, y) = (backward.grad(), backward.input(0), backward.output());
        let [a, b, c] = [0, 1, 2].map(Expr::input);
        match self.op {
            ReduceOp::Max | ReduceOp::Min => {
                let mask = backward.transient("mask", DType::F32, x.len());
                let n_equal = backward.transient("n_equal", DType::F32, y.len());
                backward.push(broadcast(a.eq(&b), shape, &[shape, &kept]), &[x, y, mask])?;
                let mut from = mask;
                let sums = self.dims.kernels(shape, ReduceOp::Sum);
                for (i, sum) in sums.iter().enumerate() {
                    let is_last = i + 1 == sums.len();
                    let n = sum.n_outer * sum.n_inner;
                    let to = if is_last { n_equal } else { backward.transient("reduced", DType::F32, n) };
                    backward.push(*sum, &[from, to])?;
                    from = to;
                }
                backward.give(0, broadcast(&a * &b / &c, shape, &[&kept, shape, &kept]), &[dy, mask, n_equal])
            }
            // Where the norm is 0, so is the gradient.
            ReduceOp::Norm => {
                let slope = c.eq(0.0).select(0.0, &a * &b / &c);
                backward.give(0, broadcast(slope, shape, &[&kept, shape, &kept]), &[dy, x, y])
            }
            ReduceOp::Mean => {
                let scale = 1.0 / self.dims.n(shape) as f32;
                backward.give(0, broadcast(&a * scale, shape, &[&kept]), &[dy])
            }
            _ => backward.give(0, broadcast(a, shape, &[&kept]), &[dy]),
        }
    }
}

fn one_range(forward: Reduce, backward: &mut Backward<'_>) -> Result<(), Error> {
    let (dy, x, y) = (backward.grad(), backward.input(0), backward.output());
    match forward.op {
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

/// `expr` of f32 inputs that broadcast to `shape`.
pub(crate) fn broadcast(expr: Expr, shape: &[usize], inputs: &[&[usize]]) -> Map {
    let inputs = inputs.iter().map(|shape| MapInput::new(shape, DType::F32)).collect();
    Map { shape: shape.to_vec(), inputs, outputs: vec![MapOutput { expr, dtype: DType::F32 }] }
}
