//! The backward pass: the recorded operations in reverse order, each recording its gradient kernels into the same program.
//!
//! Rules run once, while recording. An activation whose derivative follows from its output is part of the product that computes
//! the gradient; the derivative of another reads the input of the activation and is fused by a rewrite. Gradients are written,
//! not added to, so no kernel sets them to zero.

use std::sync::Arc;

use brisk_kernels::expr::Expr;
use brisk_kernels::{Activation, DType, Epilogue, Kernel, Map, MapInPlace};
use brisk_program::{HostStep, Program, RecomputedSegment, Slice};

use crate::error::Error;
use crate::graph::Inner;
use crate::graph::anomaly::{Pass, Place, Watch};
use crate::graph::node::{Node, Recorded, source};
use crate::graph::stored::push;
use crate::graph::tensor::dims;

/// An operation while its backward pass is recorded: the gradient of its result, its buffers from the forward pass, and the
/// destinations of the gradients of its inputs.
///
/// A gradient has the dtype of the tensor it belongs to; that of a parameter has the dtype of the buffer it is written to. A cast
/// copy made by autocast has no separate gradient: one given to it is written for the original tensor, in its dtype.
pub struct Backward<'a> {
    program: &'a mut Program,
    nodes: &'a [Node],
    grads: Vec<Gradient>,
    segments: Vec<RecomputedSegment>,
    accumulates: bool,
    watch: Option<&'a mut Watch>,
    /// The tensor whose operation is being recorded.
    at: usize,
    /// The gradient of that tensor.
    grad: Slice,
}

impl std::fmt::Debug for Backward<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let operation = self.nodes[self.at].op;
        f.debug_struct("Backward").field("operation", &operation).field("program", &self.program).finish_non_exhaustive()
    }
}

/// The gradient that has reached a node so far.
#[derive(Debug, Clone, Copy, Default)]
struct Gradient {
    slice: Option<Slice>,
    /// Whether it is already the gradient before the activation that made the node.
    through_activation: bool,
}

pub(crate) fn record(inner: &mut Inner, y: usize, dy: Slice) -> Result<(), Error> {
    let Inner { program, nodes, segments, accumulates, watch, .. } = inner;
    let grads = vec![Gradient::default(); nodes.len()];
    let segments = segments.iter().map(|kernels| program.segment(kernels.clone())).collect();
    let (accumulates, watch) = (*accumulates, watch.as_mut());
    let mut backward = Backward { program, nodes, grads, segments, accumulates, watch, at: y, grad: dy };
    backward.pass_to(y, dy)?;
    for id in (0..=y).rev() {
        let Gradient { slice: Some(mut dy), through_activation } = backward.grads[id] else { continue };
        let node = &nodes[id];
        backward.at = id;
        if let Some(Recorded { operation, .. }) = &node.recorded {
            if let (Some(activation), false) = (&node.output_of, through_activation) {
                dy = backward.through(activation, dy, node.slice)?;
            }
            backward.grad = dy;
            operation.backward(&mut backward)?;
        } else if let Some(grad) = node.grad
            && dy != grad
        {
            // The gradient is in another buffer, because several operations contributed to it or because it is to be added.
            match accumulates {
                true => backward.push(MapInPlace { map: Map::binary(grad.len(), |x, sum| sum + x), input: 1 }, &[dy, grad])?,
                false => backward.push(Map::unary(grad.len(), |x| x), &[dy, grad])?,
            }
        }
    }
    let (reached, others): (Vec<usize>, Vec<usize>) =
        (0..nodes.len()).filter(|&id| nodes[id].grad.is_some()).partition(|&id| backward.grads[id].slice.is_some());
    // Their buffers may have the gradients of another graph.
    for grad in others.iter().filter_map(|&id| nodes[id].grad.filter(|grad| !accumulates && !grad.is_empty())) {
        backward.push(Map::flat(grad.len(), Expr::constant(0.0)), &[grad])?;
    }
    reached.into_iter().for_each(|id| inner.nodes[id].has_gradient = true);
    Ok(())
}

