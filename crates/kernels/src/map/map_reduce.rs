use super::layout::{Layout, broadcast_shapes};
use super::map::{INPUTS, Map};
use super::map_input::MapInput;
use super::{map_reduce_cpu, map_reduce_module};
use crate::core::converted::Converted;
use crate::core::sizes::check_sizes;
use crate::expr::Expr;
use crate::reduce::reduce::passes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, ReduceOp, TwinArgs};

/// `y = op over dims of expr(x0[i…], x1[i…], …)`: a reduction of an elementwise expression, which is never in memory.
///
/// # Shapes
/// Inputs broadcast to [`shape`](Self::shape) as those of [`Map`]. `y` has the sizes of the dimensions that are not in [`dims`](Self::dims), in order.
/// # Dtypes
/// f32, f16 or bf16 for each input, f32 for `y`; f16 and bf16 for `y` by [`stored`](crate::stored). Arithmetic is in f32.
/// # Values
/// Sums are taken in a tree of chains of at most 64 elements, in an order that depends on the sizes only. Maxima and minima are NaN if an element is.
/// # Errors
/// [`Error::Unsupported`] for shapes that do not broadcast, dimensions out of range or twice, more than 5 inputs, an expression that reads a missing input, an input that it
/// does not read, and [`ReduceOp::NonFinite`]; [`Error::Size`] for empty shapes.
/// # Cost
/// A dispatch for every factor of 64 in the number of elements of a result; reads each input once.
/// # Examples
/// ```
/// use brisk_kernels::expr::Expr;
/// use brisk_kernels::{Kernel, MapReduce, ReduceOp};
///
/// let squared_error = (Expr::input(0) - Expr::input(1)).powi(2);
/// let loss = MapReduce::new(ReduceOp::Mean, squared_error, &[&[32, 10], &[32, 10]], &[0, 1])?;
/// assert_eq!(loss.args()[2].len, 1);
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapReduce {
    /// The shape that the inputs broadcast to.
    pub shape: Vec<usize>,
    /// Input `i` of the expression is `inputs[i]`.
    pub inputs: Vec<MapInput>,
    /// The value of each element.
    pub expr: Expr,
    /// How elements are reduced.
    pub op: ReduceOp,
    /// The dimensions of `shape` that are reduced, in any order.
    pub dims: Vec<usize>,
}

/// What a chain of elements is folded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    Sum,
    Max,
    Min,
}

impl MapReduce {
    /// The most inputs: with the result and two buffers of partial results they are the 8 that every adapter binds.
    pub const MAX_INPUTS: usize = 5;

    /// An expression of inputs in f32.
    ///
    /// # Errors
    /// Those of [`MapReduce`].
    pub fn new(op: ReduceOp, expr: Expr, inputs: &[&[usize]], dims: &[usize]) -> Result<Self, Error> {
        let shape = broadcast_shapes(inputs)?;
        let inputs = inputs.iter().map(|shape| MapInput::new(shape, DType::F32)).collect();
        let reduction = Self { shape, inputs, expr, op, dims: dims.to_vec() };
        reduction.check()?;
        Ok(reduction)
    }

    /// The shape of the result, with size 1 where it is reduced.
    pub fn kept_shape(&self) -> Vec<usize> {
        let size = |(dim, &size)| if self.dims.contains(&dim) { 1 } else { size };
        self.shape.iter().enumerate().map(size).collect()
    }

    /// Elements of the result.
    pub(super) fn n_kept(&self) -> usize {
        self.kept_shape().iter().product()
    }

    /// Elements that each element of the result is of.
    pub(super) fn n_reduced(&self) -> usize {
        self.dims.iter().filter_map(|&dim| self.shape.get(dim)).product()
    }

    /// The layout of all elements; its last pattern is that of the result.
    pub(super) fn layout(&self) -> Result<Layout, Error> {
        let kept = MapInput::new(&self.kept_shape(), DType::F32);
        let inputs: Vec<MapInput> = self.inputs.iter().cloned().chain([kept]).collect();
        Layout::new(&self.shape, &inputs)
    }

