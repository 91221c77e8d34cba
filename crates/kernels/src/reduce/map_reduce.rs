use super::{map_reduce_cpu, map_reduce_module};
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conversion::converted::Converted;
use crate::dtype::DType;
use crate::error::{Error, check_supported};
use crate::expr::Expr;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::map::layout::{Layout, broadcast_shapes};
use crate::map::map::{INPUTS, check_floats, check_reads};
use crate::map::map_input::{MapInput, n_elements};
use crate::reduce::reduce_op::Reducer;
use crate::shader::dispatch::Dispatch;

/// Reductions of elementwise expressions, whose values are not stored in memory: `r = op over dims of expr(x0[i…], x1[i…], …)`
/// for each of [`exprs`](Self::exprs), and from these the [`results`](Self::results), such as `Σ w l / Σ w`.
///
/// # Shapes
/// Inputs broadcast to [`shape`](Self::shape) like those of [`Map`](crate::Map). A result has the sizes of the dimensions that
/// are not in [`dims`](Self::dims), in order; `y` has the results concatenated.
/// # Dtypes
/// f32, f16 or bf16 for each input, f32 for `y`; f16 and bf16 for `y` by [`stored`](crate::stored). Arithmetic is in f32.
/// # Values
/// Sums are computed as a tree of chains of at most 128 elements, in an order that depends only on the sizes. Maxima and minima
/// are NaN if an element is.
/// # Errors
/// [`Error::Unsupported`] for shapes that do not broadcast, dimensions that are out of range or given twice, more than 5 inputs,
/// an expression that reads a missing input, an input that no expression reads, and no results; [`Error::Size`] for empty shapes.
/// # Cost
/// One dispatch for every factor of 128 in the number of elements of a result; reads each input once.
/// # Examples
/// ```
/// use brisk_kernels::expr::Expr;
/// use brisk_kernels::{Kernel, MapReduce, Reducer};
///
/// let squared_error = (Expr::input(0) - Expr::input(1)).powi(2);
/// let loss = MapReduce::new(Reducer::Mean, squared_error, &[&[32, 10], &[32, 10]], &[0, 1])?;
/// assert_eq!(loss.args()[2].len, 1);
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapReduce {
    /// The shape that the inputs broadcast to.
    pub shape: Vec<usize>,
    /// Input `i` of the expressions is `inputs[i]`.
    pub inputs: Vec<MapInput>,
    /// The values that are reduced.
    pub exprs: Vec<Expr>,
    /// How they are reduced.
    pub op: Reducer,
    /// The dimensions of `shape` that are reduced, in any order.
    pub dims: Vec<usize>,
    /// The outputs, as expressions whose input `i` is the reduction of `exprs[i]`.
    pub results: Vec<Expr>,
}

/// The maximum number of elements that an invocation folds in the first pass of a short reduction, so that there are many
/// invocations; and in other passes, so that few partial results remain.
const CHAIN: usize = 64;
const LONG_CHAIN: usize = 128;
/// The maximum length of a short reduction.
const SHORT: usize = 4096;
/// The minimum number of partial results of the first pass if the innermost dimension is reduced, so that neighbouring
/// invocations read neighbouring elements.
const MIN_PARTS: usize = 16;

impl MapReduce {
    /// The maximum number of inputs: together with the result and two buffers of partial results, these are the 8 buffers that
    /// every adapter can bind.
    pub const MAX_INPUTS: usize = 5;

    /// The reduction of one expression of inputs in f32.
    ///
    /// # Errors
    /// Those of [`MapReduce`].
    pub fn new(op: Reducer, expr: Expr, inputs: &[&[usize]], dims: &[usize]) -> Result<Self, Error> {
        let shape = broadcast_shapes(inputs)?;
        let inputs = inputs.iter().map(|shape| MapInput::new(shape, DType::F32)).collect();
        let reduction = Self { shape, inputs, exprs: vec![expr], op, dims: dims.to_vec(), results: vec![Expr::input(0)] };
        reduction.check()?;
        Ok(reduction)
    }

    /// The reduction of one input in f32. [`check`](Kernel::check) returns an error if it is not valid.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::{Kernel, MapReduce, Reducer};
    ///
    /// // The gradient of a bias: the sum of each column.
    /// let sum = MapReduce::of(Reducer::Sum, &[32, 10], &[0]);
    /// assert_eq!(sum.args()[1].len, 10);
    /// ```
    pub fn of(op: Reducer, shape: &[usize], dims: &[usize]) -> Self {
        Self {
            shape: shape.to_vec(),
            inputs: vec![MapInput::new(shape, DType::F32)],
            exprs: vec![Expr::input(0)],
            op,
            dims: dims.to_vec(),
            results: vec![Expr::input(0)],
        }
    }

    /// The shape of a result, with size 1 for reduced dimensions.
    pub fn kept_shape(&self) -> Vec<usize> {
        let size = |(dim, &size)| if self.dims.contains(&dim) { 1 } else { size };
        self.shape.iter().enumerate().map(size).collect()
    }

    /// Elements of a result.
    pub(super) fn n_kept(&self) -> usize {
        n_elements(&self.kept_shape())
    }

