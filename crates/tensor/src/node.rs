//! What a graph knows of each tensor.

use brisk_kernels::{Activation, DType};
use brisk_program::Slice;

use crate::backward::BackwardRule;

pub(crate) struct Node {
    pub(crate) slice: Slice,
    pub(crate) shape: Vec<usize>,
    /// The operation that made it; none made what is bound or wrapped.
    pub(crate) op: Option<&'static str>,
    /// What that operation read.
    pub(crate) inputs: Vec<usize>,
    /// What autocast made it of by rounding. Gradients pass such a copy by: rules give them to it, and what they give is written for the original,
    /// in its type. So products write the gradient of an f32 parameter in f32, with no cast behind them.
    pub(crate) rounded: Option<usize>,
    pub(crate) is_parameter: bool,
    /// Whether a gradient must reach it.
    pub(crate) wants_grad: bool,
    /// Where its gradient goes, for parameters.
    pub(crate) grad: Option<Slice>,
    /// How many recorded operations read it, or a rounded copy of it.
    pub(crate) n_uses: usize,
    /// The activation it is the output of, if its derivative follows from that output.
    pub(crate) output_of: Option<Activation>,
    pub(crate) rule: Option<BackwardRule>,
}

impl Node {
    /// Values that come from outside the graph.
    pub(crate) fn of(slice: Slice, shape: &[usize]) -> Self {
        Self {
            slice,
            shape: shape.to_vec(),
            op: None,
            inputs: Vec::new(),
            rounded: None,
            is_parameter: false,
            wants_grad: false,
            grad: None,
            n_uses: 0,
            output_of: None,
            rule: None,
        }
    }

    /// The type of its gradient.
    pub(crate) fn grad_dtype(&self) -> DType {
        self.grad.unwrap_or(self.slice).dtype()
    }
}

/// What tensor `id` is a rounded copy of, else itself.
pub(crate) fn source(nodes: &[Node], id: usize) -> usize {
    nodes[id].rounded.unwrap_or(id)
}