    /// What is folded, and what the result is of that (input 0).
    pub(super) fn parts(&self) -> (Expr, Fold, Expr) {
        let result = Expr::input(0);
        match self.op {
            ReduceOp::Sum | ReduceOp::NonFinite => (self.expr.clone(), Fold::Sum, result),
            ReduceOp::Mean => (self.expr.clone(), Fold::Sum, result / self.n_reduced() as f32),
            ReduceOp::Max => (self.expr.clone(), Fold::Max, result),
            ReduceOp::Min => (self.expr.clone(), Fold::Min, result),
            ReduceOp::Norm => (&self.expr * &self.expr, Fold::Sum, result.sqrt()),
        }
    }

    /// How many partial results of each element of the result are left by each pass; 1 by the last.
    pub(super) fn passes(&self) -> Vec<usize> {
        passes(self.n_reduced())
    }

    fn unsupported(found: String, expected: &'static str) -> Error {
        Error::Unsupported { kernel: "map_reduce", found, expected }
    }
}

impl Kernel for MapReduce {
    fn name(&self) -> &'static str {
        "map_reduce"
    }

    fn args(&self) -> Vec<Arg> {
        let n_kept = self.n_kept();
        let inputs = INPUTS.iter().zip(&self.inputs);
        let mut args: Vec<Arg> = inputs.map(|(name, input)| Arg::read(name, input.dtype, input.len)).collect();
        args.push(Arg::write("y", DType::F32, n_kept));
        // Passes take turns with two buffers; the last writes `y`.
        let passes = self.passes();
        let names = ["partials", "more_partials"];
        let partials = names.iter().zip(passes.iter().take_while(|n_parts| **n_parts > 1));
        args.extend(partials.map(|(name, n_parts)| Arg::scratch(name, DType::F32, n_kept * n_parts)));
        args
    }

    fn check(&self) -> Result<(), Error> {
        let (n_inputs, n_dims) = (self.inputs.len(), self.shape.len());
        if n_inputs > Self::MAX_INPUTS {
            return Err(Self::unsupported(format!("{n_inputs} inputs"), "at most 5"));
        }
        if self.op == ReduceOp::NonFinite {
            return Err(Self::unsupported(format!("{:?}", self.op), "a sum, mean, maximum, minimum or norm; take `Reduce`"));
        }
        if let Some(dim) = self.dims.iter().find(|dim| **dim >= n_dims) {
            return Err(Self::unsupported(format!("dimension {dim} of shape {:?}", self.shape), "dimensions of the shape"));
        }
        if (1..self.dims.len()).any(|i| self.dims[..i].contains(&self.dims[i])) {
            return Err(Self::unsupported(format!("dimensions {:?}", self.dims), "each dimension once"));
        }
        if let Some(input) = self.inputs.iter().position(|input| !input.dtype.is_float()) {
            let found = format!("`x{input}` stored as {}", self.inputs[input].dtype);
            return Err(Self::unsupported(found, "f32, f16 or bf16; cast it first"));
        }
        if self.expr.n_inputs() > n_inputs {
            let found = format!("`{}`, which reads x{}, of {n_inputs} inputs", self.expr, self.expr.n_inputs() - 1);
            return Err(Self::unsupported(found, "an expression of the given inputs"));
        }
        if let Some(unread) = (0..n_inputs).find(|&i| !self.expr.reads(i)) {
            let found = format!("input x{unread}, which `{}` does not read", self.expr);
            return Err(Self::unsupported(found, "inputs that are read; leave it out"));
        }
        let n_dims = self.layout()?.sizes.len();
        if n_dims > Map::MAX_DIMS {
            return Err(Self::unsupported(format!("{n_dims} dimensions that cannot be merged"), "at most 6"));
        }
        check_sizes(self, &[("number of elements", self.shape.iter().product())])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        map_reduce_module::dispatches(self, &self.layout()?)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let layout = self.layout().expect("the shapes were checked");
        map_reduce_cpu::run(self, &layout, args);
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        let mut reduction = self.clone();
        for (input, dtype) in reduction.inputs.iter_mut().zip(dtypes) {
            input.dtype = *dtype;
        }
        let is_all = dtypes.last() == Some(&DType::F32);
        Some(if is_all {
            Box::new(reduction)
        } else {
            Box::new(Converted { kernel: Box::new(reduction), dtypes: dtypes.to_vec() })
        })
    }

    fn cost(&self) -> Cost {
        let n: usize = self.shape.iter().product();
        let read: usize = self.args().iter().take(self.inputs.len()).map(Arg::len_bytes).sum();
        Cost { flops: ((self.expr.n_ops() + 1) * n) as u64, bytes: (read + 4 * self.n_kept()) as u64 }
    }
}
