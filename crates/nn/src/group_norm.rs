use brisk_tensor::Tensor;

use crate::bound::Bound;
use crate::init::Init;
use crate::module::Module;
use crate::parameters::{ParameterId, ParametersBuilder};

/// Normalisation of groups of channels of each row, with a weight and a bias for each channel. Unlike that of
/// [`BatchNorm`](crate::BatchNorm), it does not depend on the other rows of the batch.
///
/// # Shapes
/// `x`: `[n, …, n_channels]`; `weight`, `bias`: `[n_channels]`. The groups divide the channels evenly.
/// # Reference
/// `torch.nn.GroupNorm`, with the same initial values (1 and 0) and ε (1e-5); there, channels are the second dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupNorm {
    weight: ParameterId,
    bias: ParameterId,
    n_groups: usize,
    n_channels: usize,
    eps: f32,
}

impl GroupNorm {
    /// Adds `name.weight` and `name.bias` to the parameters.
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, n_groups: usize, n_channels: usize) -> Self {
        let weight = params.add(format!("{name}.weight"), &[n_channels], Init::Constant(1.0));
        let bias = params.add(format!("{name}.bias"), &[n_channels], Init::Constant(0.0));
        Self { weight, bias, n_groups, n_channels, eps: 1e-5 }
    }

    /// Sets ε, which is added to the variance.
    pub fn eps(mut self, eps: f32) -> Self {
        self.eps = eps;
        self
    }
}

impl Module for GroupNorm {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let _scope = params.enter(self.weight);
        x.group_norm(self.n_groups, Some(params.tensor(self.weight)), Some(params.tensor(self.bias)), self.eps)
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(self.n_channels)
    }
}
