//! Elementwise operations with broadcasting, as expressions.

use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Error as KernelError, Kernel as _, Map, MapInput, MapOutput, MapReduce, Reducer, broadcast_shapes};

use crate::dims::Reduced;
use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel, check_slope_from_output};
use crate::graph::tensor::Tensor;
use crate::reduce::{broadcast, reduction};

/// An elementwise operation: `expr` of its inputs, which broadcast by NumPy's rules.
///
/// Its gradient is the symbolic derivative of the expression. [`Tensor::map`] and [`Tensor::map2`] make one from a closure; this
/// type is for more inputs, a custom name, and a derivative in terms of the output.
///
/// # Examples
/// ```
/// use brisk_tensor::{ElementwiseOperation, Expr, Graph};
///
/// // A gated unit: x0 · sigmoid(x1), with a scale for each column.
/// let [x, gate, scale] = [0, 1, 2].map(Expr::input);
/// let gated = ElementwiseOperation::new("gated", x * gate.sigmoid() * scale);
/// let graph = Graph::inference("gates");
/// let x = graph.constant("x", &[1.0; 12], &[3, 4]);
/// let scale = graph.constant("scale", &[0.5; 4], &[4]);
/// assert_eq!(graph.apply(gated, &[&x, &x, &scale]).shape(), [3, 4]);
/// # Ok::<(), brisk_tensor::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ElementwiseOperation {
    pub(crate) name: &'static str,
    expr: Expr,
    from_output: Option<Expr>,
    /// Given derivatives, with the index of their input.
    derivatives: Vec<(usize, Expr)>,
    autocast_rule: AutocastRule,
    is_differentiable: bool,
}

impl ElementwiseOperation {
    /// An operation that computes `expr`, whose input `i` is tensor `i` of those that it is applied to.
    ///
    /// # Errors
    /// Applying the operation returns [`Error::Refused`] if `expr` reads a missing input, or more than 7 inputs.
    pub const fn new(name: &'static str, expr: Expr) -> Self {
        Self {
            name,
            expr,
            from_output: None,
            derivatives: Vec::new(),
            autocast_rule: AutocastRule::Promote,
            is_differentiable: true,
        }
    }

    /// Sets the derivative of a function of one input as an expression of the *output*, as input 0. The input then need not be
    /// kept for the backward pass.
    ///
    /// # Errors
    /// Applying the operation returns [`Error::Refused`] if it has several inputs, or also a derivative from
    /// [`with_derivative`](Self::with_derivative).
    pub fn with_derivative_from_output(mut self, derivative: Expr) -> Self {
        self.from_output = Some(derivative);
        self
    }

    /// Sets the derivative with respect to input `input` to `derivative`, an expression of the inputs, in place of the symbolic
    /// one, which may divide zero by zero or be less accurate. The last one for an input counts.
    ///
    /// # Errors
    /// Applying the operation returns [`Error::Refused`] if there is no such input, or the derivative reads a missing one.
    pub fn with_derivative(mut self, input: usize, derivative: Expr) -> Self {
        self.derivatives.retain(|(known, _)| *known != input);
        self.derivatives.push((input, derivative));
        self
    }

    /// No gradient passes through it. A derivative of 0 would make NaN of an infinite derivative of what it is applied to.
    pub const fn without_derivative(mut self) -> Self {
        self.is_differentiable = false;
        self
    }

    /// The derivative with respect to input `i`, as an expression of the inputs.
    fn derivative(&self, i: usize) -> Expr {
        let given = self.derivatives.iter().find(|(input, _)| *input == i);
        given.map_or_else(|| self.expr.derivative(i), |(_, derivative)| derivative.clone())
    }

    /// Checks the derivatives that were given.
    fn check_derivatives(&self, n_inputs: usize) -> Result<(), Error> {
        let refused = |found, expected| Err(Error::Refused { op: self.name, found, expected });
        if let Some(slope) = &self.from_output {
            check_slope_from_output(self.name, slope)?;
            if n_inputs != 1 {
                let found = format!("the derivative `{slope}` from the output, and {n_inputs} inputs");
                return refused(found, "one input, or the derivative for each by `with_derivative`");
            }
            if let Some((_, other)) = self.derivatives.first() {
                return refused(format!("the derivatives `{slope}` from the output and `{other}` from the input"), "one of them");
            }
        }
        if let Some((input, slope)) = self.derivatives.iter().find(|(input, _)| *input >= n_inputs) {
            return refused(format!("the derivative `{slope}` for input {input} (number of inputs: {n_inputs})"), "an input");
        }
        match self.derivatives.iter().find(|(_, slope)| slope.n_inputs() > n_inputs) {
            Some((_, slope)) => {
                refused(format!("the derivative `{slope}` (number of inputs: {n_inputs})"), "an expression of the inputs")
            }
            None => Ok(()),
        }
    }

