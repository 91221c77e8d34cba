//! The data that a graph keeps about each tensor.

use std::rc::Rc;

use brisk_kernels::{Activation, DType};
use brisk_program::Slice;

use crate::graph::operation::Operation;

pub(crate) struct Node {
    pub(crate) slice: Slice,
    pub(crate) shape: Vec<usize>,
    /// The name of the operation that made it; `None` for tensors that are bound or wrapped.
    pub(crate) op: Option<&'static str>,
    /// The scope in which that operation was recorded, and its floating-point operations.
    pub(crate) scope: String,
    pub(crate) flops: u64,
    /// The tensors that the operation read.
    pub(crate) inputs: Vec<usize>,
    /// How many of the inputs, from the first, are [operands](crate::Signature::n_operands).
    pub(crate) n_operands: usize,
    /// The tensor of which this one is a cast copy made by autocast. A copy has no separate gradient: one given to it is written
    /// for the original, in its dtype. So products write the gradient of an f32 parameter in f32, without a cast after them.
    pub(crate) rounded: Option<usize>,
    pub(crate) is_parameter: bool,
    /// Whether the operation that made it was refused, or one that it depends on.
    pub(crate) is_failed: bool,
    /// Whether a gradient must reach it.
    pub(crate) wants_grad: bool,
    /// Where its gradient is written, for parameters.
    pub(crate) grad: Option<Slice>,
    /// Whether a backward pass has reached it, for parameters.
    pub(crate) has_gradient: bool,
    /// How many recorded operations read it, or a cast copy of it.
    pub(crate) n_uses: usize,
    /// The activation that it is the output of, if its derivative can be computed from that output.
    pub(crate) output_of: Option<Activation>,
    /// The operation, if a gradient may have to pass through it.
    pub(crate) recorded: Option<Recorded>,
}

/// An operation on the tape.
pub(crate) struct Recorded {
    pub(crate) operation: Rc<dyn Operation>,
    /// The buffers that its forward pass keeps for its backward pass.
    pub(crate) saved: Vec<Slice>,
    /// The buffers of its inputs, its result and what it saved, with the number of kernels that had written to each.
    pub(crate) versions: Vec<(Slice, usize)>,
    /// The shapes of its inputs, which differ from those of their nodes where a tensor was reshaped.
    pub(crate) input_shapes: Vec<Vec<usize>>,
}

/// A tensor that autocast has cast, and how often the original had been written before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounded {
    pub(crate) id: usize,
    pub(crate) n_writes: usize,
}

impl Node {
    /// Values from outside the graph.
    pub(crate) fn of(slice: Slice, shape: &[usize]) -> Self {
        Self {
            slice,
            shape: shape.to_vec(),
            op: None,
            scope: String::new(),
            flops: 0,
            inputs: Vec::new(),
            n_operands: 0,
            rounded: None,
            is_parameter: false,
            is_failed: false,
            wants_grad: false,
            grad: None,
            has_gradient: false,
            n_uses: 0,
            output_of: None,
            recorded: None,
        }
    }

    /// The type of its gradient.
    pub(crate) fn grad_dtype(&self) -> DType {
        self.grad.unwrap_or(self.slice).dtype()
    }
}

/// The tensor of which `id` is a cast copy, else `id` itself.
pub(crate) fn source(nodes: &[Node], id: usize) -> usize {
    nodes[id].rounded.unwrap_or(id)
}
