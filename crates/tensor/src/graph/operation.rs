use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use brisk_kernels::expr::Expr;
use brisk_kernels::{Activation, DType, Kernel};
use brisk_program::{HostStep, Slice};

use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::node::{self, Node, Recorded};
use crate::graph::stored::promoted;
use crate::graph::tensor::{Tensor, dims};
use crate::graph::{Graph, Mode};
use crate::place;

/// An operation on tensors: what it computes, and how gradients pass through it.
///
/// [`Graph::apply`] records one. Every operation of this crate uses only this trait, so those in other crates can do the same. An
/// operation contains only its options, and derives its sizes from the shapes of its inputs. The trait is dyn-compatible.
///
/// # Examples
/// `y = x²`, from two existing kernels:
/// ```
/// use brisk_tensor::program::Device;
/// use brisk_tensor::program::kernels::Map;
/// use brisk_tensor::{Backward, DType, Error, Forward, Graph, Operation, Persistent, Signature, Tensor};
///
/// #[derive(Debug)]
/// struct Square;
///
/// impl Operation for Square {
///     fn signature(&self) -> Signature {
///         Signature::new("square", &["x"])
///     }
///
///     fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
///         Ok(inputs[0].shape().to_vec())
///     }
///
///     fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
///         let (x, y) = (forward.input(0), forward.output());
///         forward.push(Map::binary(x.len(), |a, b| a * b), &[x, x, y])
///     }
///
///     fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
///         // dx = dy x + dy x
///         let (x, dy) = (backward.input(0), backward.grad());
///         let kernel = Map::binary(x.len(), |a, b| a * b);
///         backward.give(0, kernel.clone(), &[dy, x])?;
///         backward.give(0, kernel, &[dy, x])
///     }
/// }
///
/// let (values, grads) = (Persistent::new("values", DType::F32, 2), Persistent::new("grads", DType::F32, 2));
/// let graph = Graph::training("squares");
/// let x = graph.parameter(&values, &grads, 0..2, &[2]);
/// let y = graph.apply(Square, &[&x]);
/// graph.backward(&y.sum(..))?;
/// let device = Device::cpu()?;
/// device.write(&values, &[3.0_f32, -0.5])?;
/// graph.compile(&device)?.run(1)?;
/// assert_eq!(device.read::<f32>(&grads)?, [6.0, -1.0]);
/// # Ok::<(), Error>(())
/// ```
pub trait Operation: fmt::Debug + 'static {
    /// Its name and inputs, and the dtypes that it computes in.
    fn signature(&self) -> Signature;

    /// The shape of the result.
    ///
    /// This is where an operation checks its inputs: shapes, dtypes and the sizes of its kernels ([`Kernel::check`]). If it
    /// returns an error, nothing has been recorded.
    ///
    /// # Errors
    /// Any error that says why these inputs are refused; usually [`Error::Shape`] or [`Error::Dtype`].
    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error>;

    /// The shape of the failed tensor that is returned if [`output_shape`](Self::output_shape) returns an error. The caller may
    /// still read the lengths of its dimensions, so it should have as many as the result. By default that of the first input.
    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        inputs.first().map_or(Vec::new(), |input| input.shape().to_vec())
    }

    /// The activation that this operation applies last, if its derivative can be computed from its output
    /// ([`Activation::from_output`]).
    ///
    /// [`backward`](Self::backward) then gets the gradient before the activation. If only one operation reads the
    /// result, the activation's derivative is fused into the kernel that computes that gradient.
    fn output_activation(&self) -> Option<Activation> {
        None
    }

    /// Records the kernels that compute the result.
    ///
    /// # Errors
    /// Those of [`Forward::push`].
    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error>;

    /// Records the kernels that compute the gradient of each input from that of the result.
    ///
    /// # Errors
    /// Those of [`Backward::push`] and [`Backward::give`]; [`Error::NotDifferentiable`] unless it is implemented.
    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let _ = backward;
        Err(Error::NotDifferentiable { op: self.signature().name })
    }
}

/// What a graph knows of an [`Operation`] besides its shapes and kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// The name used in errors, reports and [`Autocast::overrides`](crate::Autocast::overrides): lower case, with underscores.
    pub name: &'static str,
    /// The names of the inputs, for errors, in the order in which [`Graph::apply`] takes them; the last one also names any that
    /// follow.
    pub inputs: &'static [&'static str],
    /// What [`Graph::autocast`] does with the operation; [`AutocastRule::Promote`] by default.
    pub autocast: AutocastRule,
    /// How many of the inputs, counted from the first, are operands: inputs that autocast may cast and whose dtypes determine the
    /// dtype of the result. By default all inputs; a layer's bias and a loss's targets are not operands.
    pub n_operands: usize,
    /// The dtype of the result, unless it follows from the operands and from autocast, as it does by default.
    pub dtype: Option<DType>,
    /// Whether gradients pass through it, as they do by default. If not, [`Operation::backward`] is never called.
    pub is_differentiable: bool,
}