    /// Checks a kernel of the operation, in whose name it is refused.
    fn check_map(&self, kernel: &Map) -> Result<(), Error> {
        kernel.check().map_err(|error| match error {
            KernelError::Unsupported { found, expected, .. } => Error::Refused { op: self.name, found, expected },
            error => brisk_program::Error::from(error).into(),
        })
    }

    /// Sets the rule for autocast, which is [`AutocastRule::Promote`] by default.
    pub const fn with_autocast_rule(mut self, rule: AutocastRule) -> Self {
        self.autocast_rule = rule;
        self
    }

    /// The kernel for the inputs that the expression reads, and the indices of those inputs.
    fn kernel(&self, shape: &[usize], inputs: &[&[usize]]) -> (Map, Vec<usize>) {
        of_read_inputs(&self.expr, shape, inputs)
    }
}

/// The kernel that computes `expr`, and the indices of the inputs that it reads.
fn of_read_inputs(expr: &Expr, shape: &[usize], inputs: &[&[usize]]) -> (Map, Vec<usize>) {
    let read: Vec<usize> = (0..inputs.len()).filter(|&i| expr.reads(i)).collect();
    let renumbered = |i: usize| read.iter().position(|&read| read == i).unwrap_or(0);
    let expr = expr.substitute(&(0..inputs.len()).map(|i| Expr::input(renumbered(i))).collect::<Vec<_>>());
    let inputs = read.iter().map(|&i| MapInput::new(inputs[i], DType::F32)).collect();
    (Map { shape: shape.to_vec(), inputs, outputs: vec![MapOutput { expr, dtype: DType::F32 }] }, read)
}

impl Operation for ElementwiseOperation {
    fn signature(&self) -> Signature {
        Signature {
            autocast: self.autocast_rule,
            is_differentiable: self.is_differentiable,
            ..Signature::new(self.name, &["a", "b", "c", "d", "e", "f", "g"])
        }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let signature = self.signature();
        for (i, input) in inputs.iter().enumerate() {
            if !input.dtype().is_float() {
                let (arg, expected) = (signature.input(i), "f32, f16 or bf16; cast it first");
                return Err(Error::Dtype { op: self.name, arg, expected, found: input.dtype() });
            }
        }
        if self.expr.n_inputs() > inputs.len() {
            let found = format!("the expression `{}` (number of inputs: {})", self.expr, inputs.len());
            return Err(Error::Refused { op: self.name, found, expected: "a tensor for each input that it reads" });
        }
        self.check_derivatives(inputs.len())?;
        let shapes: Vec<&[usize]> = inputs.iter().map(|input| input.shape()).collect();
        let mut shape = inputs.first().map_or(Vec::new(), |input| input.shape().to_vec());
        for (i, other) in shapes.iter().enumerate().skip(1) {
            shape = broadcast_shapes(&[&shape, other]).map_err(|_| Error::Shape {
                op: self.name,
                arg: signature.input(i),
                expected: format!(
                    "a shape that broadcasts with {shape:?}: from the last dimension on, lengths that are equal or 1"
                ),
                found: other.to_vec(),
            })?;
        }
        self.check_map(&self.kernel(&shape, &shapes).0)?;
        Ok(shape)
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let y = forward.output();
        let shapes: Vec<&[usize]> = (0..forward.n_inputs()).map(|i| forward.shape(i)).collect();
        let (kernel, read) = self.kernel(forward.output_shape(), &shapes);
        let args: Vec<_> = read.into_iter().map(|i| forward.input(i)).chain([y]).collect();
        forward.push(kernel, &args)
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let shape = backward.output_shape().to_vec();
        let shapes: Vec<Vec<usize>> = (0..backward.n_inputs()).map(|i| backward.shape(i).to_vec()).collect();
        for i in 0..backward.n_inputs() {
            if backward.wants(i) {
                self.give(i, &shape, &shapes, backward)?;
            }
        }
        Ok(())
    }
}

