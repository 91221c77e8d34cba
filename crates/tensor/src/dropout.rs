use std::rc::Rc;

use brisk_kernels::{Dropout, Kernel};
use brisk_program::Persistent;

use crate::{Error, Mode, Tensor};

impl Tensor {
    /// Each element is 0 with probability `p`, else divided by `1 - p`. A graph for inference leaves them as they are.
    ///
    /// The draw depends on `seed`, the place of this operation in the graph, the number of steps in `state` and the element, so a run
    /// repeats, and each step draws anew where the graph ends with [`Graph::advance`](crate::Graph::advance).
    ///
    /// # Errors
    /// [`Error::Program`] if `p` is not within 0 to 1, or `state` is not [`Graph::state_buffer`](crate::Graph::state_buffer)'s.
    /// # Reference
    /// `torch.nn.functional.dropout`.
    pub fn dropout(&self, p: f32, seed: u64, state: &Persistent) -> Result<Self, Error> {
        const OP: &str = "dropout";
        let (n, graph) = (self.n_elements(), self.graph());
        let kernel = Dropout { n, p, seed, stream: graph.n_uncast() as u32 };
        if graph.mode() == Mode::Inference {
            kernel.check().map_err(brisk_program::Error::from)?;
            return Ok(self.clone());
        }
        let (dtype, [x]) = graph.operands(OP, &kernel, [self])?;
        let y = graph.transient(OP, dtype, n);
        let state = graph.with_program(|program| program.persistent(state));
        graph.push(kernel, &[x.slice(), state, y])?;
        let x_id = x.id();
        let rule = move |backward: &mut crate::Backward<'_>, dy| backward.give(x_id, kernel, &[dy, state]);
        graph.result(OP, &[&x], y, self.shape(), None, Rc::new(rule))
    }
}
