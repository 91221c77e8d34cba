use std::rc::Rc;

use brisk_kernels::Multiply;

use crate::{Error, Tensor};

impl Tensor {
    /// `self * b`, element by element.
    ///
    /// # Shapes
    /// Both and the result have one shape.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.mul`, without broadcasting.
    pub fn multiply(&self, b: &Self) -> Result<Self, Error> {
        const OP: &str = "multiply";
        let (graph, n) = (self.graph(), self.n_elements());
        graph.check_own(OP, "b", b)?;
        if self.shape() != b.shape() {
            let expected = format!("{:?}, as the first has", self.shape());
            return Err(Error::Shape { op: OP, arg: "b", expected, found: b.shape().to_vec() });
        }
        let y = graph.transient(OP, n);
        graph.with_program(|program| program.push(Multiply { n }, &[self.slice(), b.slice(), y]))?;
        let sides = [(self.id(), b.slice()), (b.id(), self.slice())];
        let rule = move |backward: &mut crate::Backward<'_>, dy| {
            for (id, other) in sides {
                if backward.wants(id) {
                    backward.give(id, Multiply { n }, &[dy, other])?;
                }
            }
            Ok(())
        };
        Ok(graph.result(&[self, b], y, self.shape(), None, Rc::new(rule)))
    }
}
