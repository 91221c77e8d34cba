use brisk_tensor::{Persistent, Tensor};

use crate::Bound;

/// Dropout, in training graphs: each value is set to 0 with probability `p`, else divided by `1 - p`. It has no parameters.
///
/// # Reference
/// `torch.nn.Dropout`.
#[derive(Debug, Clone)]
pub struct Dropout {
    p: f32,
    seed: u64,
    state: Persistent,
}

impl Dropout {
    /// A layer that draws a new mask in each step, as counted by `state`, the state of the run.
    pub fn new(p: f32, seed: u64, state: &Persistent) -> Self {
        Self { p, seed, state: state.clone() }
    }

    /// Records the layer.
    ///
    /// # Errors
    /// [`Error::Program`](brisk_tensor::Error::Program) if `p` is not within 0 to 1.
    #[track_caller]
    pub fn forward(&self, _: &Bound, x: &Tensor) -> Tensor {
        x.dropout(self.p, self.seed, &self.state)
    }
}
