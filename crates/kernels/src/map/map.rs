use super::layout::{Layout, Pattern, broadcast_shapes};
use super::map_input::{MapInput, n_elements};
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::{Error, check_supported};
use crate::expr::Expr;
use crate::random::draws::Draws;
use crate::sizes::check_indices;

/// `y[i…] = expr(x0[i…], x1[i…], …)`, with a separate expression of the same inputs for each output.
///
/// # Shapes
/// Outputs have [`shape`](Self::shape). Inputs broadcast to it by NumPy's rules: shapes are aligned at their last dimension, and
/// missing dimensions and those of size 1 repeat. An input may have any strides, so that a permuted or narrowed tensor is read in
/// place. Up to [`MAX_DIMS`](Self::MAX_DIMS) dimensions remain once adjacent ones that are contiguous in every input are merged.
/// # Dtypes
/// f32, f16 or bf16 for each input and output. Arithmetic is in f32.
/// # Errors
/// [`Error::Unsupported`] for shapes that do not broadcast, strides beyond an argument, more than [`MAX_ARGS`](Self::MAX_ARGS)
/// arguments, an expression that reads a missing input, an input that no expression reads, and other dtypes; [`Error::Size`] for
/// empty shapes.
/// # Cost
/// One dispatch; reads each input and writes each output once.
/// # Examples
/// ```
/// use brisk_kernels::expr::Expr;
/// use brisk_kernels::{DType, Kernel, Map};
///
/// let (x, bias) = (Expr::input(0), Expr::input(1));
/// let map = Map::new((x + bias).gelu(), &[&[32, 64], &[64]])?;
/// assert_eq!(map.shape, [32, 64]);
/// let names: Vec<_> = map.args().iter().map(|arg| arg.name).collect();
/// assert_eq!(names, ["x0", "x1", "y0"]);
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Map {
    /// The shape of the outputs.
    pub shape: Vec<usize>,
    /// Input `i` of the expressions is `inputs[i]`.
    pub inputs: Vec<MapInput>,
    /// The results; at least one.
    pub outputs: Vec<MapOutput>,
}

/// An output of a [`Map`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapOutput {
    /// The value of each element.
    pub expr: Expr,
    /// The element type in memory.
    pub dtype: DType,
}

/// The names of inputs and outputs, in the argument list and in the WGSL.
pub(crate) const INPUTS: [&str; Map::MAX_ARGS] = ["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"];
pub(crate) const OUTPUTS: [&str; Map::MAX_ARGS] = ["y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7"];

impl Map {
    /// The maximum number of inputs and outputs together: every adapter can bind this many buffers.
    pub const MAX_ARGS: usize = 8;
    /// The maximum number of dimensions that remain once adjacent ones are merged.
    pub const MAX_DIMS: usize = Layout::MAX_DIMS;

    /// One expression of f32 inputs, with the shape that theirs broadcast to.
    ///
    /// # Errors
    /// Those of [`Map`].
    pub fn new(expr: Expr, inputs: &[&[usize]]) -> Result<Self, Error> {
        let shape = broadcast_shapes(inputs)?;
        let inputs = inputs.iter().map(|shape| MapInput::new(shape, DType::F32)).collect();
        let map = Self { shape, inputs, outputs: vec![MapOutput { expr, dtype: DType::F32 }] };
        map.validate()?;
        Ok(map)
    }

    /// One expression of inputs of `n` elements each, in f32.
    pub fn flat(n: usize, expr: Expr) -> Self {
        let inputs = (0..expr.n_inputs()).map(|_| MapInput::new(&[n], DType::F32)).collect();
        Self { shape: vec![n], inputs, outputs: vec![MapOutput { expr, dtype: DType::F32 }] }
    }

    /// A function of one input of `n` elements, in f32.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::Map;
    /// use brisk_kernels::expr::Expr;
    ///
    /// assert_eq!(Map::unary(64, |x| x.relu()), Map::flat(64, Expr::input(0).relu()));
    /// ```
    pub fn unary(n: usize, f: impl FnOnce(Expr) -> Expr) -> Self {
        Self::flat(n, f(Expr::input(0)))
    }

    /// A function of two inputs of `n` elements, in f32.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::Map;
    /// use brisk_kernels::expr::Expr;
    ///
    /// assert_eq!(Map::binary(64, |a, b| a + b), Map::flat(64, Expr::input(0) + Expr::input(1)));
    /// ```
    pub fn binary(n: usize, f: impl FnOnce(Expr, Expr) -> Expr) -> Self {
        Self::flat(n, f(Expr::input(0), Expr::input(1)))
    }

    /// Dropout of `n` elements, in f32: each is 0 with probability `p`, from 0 to 1, else divided by `1 - p`, which preserves the
    /// mean. The arguments are `x`, the state of the run, and the result. The gradient is the same kernel, applied to that of the
    /// result in the same step.
    ///
    /// # Reference
    /// Srivastava et al. 2014, *Dropout*; `torch.nn.functional.dropout`.
    pub fn dropout(n: usize, p: f32, draws: Draws) -> Self {
        let inputs = vec![MapInput::new(&[n], DType::F32), MapInput::uniform(&[n], draws)];
        let expr = Self::dropout_of(&Expr::input(0), &Expr::input(1), p);
        Self { shape: vec![n], inputs, outputs: vec![MapOutput { expr, dtype: DType::F32 }] }
    }

