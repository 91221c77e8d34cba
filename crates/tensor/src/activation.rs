use brisk_kernels::{Activate, Activation, ActivationGrad};

use crate::operation::check_kernel;
use crate::{Backward, Error, Forward, Operation, Tensor};

/// What an override of autocast calls it.
pub(crate) const NAME: &str = "activate";

impl Tensor {
    /// `activation(x)`, elementwise.
    ///
    /// # Errors
    /// [`Error::Program`] if there are more elements than a kernel can address.
    #[track_caller]
    pub fn activate(&self, activation: Activation) -> Self {
        self.graph().apply(Activate { n: self.n_elements(), activation }, &[self])
    }
}

impl Operation for Activate {
    fn name(&self) -> &'static str {
        NAME
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x"]
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        check_kernel(self)?;
        Ok(inputs[0].shape().to_vec())
    }

    fn output_activation(&self) -> Option<Activation> {
        Some(self.activation).filter(|activation| activation.has_grad_from_output())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        forward.push(*self, &[x, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let dy = backward.grad();
        if self.output_activation().is_some() {
            // The gradient is the one before the activation already. So the input need not be kept, nor even stored where the kernel that
            // computes it is fused with this one.
            return backward.pass(0, dy);
        }
        let x = backward.input(0);
        backward.give(0, ActivationGrad { n: self.n, activation: self.activation }, &[dy, x])
    }
}
