use brisk_tensor::{Activation, Tensor};

use crate::bound::Bound;
use crate::init::Init;
use crate::parameters::{ParameterId, ParametersBuilder};

/// A fully connected layer: `act(x Wᵀ + b)`, in one kernel.
///
/// # Shapes
/// `x`: `[n_rows, …, n_in]`; `weight`: `[n_out, n_in]`; `bias`: `[n_out]`; the result `[n_rows, …, n_out]`.
/// # Reference
/// `torch.nn.Linear`, with the same initial distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    n_in: usize,
    weight: ParameterId,
    bias: Option<ParameterId>,
    activation: Activation,
}

impl Linear {
    /// Adds `name.weight` and `name.bias` to the parameters.
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, n_in: usize, n_out: usize, activation: Activation) -> Self {
        let weight = params.add(format!("{name}.weight"), &[n_out, n_in], Init::FanIn(n_in));
        let bias = params.add(format!("{name}.bias"), &[n_out], Init::FanIn(n_in));
        Self { n_in, weight, bias: Some(bias), activation }
    }

    /// A layer without a bias: adds only `name.weight`.
    #[track_caller]
    pub fn without_bias(params: &mut ParametersBuilder, name: &str, n_in: usize, n_out: usize, activation: Activation) -> Self {
        let weight = params.add(format!("{name}.weight"), &[n_out, n_in], Init::FanIn(n_in));
        Self { n_in, weight, bias: None, activation }
    }

    /// The number of columns of its input.
    pub fn n_in(&self) -> usize {
        self.n_in
    }

    /// Records the layer.
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` has a different number of columns.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let _scope = params.enter(self.weight);
        x.linear(params.tensor(self.weight), self.bias.map(|bias| params.tensor(bias)), self.activation.clone())
    }
}