    /// Dropout of `x` by the random number `u`.
    pub(crate) fn dropout_of(x: &Expr, u: &Expr, p: f32) -> Expr {
        u.lt(p).select(0.0, x * Self::dropout_scale(p))
    }

    /// What dropout multiplies the values by that it keeps.
    pub(crate) const fn dropout_scale(p: f32) -> f32 {
        if p < 1.0 { 1.0 / (1.0 - p) } else { 0.0 }
    }

    /// Elements of an output.
    pub fn len(&self) -> usize {
        n_elements(&self.shape)
    }

    /// Whether there are no elements, which [`check`](crate::Kernel::check) refuses.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn layout(&self) -> Result<Layout, Error> {
        Layout::new(&self.shape, &self.inputs)
    }

    /// The same kernel with its arguments stored as `dtypes` says.
    pub(crate) fn in_types(&self, dtypes: &[DType]) -> Self {
        let mut map = self.clone();
        let inputs = map.inputs.iter_mut().map(|input| &mut input.dtype);
        inputs.chain(map.outputs.iter_mut().map(|output| &mut output.dtype)).zip(dtypes).for_each(|(own, dtype)| *own = *dtype);
        map
    }

    /// The same kernel over `n` elements, unless an input repeats or has strides.
    pub(crate) fn cut_to(&self, n: usize) -> Option<Self> {
        let layout = self.layout().ok()?;
        let mut map = self.clone();
        map.shape = vec![n];
        for (input, pattern) in map.inputs.iter_mut().zip(&layout.patterns) {
            *input = match pattern {
                // Numbers are drawn by the index, so all of them are needed.
                _ if input.draws.is_some() && n != self.len() => return None,
                _ if input.draws.is_some() => input.reshaped(&[n]),
                Pattern::One if input.len == 1 => MapInput::new(&[1], input.dtype),
                Pattern::All if input.len == self.len() => MapInput::new(&[n], input.dtype),
                _ => return None,
            };
        }
        Some(map)
    }

    /// Checks that values are floats, and that random numbers are as long as the outputs.
    fn check_dtypes(&self) -> Result<(), Error> {
        for (name, input) in INPUTS.iter().zip(&self.inputs) {
            let is_uniform = input.draws.is_none_or(|draws| *input == MapInput::uniform(&self.shape, draws));
            let found = || format!("random numbers `{name}` of shape {:?}, stored as {}", input.shape, input.dtype);
            check_supported("map", is_uniform, found, "`MapInput::uniform` of the shape of the outputs")?;
        }
        let inputs = INPUTS.iter().zip(&self.inputs).filter(|(_, input)| input.draws.is_none());
        let outputs = OUTPUTS.iter().zip(self.outputs.iter().map(|output| output.dtype));
        check_floats("map", inputs.map(|(name, input)| (name, input.dtype)).chain(outputs))
    }

    /// The arguments of the kernel: the inputs, then the outputs.
    pub(crate) fn arguments(&self) -> Vec<Arg> {
        let n = self.len();
        let inputs = INPUTS.iter().zip(&self.inputs).map(|(name, input)| Arg::read(name, input.dtype, input.len));
        inputs.chain(OUTPUTS.iter().zip(&self.outputs).map(|(name, output)| Arg::write(name, output.dtype, n))).collect()
    }

    /// Checks shapes, expressions and types: the [`check`](crate::Kernel::check) of the kernel.
    pub(crate) fn validate(&self) -> Result<(), Error> {
        let n_args = self.inputs.len() + self.outputs.len();
        let is_bindable = !self.outputs.is_empty() && n_args <= Self::MAX_ARGS;
        let found = || format!("a kernel with {n_args} arguments (outputs: {})", self.outputs.len());
        check_supported("map", is_bindable, found, "at least one output, and at most 8 arguments in all")?;
        self.check_dtypes()?;
        check_reads("map", self.outputs.iter().map(|output| &output.expr), self.inputs.len())?;
        check_indices("map", &self.arguments(), &[("number of elements", self.len())])?;
        self.layout()?.check("map")
    }
}

/// Checks that the expressions of a kernel read all of its inputs, and no others.
pub(crate) fn check_reads<'a>(
    kernel: &'static str,
    exprs: impl Iterator<Item = &'a Expr> + Clone,
    n_inputs: usize,
) -> Result<(), Error> {
    for expr in exprs.clone() {
        let found = || format!("the expression `{expr}` (number of inputs: {n_inputs})");
        check_supported(kernel, expr.n_inputs() <= n_inputs, found, "an expression of the given inputs")?;
    }
    (0..n_inputs).try_for_each(|i| {
        let found = || format!("input x{i}, which no expression reads");
        check_supported(kernel, exprs.clone().any(|expr| expr.reads(i)), found, "inputs that are read; leave it out")
    })
}

/// Checks the element types of a kernel's arguments.
pub(crate) fn check_floats<'a>(
    kernel: &'static str,
    mut args: impl Iterator<Item = (&'a &'static str, DType)>,
) -> Result<(), Error> {
    args.try_for_each(|(name, dtype)| {
        check_supported(kernel, dtype.is_float(), || format!("`{name}` stored as {dtype}"), "f32, f16 or bf16; cast it first")
    })
}
