use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Map, MapInput, MapOutput, MapReduce, Reducer};

use crate::dims::{Dims, Reduced};
use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// The variance over the dimensions `dims`: the sum of squared differences from the mean over `n - correction`, for `n`
    /// elements. Exactly 0 for equal elements.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.var`; a `correction` of 1 is Bessel's, of 0 none.
    #[track_caller]
    pub fn var(&self, dims: impl Into<Dims>, correction: usize) -> Self {
        self.spread(false, dims.into(), correction)
    }

    /// The standard deviation over the dimensions `dims`: the square root of [`var`](Self::var). Its gradient is 0 where it is 0.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    /// # Reference
    /// `torch.std`.
    #[track_caller]
    pub fn std(&self, dims: impl Into<Dims>, correction: usize) -> Self {
        self.spread(true, dims.into(), correction)
    }

    #[track_caller]
    fn spread(&self, is_root: bool, dims: Dims, correction: usize) -> Self {
        match dims.of(name(is_root), self) {
            Ok(dims) => self.graph().apply(Spread { is_root, dims, correction }, &[self]),
            Err(error) => self.refused(error, self.shape()),
        }
    }
}

fn name(is_root: bool) -> &'static str {
    if is_root { "std" } else { "var" }
}

/// The variance or its root, as a function of the differences from the first element, which are exact where elements are close to
/// each other, whatever their size.
#[derive(Debug)]
struct Spread {
    is_root: bool,
    dims: Reduced,
    correction: usize,
}

impl Spread {
    /// The elements, and the first of those that each result is computed from.
    fn inputs(&self, shape: &[usize]) -> [MapInput; 2] {
        let x = MapInput::new(shape, DType::F32);
        [x.clone(), MapInput { shape: self.dims.kept_shape(shape), ..x }]
    }

    fn reduction(&self, op: Reducer, expr: Expr, result: Expr, shape: &[usize], inputs: Vec<MapInput>) -> MapReduce {
        MapReduce { inputs, exprs: vec![expr], results: vec![result], ..MapReduce::of(op, shape, &self.dims.numbers()) }
    }

    fn mean(&self, shape: &[usize]) -> MapReduce {
        let [x, first, result] = [0, 1, 0].map(Expr::input);
        self.reduction(Reducer::Mean, x - first, result, shape, self.inputs(shape).into())
    }

    /// The degrees of freedom. They may be negative: then, as in PyTorch, the result is divided by 0, and its gradient by them.
    fn degrees(&self, shape: &[usize]) -> f64 {
        self.dims.n(shape) as f64 - self.correction as f64
    }
}

impl Operation for Spread {
    fn signature(&self) -> Signature {
        Signature { autocast: AutocastRule::Full, ..Signature::new(name(self.is_root), &["x"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let shape = inputs[0].shape();
        check_kernel(&self.mean(shape))?;
        Ok(self.dims.shape(shape))
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let shape = forward.shape(0).to_vec();
        let (x, y) = (forward.input(0), forward.output());
        let mean = forward.transient("mean", DType::F32, y.len());
        forward.push(self.mean(&shape), &[x, x, mean])?;
        let [of_x, first, of_mean, variance] = [0, 1, 2, 0].map(Expr::input);
        let square = (of_x - first - of_mean).powi(2) * (1.0 / self.degrees(&shape).max(0.0)) as f32;
        let [elements, first] = self.inputs(&shape);
        let inputs = vec![elements, first, MapInput::new(&self.dims.kept_shape(&shape), DType::F32)];
        let result = if self.is_root { variance.sqrt() } else { variance };
        forward.push(self.reduction(Reducer::Sum, square, result, &shape, inputs), &[x, x, mean, y])?;
        forward.save(mean);
        Ok(())
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let shape = backward.shape(0).to_vec();
        let (dy, x, y, mean) = (backward.grad(), backward.input(0), backward.output(), backward.saved(0));
        let [of_dy, of_x, first, of_mean, of_y] = [0, 1, 2, 3, 4].map(Expr::input);
        let slope = of_dy * (of_x - first - of_mean) * (1.0 / self.degrees(&shape)) as f32;
        let [elements, first] = self.inputs(&shape);
        let kept = MapInput::new(&self.dims.kept_shape(&shape), DType::F32);
        let mut inputs = vec![kept.clone(), elements, first, kept.clone()];
        let mut args = vec![dy, x, x, mean];
        let expr = if self.is_root {
            inputs.push(kept);
            args.push(y);
            Expr::eq(&of_y, 0.0).select(0.0, slope / of_y)
        } else {
            slope * 2.0
        };
        backward.give(0, Map { shape, inputs, outputs: vec![MapOutput { expr, dtype: DType::F32 }] }, &args)
    }
}