impl Signature {
    /// The signature of an operation whose inputs are all operands.
    pub const fn new(name: &'static str, inputs: &'static [&'static str]) -> Self {
        let (autocast, n_operands) = (AutocastRule::Promote, usize::MAX);
        Self { name, inputs, autocast, n_operands, dtype: None, is_differentiable: true }
    }

    /// The name of input `i`.
    pub(crate) fn input(&self, i: usize) -> &'static str {
        self.inputs.get(i).or(self.inputs.last()).copied().unwrap_or("input")
    }
}

/// An operation while its forward kernels are recorded: inputs after autocast, output, and what it keeps for the backward pass.
pub struct Forward<'a> {
    graph: &'a Graph,
    name: &'static str,
    inputs: &'a [Tensor],
    dtype: DType,
    shape: &'a [usize],
    output: Option<Slice>,
    saved: Vec<Slice>,
}

impl fmt::Debug for Forward<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forward").field("operation", &self.name).field("inputs", &self.inputs.len()).finish_non_exhaustive()
    }
}

impl Forward<'_> {
    /// The number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The buffer of input `i`, cast if autocast requires it.
    ///
    /// # Panics
    /// If there is no input `i`.
    pub fn input(&self, i: usize) -> Slice {
        self.inputs[i].slice()
    }

    /// The shape of input `i`.
    pub fn shape(&self, i: usize) -> &[usize] {
        self.inputs[i].shape()
    }

    /// The lengths of the `N` dimensions of input `i`.
    ///
    /// # Panics
    /// If it has another number of dimensions, which is for [`Operation::output_shape`] to check.
    pub fn dims<const N: usize>(&self, i: usize) -> [usize; N] {
        dims(self.shape(i))
    }

    /// The shape of the result.
    pub fn output_shape(&self) -> &[usize] {
        self.shape
    }

    /// The buffers of all inputs.
    pub fn inputs(&self) -> Vec<Slice> {
        self.inputs.iter().map(Tensor::slice).collect()
    }

    /// The buffer of the result, with as many elements as [`Operation::output_shape`] says.
    pub fn output(&mut self) -> Slice {
        self.output_with_scratch(0)
    }

    /// A buffer that starts with the result and has `n_scratch` more elements after it, in which a kernel of the forward pass
    /// stores values for one of the backward pass. Only the first call allocates.
    pub fn output_with_scratch(&mut self, n_scratch: usize) -> Slice {
        let Self { graph, name, dtype, shape, output, .. } = self;
        *output.get_or_insert_with(|| graph.transient(name, *dtype, shape.iter().product::<usize>() + n_scratch))
    }

    /// A buffer for intermediate values.
    pub fn transient(&self, name: &'static str, dtype: DType, len: usize) -> Slice {
        self.graph.transient(name, dtype, len)
    }

    /// Keeps a buffer for the backward pass, where [`Backward::saved`] returns it by the index of this call, from 0. Inputs and
    /// the output need not be saved.
    pub fn save(&mut self, slice: Slice) {
        self.saved.push(slice);
    }

    /// Records `kernel`, in the variant for the dtypes of these buffers.
    ///
    /// # Errors
    /// [`Error::Program`] if the buffers do not match the arguments of the kernel.
    pub fn push(&self, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
        self.graph.try_push(kernel, args)
    }

    /// Records a kernel whose arguments are all inputs, in order, and the result.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn compute(&mut self, kernel: impl Kernel) -> Result<(), Error> {
        let y = self.output();
        self.push(kernel, &[&self.inputs()[..], &[y]].concat())
    }

    /// Records a host step between kernels.
    ///
    /// # Errors
    /// [`Error::Program`] if the buffers do not match the arguments of the step.
    pub fn push_host(&self, step: Arc<dyn HostStep>, args: &[Slice]) -> Result<(), Error> {
        Ok(self.graph.with_program(|program| program.push_host(step, args))?)
    }
}

