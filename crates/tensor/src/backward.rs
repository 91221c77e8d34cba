//! The backward pass: rules of the recorded operations, run in reverse, each recording kernels into the same program.

use std::rc::Rc;
use std::sync::Arc;

use brisk_kernels::{Activate, Activation, Add, AddTo, DType, Kernel, OutputGrad};
use brisk_program::{HostStep, Program, Segment, Slice};

use crate::anomaly::{Place, Watch};
use crate::graph::Inner;
use crate::node::{Node, source};
use crate::stored::push;
use crate::{Error, Pass};

/// What an operation does when the gradient of its result is known.
pub(crate) type BackwardRule = Rc<dyn Fn(&mut Backward<'_>, Slice) -> Result<(), Error>>;

/// The backward pass while it is being recorded.
///
/// A gradient has the type of what it is the gradient of; that of a parameter has the type of where it goes. A tensor that autocast has
/// rounded has no gradient of its own: what reaches it is written for the tensor it was made of, in that one's type.
pub struct Backward<'a> {
    program: &'a mut Program,
    nodes: &'a [Node],
    grads: Vec<Gradient>,
    segments: Vec<Segment>,
    accumulates: bool,
    watch: Option<&'a mut Watch>,
    /// The tensor whose rule is being recorded.
    at: usize,
}

impl std::fmt::Debug for Backward<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backward").field("program", &self.program).finish_non_exhaustive()
    }
}

/// What has reached a node so far.
#[derive(Debug, Clone, Copy, Default)]
struct Gradient {
    slice: Option<Slice>,
    /// Whether it is already the gradient in front of the activation that made the node.
    through_activation: bool,
}

pub(crate) fn record(inner: &mut Inner, y: usize, dy: Slice) -> Result<(), Error> {
    let Inner { program, nodes, segments, accumulates, watch, .. } = inner;
    let grads = vec![Gradient::default(); nodes.len()];
    let segments = segments.iter().map(|kernels| program.segment(kernels.clone())).collect();
    let (accumulates, watch) = (*accumulates, watch.as_mut());
    let mut backward = Backward { program, nodes, grads, segments, accumulates, watch, at: y };
    backward.pass(y, dy)?;
    for id in (0..=y).rev() {
        let Gradient { slice: Some(mut dy), through_activation } = backward.grads[id] else { continue };
        let node = &nodes[id];
        backward.at = id;
        if let Some(rule) = &node.rule {
            if let (Some(activation), false) = (node.output_of, through_activation) {
                dy = backward.through(activation, dy, node.slice)?;
            }
            rule(&mut backward, dy)?;
        } else if let Some(grad) = node.grad
            && dy != grad
        {
            // The gradient ended up elsewhere, since several operations gave to it, or it is to be added.
            match accumulates {
                true => backward.push(AddTo { n: grad.len() }, &[dy, grad])?,
                false => backward.push(Activate { n: grad.len(), activation: Activation::Identity }, &[dy, grad])?,
            }
        }
    }
    Ok(())
}

impl Backward<'_> {
    /// Whether a gradient must reach tensor `id`; the rest need not be computed.
    pub(crate) fn wants(&self, id: usize) -> bool {
        self.nodes[id].wants_grad
    }

    /// The activation to go through together with the gradient of tensor `id`, and its output, if this is the only gradient that the tensor
    /// gets: the derivative is then part of the kernel that makes the gradient.
    pub(crate) fn fusible(&self, id: usize) -> Option<(Activation, Slice)> {
        let node = &self.nodes[source(self.nodes, id)];
        node.output_of.filter(|_| node.n_uses == 1).map(|activation| (activation, node.slice))
    }

    /// Says that what was given to tensor `id` has gone through its activation.
    pub(crate) fn went_through_activation(&mut self, id: usize) {
        self.grads[source(self.nodes, id)].through_activation = true;
    }

    /// Records `kernel` with the gradient of tensor `id` as its last argument, and adds that to what has reached `id` before.
    pub(crate) fn give(&mut self, id: usize, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
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

    /// The same where the gradient is one that is there already, as that of a sum is for each of what is added.
    pub(crate) fn pass(&mut self, id: usize, grad: Slice) -> Result<(), Error> {
        let id = source(self.nodes, id);
        if grad.dtype() == self.nodes[id].grad_dtype() {
            return self.add(id, grad);
        }
        self.give(id, Activate { n: grad.len(), activation: Activation::Identity }, &[grad])
    }

    fn add(&mut self, id: usize, grad: Slice) -> Result<(), Error> {
        let sum = match self.grads[id].slice {
            None => grad,
            Some(before) => {
                let sum = self.program.transient("gradient", grad.dtype(), grad.len());
                self.push(Add { n: grad.len() }, &[before, grad, sum])?;
                sum
            }
        };
        self.grads[id].slice = Some(sum);
        Ok(())
    }

    fn through(&mut self, activation: Activation, dy: Slice, y: Slice) -> Result<Slice, Error> {
        if activation == Activation::Identity {
            return Ok(dy);
        }
        let dz = self.program.transient("gradient", dy.dtype(), dy.len());
        self.push(OutputGrad { n: dy.len(), activation }, &[dy, y, dz])?;
        Ok(dz)
    }

    /// A buffer for what lies between two kernels of a rule.
    pub(crate) fn transient(&mut self, name: &'static str, dtype: DType, len: usize) -> Slice {
        self.program.transient(name, dtype, len)
    }

    /// Records work of the host, over what lies between two kernels of a rule.
    pub(crate) fn push_host(&mut self, host: Arc<dyn HostStep>, args: &[Slice]) -> Result<(), Error> {
        Ok(self.program.push_host(host, args)?)
    }

    /// Records a kernel. What it reads of a segment that keeps nothing is computed again before.
    pub(crate) fn push(&mut self, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
        let Self { program, segments, .. } = self;
        let again = |&arg: &Slice| segments.iter_mut().fold(arg, |arg, segment| program.recomputed(segment, arg));
        let args: Vec<Slice> = args.iter().map(again).collect();
        push(program, kernel, &args)
    }
}
