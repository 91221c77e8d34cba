use brisk_kernels::{Cast, DType};

use crate::error::Error;
use crate::graph::Graph;
use crate::graph::backward::Backward;
use crate::graph::node::{Node, Rounded};
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// The same values in another dtype. To a float they are rounded to nearest, ties to even; values that are too large become
    /// infinite. To an integer they are truncated towards 0; values out of range become the nearest integer, and NaN becomes 0.
    /// The gradient is cast back; none passes through integers.
    ///
    /// # Dtypes
    /// From f32, f16 or bf16 to any dtype, and from u8 and u32 to f32, which represents integers up to 2²⁴ exactly. A tensor that
    /// has the dtype already is returned as it is.
    /// # Errors
    /// [`Error::Program`] for other dtypes.
    /// # Examples
    /// ```
    /// use brisk_tensor::{DType, Graph};
    ///
    /// let graph = Graph::inference("buckets");
    /// let ages = graph.constant("ages", &[31.5, 7.0], &[2]);
    /// let decades = (ages / 10.0).cast(DType::U32); // [3, 0], for an embedding
    /// assert_eq!(decades.dtype(), DType::U32);
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    /// # Reference
    /// `torch.Tensor.to`, which does not specify integers out of range.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Self {
        if self.dtype() == dtype {
            return self.clone();
        }
        self.graph().apply(CastTo(Cast { n: self.n_elements(), from: self.dtype(), to: dtype }), &[self])
    }
}

#[derive(Debug)]
struct CastTo(Cast);

impl Operation for CastTo {
    fn signature(&self) -> Signature {
        Signature { dtype: Some(self.0.to), is_differentiable: self.0.to.is_float(), ..Signature::new(OP, &["input"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        check_kernel(&self.0)?;
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(self.0)
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (dy, Cast { n, from, to }) = (backward.grad(), self.0);
        backward.give(0, Cast { n, from: to, to: from }, &[dy])
    }
}

const OP: &str = "cast";

impl Graph {
    /// `x` in the dtype in which an operation reads it. There is at most one such copy of an f32 tensor, and it has no separate
    /// gradient: see [`Node::rounded`].
    #[track_caller]
    pub(crate) fn rounded(&self, x: &Tensor, dtype: DType) -> Result<Tensor, Error> {
        if x.dtype() == dtype || !x.dtype().is_float() {
            return Ok(x.clone());
        }
        if x.dtype() != DType::F32 {
            return Ok(x.cast(dtype));
        }
        if let Some(known) = self.known_copy(x, dtype) {
            return Ok(known);
        }
        let (n, n_writes) = (x.n_elements(), self.with_program(|program| program.n_writes(x.slice())));
        let y = self.transient(OP, dtype, n);
        self.try_push(Cast { n, from: DType::F32, to: dtype }, &[x.slice(), y])?;
        let wants_grad = self.inner().nodes[x.id()].wants_grad;
        let node = Node {
            op: Some(OP),
            inputs: vec![x.id()],
            n_operands: 1,
            rounded: Some(x.id()),
            wants_grad,
            ..Node::of(y, x.shape())
        };
        let copy = self.add_node(node);
        self.watch(&copy)?;
        self.inner_mut().rounded.insert((x.id(), dtype), Rounded { id: copy.id(), n_writes });
        Ok(copy)
    }

    /// The existing copy of `x`, unless a kernel has written to `x` since, as an optimizer does to a parameter.
    fn known_copy(&self, x: &Tensor, dtype: DType) -> Option<Tensor> {
        let inner = self.inner();
        let &Rounded { id, n_writes } = inner.rounded.get(&(x.id(), dtype))?;
        let is_current = inner.program.n_writes(x.slice()) == n_writes;
        is_current.then(|| Tensor::new(self.clone(), id, inner.nodes[id].slice, x.shape().to_vec()))
    }
}
