use brisk_tensor::Tensor;

use crate::bound::Bound;
use crate::init::Init;
use crate::module::Module;
use crate::parameters::{ParameterId, ParametersBuilder};

/// Root mean square normalisation along the last dimension, with a weight for each column.
///
/// # Shapes
/// `x`: `[…, n_cols]`; `weight`: `[n_cols]`.
/// # Reference
/// `torch.nn.RMSNorm`, with the same initial values (1) and ε (that of f32).
#[derive(Debug, Clone, PartialEq)]
pub struct RmsNorm {
    weight: ParameterId,
    n_cols: usize,
    eps: f32,
}

impl RmsNorm {
    /// Adds `name.weight` to the parameters.
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, n_cols: usize) -> Self {
        let weight = params.add(format!("{name}.weight"), &[n_cols], Init::Constant(1.0));
        Self { weight, n_cols, eps: f32::EPSILON }
    }

    /// Sets ε, which is added to the mean square.
    pub fn eps(mut self, eps: f32) -> Self {
        self.eps = eps;
        self
    }
}

impl Module for RmsNorm {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let _scope = params.enter(self.weight);
        x.rms_norm(Some(params.tensor(self.weight)), self.eps)
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(self.n_cols)
    }
}