    /// Elements that each element of a result is computed from.
    pub(super) fn n_reduced(&self) -> usize {
        n_elements(&self.dims.iter().filter_map(|&dim| self.shape.get(dim).copied()).collect::<Vec<_>>())
    }

    /// The layout of all elements; its last pattern is that of a result.
    pub(super) fn layout(&self) -> Result<Layout, Error> {
        let kept = MapInput::new(&self.kept_shape(), DType::F32);
        let inputs: Vec<MapInput> = self.inputs.iter().cloned().chain([kept]).collect();
        Layout::new(&self.shape, &inputs)
    }

    /// The values that are folded.
    pub(super) fn elements(&self) -> Vec<Expr> {
        self.exprs.iter().map(|expr| self.op.element(expr)).collect()
    }

    /// The results, as expressions of the folded [`elements`](Self::elements).
    pub(super) fn results_of_folds(&self) -> Vec<Expr> {
        let n = self.n_reduced();
        let reduced: Vec<Expr> = (0..self.exprs.len()).map(|i| self.op.result(Expr::input(i), n)).collect();
        self.results.iter().map(|result| result.substitute(&reduced)).collect()
    }

    /// The number of partial results per fold after each pass; 1 for the last.
    pub(super) fn passes(&self) -> Vec<usize> {
        let n = self.n_reduced();
        let chain = if n <= SHORT { CHAIN } else { LONG_CHAIN };
        let innermost = self.shape.iter().rposition(|size| *size != 1);
        let min_parts = if innermost.is_some_and(|dim| self.dims.contains(&dim)) { MIN_PARTS } else { 1 };
        let mut passes = vec![if n <= CHAIN { 1 } else { n.div_ceil(chain).max(min_parts) }];
        while let Some(&n_parts) = passes.last()
            && n_parts > 1
        {
            passes.push(n_parts.div_ceil(LONG_CHAIN));
        }
        passes
    }

    /// The dispatches as a part of another kernel, for which argument `i` is `args[i]`.
    pub(crate) fn dispatches_over(&self, args: &[usize]) -> Result<Vec<Dispatch>, Error> {
        let mut dispatches = map_reduce_module::dispatches(self, &self.layout()?)?;
        for dispatch in &mut dispatches {
            dispatch.reads.iter_mut().chain(&mut dispatch.writes).for_each(|arg| *arg = args[*arg]);
        }
        Ok(dispatches)
    }

    fn check_exprs(&self) -> Result<(), Error> {
        check_reads(self.name(), self.exprs.iter(), self.inputs.len())?;
        let n_exprs = self.exprs.len();
        let found = || format!("a kernel with {n_exprs} of the expressions and {} of the results", self.results.len());
        check_supported(self.name(), n_exprs > 0 && !self.results.is_empty(), found, "at least one of each")?;
        self.results.iter().try_for_each(|result| {
            let found = || format!("the result `{result}` of {n_exprs} reduced expressions");
            let expected = "a result of the given expressions, x0 for the first";
            check_supported(self.name(), result.n_inputs() <= n_exprs, found, expected)
        })
    }
}

impl Kernel for MapReduce {
    fn signature(&self) -> Signature {
        let n_kept = self.n_kept();
        let inputs = INPUTS.iter().zip(&self.inputs);
        let mut args: Vec<Arg> = inputs.map(|(name, input)| Arg::read(name, input.dtype, input.len)).collect();
        args.push(Arg::write("y", DType::F32, [n_kept, self.results.len()]));
        // Passes alternate between two buffers; the last writes `y`.
        let passes = self.passes();
        let names = ["partials", "more_partials"];
        let partials = names.iter().zip(passes.iter().take_while(|n_parts| **n_parts > 1));
        args.extend(partials.map(|(name, n_parts)| Arg::scratch(name, DType::F32, [n_kept, *n_parts, self.exprs.len()])));
        Signature::new("map_reduce", args)
    }

    fn check(&self) -> Result<(), Error> {
        let (n_inputs, name) = (self.inputs.len(), self.name());
        check_supported(name, n_inputs <= Self::MAX_INPUTS, || format!("a kernel with {n_inputs} inputs"), "at most 5")?;
        for dim in &self.dims {
            let found = || format!("dimension {dim} of shape {:?}", self.shape);
            check_supported(name, *dim < self.shape.len(), found, "dimensions of the shape")?;
        }
        let is_once = (1..self.dims.len()).all(|i| !self.dims[..i].contains(&self.dims[i]));
        check_supported(name, is_once, || format!("the list of dimensions {:?}", self.dims), "each dimension once")?;
        check_floats(name, INPUTS.iter().zip(self.inputs.iter().map(|input| input.dtype)))?;
        self.check_exprs()?;
        check_sizes(self, &[("number of elements", n_elements(&self.shape))])?;
        self.layout()?.check(name)
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
        let n = n_elements(&self.shape);
        let read: usize = self.args().iter().take(self.inputs.len()).map(Arg::len_bytes).sum();
        let n_ops: usize = self.exprs.iter().map(|expr| expr.n_ops() + 1).sum();
        Cost { flops: (n_ops * n) as u64, bytes: (read + 4 * self.n_kept() * self.results.len()) as u64 }
    }
}
