use brisk_tensor::Tensor;

use crate::bound::Bound;
use crate::init::Init;
use crate::parameters::{ParameterId, ParametersBuilder};

/// Layer normalisation along the last dimension, with a weight and a bias for each column.
///
/// # Shapes
/// `x`: `[…, n_cols]`; `weight`, `bias`: `[n_cols]`.
/// # Reference
/// `torch.nn.LayerNorm`, with the same initial values (1 and 0) and ε (1e-5).
#[derive(Debug, Clone, PartialEq)]
pub struct LayerNorm {
    weight: ParameterId,
    bias: ParameterId,
    n_cols: usize,
    eps: f32,
}

impl LayerNorm {
    /// Adds `name.weight` and `name.bias` to the parameters.
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, n_cols: usize) -> Self {
        let weight = params.add(format!("{name}.weight"), &[n_cols], Init::Constant(1.0));
        let bias = params.add(format!("{name}.bias"), &[n_cols], Init::Constant(0.0));
        Self { weight, bias, n_cols, eps: 1e-5 }
    }

    /// Sets ε, which is added to the variance.
    pub fn eps(mut self, eps: f32) -> Self {
        self.eps = eps;
        self
    }

    /// The number of columns that it normalises.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Records the layer.
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` has a different number of columns.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let _scope = params.enter(self.weight);
        x.layer_norm(Some(params.tensor(self.weight)), Some(params.tensor(self.bias)), self.eps)
    }
}
