use std::rc::Rc;

use brisk_kernels::Add;

use crate::{Error, Tensor};

impl Tensor {
    /// `self + b`, element by element: a skip connection.
    ///
    /// # Shapes
    /// Both and the result have one shape.
    /// # Dtypes
    /// That of both; f32 where they differ.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.add`, without broadcasting.
    pub fn add(&self, b: &Self) -> Result<Self, Error> {
        const OP: &str = "add";
        let (graph, n) = (self.graph(), self.n_elements());
        self.check_same_shape(OP, b)?;
        let kernel = Add { n };
        let (dtype, [a, b]) = graph.operands(OP, &kernel, [self, b])?;
        let y = graph.transient(OP, dtype, n);
        graph.push(kernel, &[a.slice(), b.slice(), y])?;
        let ids = [a.id(), b.id()];
        let rule = move |backward: &mut crate::Backward<'_>, dy| {
            for id in ids {
                if backward.wants(id) {
                    backward.pass(id, dy)?;
                }
            }
            Ok(())
        };
        graph.result(OP, &[&a, &b], y, self.shape(), None, Rc::new(rule))
    }
}
