use std::rc::Rc;

use brisk_kernels::{Cast, DType};

use crate::node::Node;
use crate::{Error, Graph, Tensor};

impl Tensor {
    /// The same values in another type, rounded to nearest, ties to even; what is too large becomes infinite. The gradient is cast back.
    ///
    /// # Dtypes
    /// From f32, f16 or bf16 to any of them, and from u8 and u32 to f32. A tensor of that type already is given back itself.
    /// # Errors
    /// [`Error::Program`] for other types.
    /// # Reference
    /// `torch.Tensor.to`.
    pub fn cast(&self, dtype: DType) -> Result<Self, Error> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        let (graph, n) = (self.graph(), self.n_elements());
        let y = graph.transient(OP, dtype, n);
        graph.push(Cast { n, from: self.dtype(), to: dtype }, &[self.slice(), y])?;
        let (x_id, back) = (self.id(), Cast { n, from: dtype, to: self.dtype() });
        let rule = move |backward: &mut crate::Backward<'_>, dy| backward.give(x_id, back, &[dy]);
        graph.result(OP, &[self], y, self.shape(), None, Rc::new(rule))
    }
}

/// A tensor that autocast rounded, and how many kernels there were before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounded {
    id: usize,
    at: usize,
}

const OP: &str = "cast";

impl Graph {
    /// `x` as an operation in `dtype` reads it. Of an f32 tensor there is one such copy, and gradients pass it by: see [`Node::rounded`].
    pub(crate) fn rounded(&self, x: &Tensor, dtype: DType) -> Result<Tensor, Error> {
        if x.dtype() == dtype || !x.dtype().is_float() {
            return Ok(x.clone());
        }
        if x.dtype() != DType::F32 {
            return x.cast(dtype);
        }
        if let Some(known) = self.known_copy(x, dtype) {
            return Ok(known);
        }
        let (n, at) = (x.n_elements(), self.with_program(|program| program.n_kernels()));
        let y = self.transient(OP, dtype, n);
        self.push(Cast { n, from: DType::F32, to: dtype }, &[x.slice(), y])?;
        let wants_grad = self.inner().nodes[x.id()].wants_grad;
        let node = Node { op: Some(OP), inputs: vec![x.id()], rounded: Some(x.id()), wants_grad, ..Node::of(y, x.shape()) };
        let copy = self.add_node(node);
        self.watch(&copy)?;
        self.inner_mut().rounded.insert((x.id(), dtype), Rounded { id: copy.id(), at });
        Ok(copy)
    }

    /// The copy of `x` that there is, unless a kernel has written to `x` since, as an optimizer does to a parameter.
    fn known_copy(&self, x: &Tensor, dtype: DType) -> Option<Tensor> {
        let inner = self.inner();
        let &Rounded { id, at } = inner.rounded.get(&(x.id(), dtype))?;
        let is_current = !inner.program.is_written_since(x.slice(), at);
        is_current.then(|| Tensor::new(self.clone(), id, inner.nodes[id].slice, x.shape().to_vec()))
    }
}
