use std::rc::Rc;

use brisk_kernels::{Activate, Activation, ActivationGrad};

use crate::{Error, Tensor};

impl Tensor {
    /// `act(x)`, element by element.
    ///
    /// # Errors
    /// [`Error::Program`] if there are more elements than a kernel can address.
    pub fn activate(&self, activation: Activation) -> Result<Self, Error> {
        let (n, graph) = (self.n_elements(), self.graph());
        let y = graph.transient("activate", n);
        graph.with_program(|program| program.push(Activate { n, activation }, &[self.slice(), y]))?;
        let (x_id, x) = (self.id(), self.slice());
        let rule = move |backward: &mut crate::Backward<'_>, dy| backward.give(x_id, ActivationGrad { n, activation }, &[dy, x]);
        Ok(graph.result(&[self], y, self.shape(), None, Rc::new(rule)))
    }
}
