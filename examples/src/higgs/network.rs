use brisk_nn::tensor::Activation;
use brisk_nn::{Adam, Mlp, MlpConfig, Parameters, ParametersBuilder};

use super::Options;

/// The model, its parameters and their optimizer.
#[derive(Debug)]
pub struct Network {
    /// Maps each row to a logit.
    pub model: Mlp,
    /// Parameters with their initial values.
    pub params: Parameters,
    /// Adam over all parameters.
    pub optimizer: Adam,
}

impl Network {
    /// A network for rows of `n_cols` columns.
    pub fn new(n_cols: usize, options: &Options) -> Self {
        let mut builder = ParametersBuilder::new();
        let sizes = MlpConfig { n_inputs: n_cols, hidden: options.hidden.clone(), n_outputs: 1, activation: Activation::relu() };
        let model = Mlp::new(&mut builder, &sizes);
        let params = builder.build(options.seed);
        let optimizer = Adam::new(&params);
        Self { model, params, optimizer }
    }

    /// The same network with parameters changed by `f`, and an optimizer for these.
    ///
    /// # Errors
    /// The error of `f`.
    pub fn try_map<E>(self, f: impl FnOnce(Parameters) -> Result<Parameters, E>) -> Result<Self, E> {
        let params = f(self.params)?;
        Ok(Self { optimizer: Adam::new(&params), params, ..self })
    }
}
