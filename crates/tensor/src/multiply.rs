use std::rc::Rc;

use brisk_kernels::Multiply;

use crate::{Error, Tensor};

impl Tensor {
    /// `self * b`, element by element.
    ///
    /// # Shapes
    /// Both and the result have one shape.
    /// # Dtypes
    /// That of both; f32 where they differ.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.mul`, without broadcasting.
    pub fn multiply(&self, b: &Self) -> Result<Self, Error> {
        const OP: &str = "multiply";
        let (graph, n) = (self.graph(), self.n_elements());
        self.check_same_shape(OP, b)?;
        let kernel = Multiply { n };
        let (dtype, [a, b]) = graph.operands(OP, &kernel, [self, b])?;
        let y = graph.transient(OP, dtype, n);
        graph.push(kernel, &[a.slice(), b.slice(), y])?;
        let sides = [(a.id(), b.slice()), (b.id(), a.slice())];
        let rule = move |backward: &mut crate::Backward<'_>, dy| {
            for (id, other) in sides {
                if backward.wants(id) {
                    backward.give(id, kernel, &[dy, other])?;
                }
            }
            Ok(())
        };
        graph.result(OP, &[&a, &b], y, self.shape(), None, Rc::new(rule))
    }
}
