use std::rc::Rc;

use brisk_kernels::{Activate, Activation, ActivationGrad};

use crate::{Error, Tensor};

impl Tensor {
    /// `act(x)`, element by element.
    ///
    /// # Errors
    /// [`Error::Program`] if there are more elements than a kernel can address.
    pub fn activate(&self, activation: Activation) -> Result<Self, Error> {
        const OP: &str = "activate";
        let (n, graph) = (self.n_elements(), self.graph());
        let kernel = Activate { n, activation };
        let (dtype, [x]) = graph.operands(OP, &kernel, [self])?;
        let y = graph.transient(OP, dtype, n);
        graph.push(kernel, &[x.slice(), y])?;
        let (x_id, x_slice) = (x.id(), x.slice());
        let rule =
            move |backward: &mut crate::Backward<'_>, dy| backward.give(x_id, ActivationGrad { n, activation }, &[dy, x_slice]);
        graph.result(OP, &[&x], y, self.shape(), None, Rc::new(rule))
    }
}
