use std::fmt::Debug;

use brisk_tensor::{Error, Tensor};

use crate::{Bound, Linear, Mlp};

/// A model: what it records for an input, given its parameters in the same graph. Dyn-compatible.
pub trait Module: Debug {
    /// Records the model over `x`.
    ///
    /// # Errors
    /// [`Error::Shape`] if `x` is not what the model takes.
    fn forward(&self, params: &Bound, x: &Tensor) -> Result<Tensor, Error>;
}

impl Module for Linear {
    fn forward(&self, params: &Bound, x: &Tensor) -> Result<Tensor, Error> {
        Linear::forward(self, params, x)
    }
}

impl Module for Mlp {
    fn forward(&self, params: &Bound, x: &Tensor) -> Result<Tensor, Error> {
        Mlp::forward(self, params, x)
    }
}