impl ElementwiseOperation {
    /// Records the gradient of input `i`.
    fn give(&self, i: usize, shape: &[usize], shapes: &[Vec<usize>], backward: &mut Backward<'_>) -> Result<(), Error> {
        let n_inputs = shapes.len();
        let (dy, dy_number) = (Expr::input(n_inputs), n_inputs);
        // The inputs are followed by the gradient and the output.
        let slope = match &self.from_output {
            Some(slope) => slope.substitute(&[Expr::input(n_inputs + 1)]),
            None => self.derivative(i),
        };
        let is_broadcast = shapes[i] != shape;
        if slope.as_constant() == Some(1.0) && !is_broadcast {
            return backward.pass(i, backward.grad());
        }
        let grad = slope.times_gradient(&dy);
        let all: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).chain([shape, shape]).collect();
        let (kernel, read) = of_read_inputs(&grad, shape, &all);
        self.check_map(&kernel)?;
        let args: Vec<_> = read
            .into_iter()
            .map(|number| match number {
                _ if number < n_inputs => backward.input(number),
                _ if number == dy_number => backward.grad(),
                _ => backward.output(),
            })
            .collect();
        if !is_broadcast {
            return backward.give(i, kernel, &args);
        }
        // The sum over the elements to which this one was repeated.
        let dims = Reduced::of_broadcast(&shapes[i], shape).numbers();
        let [MapOutput { expr, .. }] = &kernel.outputs[..] else { unreachable!("a gradient is one output") };
        if kernel.inputs.len() <= MapReduce::MAX_INPUTS {
            let sum = MapReduce {
                inputs: kernel.inputs.clone(),
                exprs: vec![expr.clone()],
                ..MapReduce::of(Reducer::Sum, shape, &dims)
            };
            return backward.give(i, sum, &args);
        }
        let whole = backward.transient("gradient", DType::F32, kernel.len());
        backward.push(kernel, &[&args[..], &[whole]].concat())?;
        backward.give(i, reduction(Reducer::Sum, Expr::input(0), shape, &[shape], dims), &[whole])
    }
}

impl Tensor {
    /// An elementwise function of this tensor, whose gradient is its symbolic derivative.
    ///
    /// # Errors
    /// [`Error::Dtype`] unless the tensor is f32, f16 or bf16; [`Error::Refused`] if the expression reads another input.
    /// # Examples
    /// ```
    /// use brisk_tensor::Graph;
    ///
    /// let graph = Graph::inference("softcap");
    /// let logits = graph.constant("logits", &[100.0; 8], &[2, 4]);
    /// let capped = logits.map(|x| (x / 30.0).tanh() * 30.0);
    /// assert_eq!(capped.shape(), [2, 4]);
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn map(&self, f: impl FnOnce(Expr) -> Expr) -> Self {
        self.graph().apply(ElementwiseOperation::new("map", f(Expr::input(0))), &[self])
    }

    /// An elementwise function of this tensor and another, which broadcast by NumPy's rules.
    ///
    /// # Errors
    /// As [`map`](Self::map); [`Error::Shape`] if the shapes do not broadcast; [`Error::ForeignTensor`].
    #[track_caller]
    pub fn map2(&self, b: &Self, f: impl FnOnce(Expr, Expr) -> Expr) -> Self {
        self.graph().apply(ElementwiseOperation::new("map", f(Expr::input(0), Expr::input(1))), &[self, b])
    }

    /// The tensor repeated along dimensions of length 1 and along new leading ones.
    ///
    /// # Errors
    /// [`Error::Shape`] if it does not broadcast to `shape`.
    /// # Reference
    /// `torch.Tensor.expand`, which copies nothing; here the elements are copied, unless what reads them broadcasts by itself.
    #[track_caller]
    pub fn expand(&self, shape: &[usize]) -> Self {
        self.graph().apply(Expand { shape: shape.to_vec() }, &[self])
    }
}

#[derive(Debug)]
struct Expand {
    shape: Vec<usize>,
}

impl Operation for Expand {
    fn signature(&self) -> Signature {
        Signature::new("expand", &["x"])
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let found = inputs[0].shape();
        let is_wider = broadcast_shapes(&[found, &self.shape]).is_ok_and(|shape| shape == self.shape);
        if !is_wider {
            let expected = format!("one that broadcasts to {:?}", self.shape);
            return Err(Error::Shape { op: "expand", arg: "x", expected, found: found.to_vec() });
        }
        check_kernel(&broadcast(Expr::input(0), &self.shape, &[found]))?;
        Ok(self.shape.clone())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(broadcast(Expr::input(0), &self.shape, &[forward.shape(0)]))
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let x = backward.shape(0).to_vec();
        if x == self.shape {
            return backward.pass(0, backward.grad());
        }
        ElementwiseOperation::new("expand", Expr::input(0)).give(0, &self.shape, &[x], backward)
    }
}

/// Elementwise operations with their own names.
#[track_caller]
pub(crate) fn unary(x: &Tensor, name: &'static str, f: impl FnOnce(Expr) -> Expr) -> Tensor {
    x.graph().apply(ElementwiseOperation::new(name, f(Expr::input(0))), &[x])
}

/// The same for two inputs.
#[track_caller]
pub(crate) fn binary(a: &Tensor, b: &Tensor, name: &'static str, f: impl FnOnce(Expr, Expr) -> Expr) -> Tensor {
    a.graph().apply(ElementwiseOperation::new(name, f(Expr::input(0), Expr::input(1))), &[a, b])
}
