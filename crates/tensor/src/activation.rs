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
        if activation.has_grad_from_output() {
            // The input is then not kept, nor even stored where the kernel that makes it is fused with this one.
            let rule = move |backward: &mut crate::Backward<'_>, dx| backward.pass(x_id, dx);
            return graph.result(OP, &[&x], y, self.shape(), Some(activation), Rc::new(rule));
        }
        let rule =
            move |backward: &mut crate::Backward<'_>, dy| backward.give(x_id, ActivationGrad { n, activation }, &[dy, x_slice]);
        graph.result(OP, &[&x], y, self.shape(), None, Rc::new(rule))
    }
}