impl Graph {
    /// Records `operation` over `inputs`: casts them as [`autocast`](Self::autocast) requires, records the forward kernels and,
    /// if the graph keeps a tape and an input needs a gradient, keeps the operation for [`backward`](Self::backward).
    ///
    /// If the operation is refused, or an input is [failed](Tensor::is_failed), nothing is recorded and the result is failed too.
    ///
    /// # Errors
    /// [`Error::ForeignTensor`] if an input belongs to another graph; those of [`Operation::output_shape`] and
    /// [`Operation::forward`].
    #[track_caller]
    pub fn apply(&self, operation: impl Operation, inputs: &[&Tensor]) -> Tensor {
        self.apply_dyn(Rc::new(operation), inputs)
    }

    /// [`apply`](Self::apply) for an operation that is chosen at run time.
    #[track_caller]
    fn apply_dyn(&self, operation: Rc<dyn Operation>, inputs: &[&Tensor]) -> Tensor {
        let signature = operation.signature();
        let dtype = || signature.dtype.unwrap_or_else(|| promoted(inputs.iter().map(|input| input.dtype())));
        let mut all = inputs.iter().enumerate();
        let foreign = all.find_map(|(i, input)| self.check_own(signature.name, signature.input(i), input).err());
        if let Some(error) = foreign {
            return self.failed(error, dtype(), &operation.refused_shape(inputs));
        }
        let shape = operation.output_shape(inputs);
        if inputs.iter().any(|input| input.is_failed()) {
            return self.failed_tensor(dtype(), &shape.unwrap_or_else(|_| operation.refused_shape(inputs)));
        }
        match shape {
            Err(error) => self.failed(error, dtype(), &operation.refused_shape(inputs)),
            Ok(shape) => match self.try_apply(operation.clone(), inputs, &shape) {
                Err(error) => self.failed(error, dtype(), &shape),
                Ok(result) => result,
            },
        }
    }

    fn try_apply(&self, operation: Rc<dyn Operation>, inputs: &[&Tensor], shape: &[usize]) -> Result<Tensor, Error> {
        let Signature { name, autocast, n_operands, dtype, is_differentiable, .. } = operation.signature();
        if let Some(slope) = operation.output_activation().and_then(|activation| activation.from_output) {
            check_slope_from_output(name, &slope)?;
        }
        let mut inputs: Vec<Tensor> = inputs.iter().map(|&input| input.clone()).collect();
        let n_operands = n_operands.min(inputs.len());
        let promoted = self.cast_operands(name, autocast, &mut inputs[..n_operands])?;
        let dtype = dtype.unwrap_or(promoted);
        let n_kernels = self.inner().program.n_kernels();
        let mut forward = Forward { graph: self, name, inputs: &inputs, dtype, shape, output: None, saved: Vec::new() };
        operation.forward(&mut forward)?;
        let output = forward.output().slice(0..shape.iter().product());
        let saved = forward.saved;

        let input_shapes = inputs.iter().map(|input| input.shape().to_vec()).collect();
        let (versions, input_ids, scope, flops) = {
            let mut inner = self.inner_mut();
            for input in &inputs {
                let id = node::source(&inner.nodes, input.id());
                inner.nodes[id].n_uses += 1;
            }
            let is_wanted = inputs.iter().any(|input| inner.nodes[input.id()].wants_grad);
            let needs_grad = inner.mode == Mode::Training && is_differentiable && is_wanted;
            let read = inputs.iter().map(Tensor::slice).chain([output]).chain(saved.iter().copied()).filter(|_| needs_grad);
            let versions: Vec<_> = read.map(|slice| (slice, inner.program.n_writes(slice))).collect();
            let (scope, cost) = (place::path(&inner.scopes), inner.program.cost_since(n_kernels));
            (needs_grad.then_some(versions), inputs.iter().map(Tensor::id).collect(), scope, cost.flops)
        };
        let result = self.add_node(Node {
            op: Some(name),
            scope,
            flops,
            inputs: input_ids,
            n_operands,
            wants_grad: versions.is_some(),
            output_of: operation.output_activation(),
            recorded: versions.map(|versions| Recorded { operation, saved, versions, input_shapes }),
            ..Node::of(output, shape)
        });
        self.watch(&result)?;
        Ok(result)
    }
}

/// Checks a derivative from the output.
pub(crate) fn check_slope_from_output(op: &'static str, slope: &Expr) -> Result<(), Error> {
    if slope.n_inputs() <= 1 {
        return Ok(());
    }
    Err(Error::Refused {
        op,
        found: format!("the derivative `{slope}` from the output"),
        expected: "an expression of the output, x0",
    })
}

/// Checks a kernel's sizes before anything is recorded.
pub(crate) fn check_kernel(kernel: &impl Kernel) -> Result<(), Error> {
    Ok(kernel.check().map_err(brisk_program::Error::from)?)
}