impl Backward<'_> {
    /// The gradient of the operation's result; with an [output activation](crate::Operation::output_activation), the gradient
    /// before it.
    pub fn grad(&self) -> Slice {
        self.grad
    }

    /// How many inputs the operation has.
    pub fn n_inputs(&self) -> usize {
        self.nodes[self.at].inputs.len()
    }

    /// The shape of input `i`.
    pub fn shape(&self, i: usize) -> &[usize] {
        &self.recorded().input_shapes[i]
    }

    /// The lengths of the `N` dimensions of input `i`.
    ///
    /// # Panics
    /// If it has another number of dimensions, which is for [`Operation::output_shape`](crate::Operation::output_shape) to check.
    pub fn dims<const N: usize>(&self, i: usize) -> [usize; N] {
        dims(self.shape(i))
    }

    /// The buffer of input `i`, as the forward pass read it.
    ///
    /// # Panics
    /// If there is no input `i`, as for all methods that take the index of an input.
    pub fn input(&self, i: usize) -> Slice {
        self.nodes[self.input_id(i)].slice
    }

    /// The shape of the result.
    pub fn output_shape(&self) -> &[usize] {
        &self.nodes[self.at].shape
    }

    /// The buffer of the result.
    pub fn output(&self) -> Slice {
        self.nodes[self.at].slice
    }

    /// The buffer that the forward pass [saved](crate::Forward::save) in its call `i`, from 0.
    ///
    /// # Panics
    /// If it did not save that many.
    pub fn saved(&self, i: usize) -> Slice {
        self.recorded().saved[i]
    }

    /// Whether a gradient must reach input `i`. If not, its gradient need not be computed.
    pub fn wants(&self, i: usize) -> bool {
        self.nodes[self.input_id(i)].wants_grad
    }

    /// Records `kernel` with the gradient of input `i` as its last argument, and adds it to what has reached the input before.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn give(&mut self, i: usize, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
        self.give_to(self.input_id(i), kernel, args)
    }

    /// The same for a product, which applies the derivative of an activation in its epilogue if the input is the output of one
    /// and only this operation reads it. `kernel` makes the kernel with a given epilogue.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn give_product<K: Kernel>(&mut self, i: usize, kernel: impl FnOnce(Epilogue) -> K, args: &[Slice]) -> Result<(), Error> {
        let id = source(self.nodes, self.input_id(i));
        let node = &self.nodes[id];
        let below = node.output_of.as_ref().filter(|activation| node.n_uses == 1 && !activation.is_identity());
        let Some(grad) = below.and_then(Activation::grad_from_output) else {
            return self.give_to(id, kernel(Epilogue::none()), args);
        };
        self.give_to(id, kernel(Epilogue::with_matrix(grad)), &[args, &[node.slice]].concat())?;
        self.grads[id].through_activation = true;
        Ok(())
    }

    /// The activation that input `i` is the output of, if only this operation reads it and the derivative follows from the
    /// output: [`give_through`](Self::give_through).
    pub fn activation_below(&self, i: usize) -> Option<&Activation> {
        let node = &self.nodes[source(self.nodes, self.input_id(i))];
        node.output_of
            .as_ref()
            .filter(|activation| node.n_uses == 1 && !activation.is_identity() && activation.from_output.is_some())
    }

    /// [`give`](Self::give) for a kernel that computes the gradient before the [activation below](Self::activation_below).
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn give_through(&mut self, i: usize, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
        let id = source(self.nodes, self.input_id(i));
        self.give_to(id, kernel, args)?;
        self.grads[id].through_activation = true;
        Ok(())
    }

    /// Gives input `i` a gradient that is already in a buffer: the gradient of a sum, for example, is also that of each summand.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn pass(&mut self, i: usize, grad: Slice) -> Result<(), Error> {
        self.pass_to(self.input_id(i), grad)
    }

    /// A buffer for values between two kernels.
    pub fn transient(&mut self, name: &'static str, dtype: DType, len: usize) -> Slice {
        self.program.transient(name, dtype, len)
    }

    /// Records a host step between kernels.
    ///
    /// # Errors
    /// [`Error::Program`] if the buffers do not match the arguments of the step.
    pub fn push_host(&mut self, step: Arc<dyn HostStep>, args: &[Slice]) -> Result<(), Error> {
        Ok(self.program.push_host(step, args)?)
    }

    /// Records a kernel, in the variant for the dtypes of these buffers. Buffers of a [checkpointed](crate::Graph::checkpoint)
    /// segment of the forward pass are recomputed before it.
    ///
    /// # Errors
    /// [`Error::Program`] if the buffers do not match the arguments of the kernel; [`Error::Overwritten`] if it reads a buffer of
    /// the operation that has been overwritten since.
    pub fn push(&mut self, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
        self.check_versions(&kernel, args)?;
        let Self { program, segments, .. } = self;
        let recomputed = |&arg: &Slice| segments.iter_mut().fold(arg, |arg, segment| program.recomputed(segment, arg));
        let args: Vec<Slice> = args.iter().map(recomputed).collect();
        push(program, kernel, &args)
    }

    /// Checks that what the kernel reads of the forward pass is as the operation left it.
    fn check_versions(&self, kernel: &impl Kernel, args: &[Slice]) -> Result<(), Error> {
        let Node { op: Some(op), recorded: Some(Recorded { operation, versions, input_shapes, .. }), .. } = &self.nodes[self.at]
        else {
            return Ok(());
        };
        let read: Vec<Slice> =
            kernel.args().iter().zip(args).filter(|(arg, _)| arg.access.reads()).map(|(_, slice)| *slice).collect();
        let is_read = |slice: Slice| read.iter().any(|other| slice.overlaps(*other));
        let overwritten = |(slice, n_writes): &(Slice, usize)| is_read(*slice) && self.program.n_writes(*slice) != *n_writes;
        let Some(index) = versions.iter().position(overwritten) else { return Ok(()) };
        let what = match index.checked_sub(input_shapes.len()) {
            None => format!("its input `{}`", operation.signature().input(index)),
            Some(0) => "its result".to_owned(),
            Some(_) => "a value that it saved".to_owned(),
        };
        Err(Error::Overwritten { op, what })
    }

    fn recorded(&self) -> &Recorded {
        self.nodes[self.at].recorded.as_ref().expect("a backward pass runs through operations on the tape only")
    }

    fn input_id(&self, i: usize) -> usize {
        self.nodes[self.at].inputs[i]
    }

    fn give_to(&mut self, id: usize, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
        let id = source(self.nodes, id);
        let node = &self.nodes[id];
        let straight = node.grad.filter(|_| node.n_uses == 1 && !self.accumulates);
        let target = straight.unwrap_or_else(|| self.program.transient("gradient", node.grad_dtype(), node.slice.len()));
        self.push(kernel, &[args, &[target]].concat())?;
        if let Some(watch) = &mut self.watch {
            watch.record(self.program, target, Place::new(self.nodes, self.at, Pass::Backward))?;
        }
        self.add(id, target)
    }

    fn pass_to(&mut self, id: usize, grad: Slice) -> Result<(), Error> {
        let id = source(self.nodes, id);
        if grad.dtype() == self.nodes[id].grad_dtype() {
            return self.add(id, grad);
        }
        self.give_to(id, Map::unary(grad.len(), |x| x), &[grad])
    }

    fn add(&mut self, id: usize, grad: Slice) -> Result<(), Error> {
        let sum = match self.grads[id].slice {
            None => grad,
            Some(before) => {
                let sum = self.program.transient("gradient", grad.dtype(), grad.len());
                self.push(Map::binary(grad.len(), |a, b| a + b), &[before, grad, sum])?;
                sum
            }
        };
        self.grads[id].slice = Some(sum);
        Ok(())
    }

    fn through(&mut self, activation: &Activation, dy: Slice, y: Slice) -> Result<Slice, Error> {
        if activation.is_identity() {
            return Ok(dy);
        }
        let dz = self.program.transient("gradient", dy.dtype(), dy.len());
        let grad =
            activation.grad_from_output().expect("operations name only activations whose derivative follows from the output");
        self.push(Map::flat(dy.len(), grad), &[dy, y, dz])?;
        Ok(dz)
    }
}
