use brisk_kernels::{Activation, Map};

use crate::error::Error;
use crate::graph::autocast::ACTIVATE;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// `activation(x)`, elementwise.
    ///
    /// # Errors
    /// [`Error::Program`] if there are more elements than a kernel can address.
    #[track_caller]
    pub fn activate(&self, activation: Activation) -> Self {
        let activation = self.graph().activation_of(&activation, &SIGNATURE, &[self]);
        self.graph().apply(Activate { activation }, &[self])
    }
}

/// An activation whose derivative is fused into the kernel before it in the backward pass, where it follows from the output.
#[derive(Debug)]
struct Activate {
    activation: Activation,
}

const SIGNATURE: Signature = Signature::new(ACTIVATE, &["x"]);

impl Operation for Activate {
    fn signature(&self) -> Signature {
        SIGNATURE
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        check_kernel(&Map::flat(inputs[0].n_elements(), self.activation.forward.clone()))?;
        Ok(inputs[0].shape().to_vec())
    }

    fn output_activation(&self) -> Option<Activation> {
        Some(self.activation.clone()).filter(|activation| activation.from_output.is_some())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        forward.push(Map::flat(x.len(), self.activation.forward.clone()), &[x, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let dy = backward.grad();
        if self.output_activation().is_some() {
            // This is already the gradient before the activation. So the input need not be kept, nor even stored if the kernel
            // that computes it is fused with this one.
            return backward.pass(0, dy);
        }
        let x = backward.input(0);
        backward.give(0, Map::flat(x.len(), self.activation.grad()), &[dy, x])
    }
}
