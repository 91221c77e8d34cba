use brisk_tensor::{Activation, Error, Tensor};

use crate::{Bound, Linear, ParametersBuilder};

/// A multi-layer perceptron: linear layers with an activation between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    layers: Vec<Linear>,
}

/// The sizes of an [`Mlp`].
#[derive(Debug, Clone, PartialEq)]
pub struct MlpConfig {
    /// Columns of the input.
    pub n_inputs: usize,
    /// Units of each hidden layer; none for a linear model.
    pub hidden: Vec<usize>,
    /// Columns of the output.
    pub n_outputs: usize,
    /// The activation behind each hidden layer; the output has none.
    pub activation: Activation,
}

impl Mlp {
    /// Adds the layers `layers.0`, `layers.1`, … to the parameters.
    pub fn new(params: &mut ParametersBuilder, config: &MlpConfig) -> Self {
        let sizes: Vec<usize> =
            std::iter::once(config.n_inputs).chain(config.hidden.iter().copied()).chain([config.n_outputs]).collect();
        let n_layers = sizes.len() - 1;
        let layer = |(i, pair): (usize, &[usize])| {
            let activation = if i + 1 < n_layers { config.activation } else { Activation::Identity };
            Linear::new(params, &format!("layers.{i}"), pair[0], pair[1], activation)
        };
        Self { layers: sizes.windows(2).enumerate().map(layer).collect() }
    }

    /// Records the layers one after the other.
    ///
    /// # Shapes
    /// `x`: `[n_rows, n_inputs]`; the result `[n_rows, n_outputs]`.
    /// # Errors
    /// [`Error::Shape`] if `x` has another number of columns.
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Result<Tensor, Error> {
        self.layers.iter().try_fold(x.clone(), |x, layer| layer.forward(params, &x))
    }
}
