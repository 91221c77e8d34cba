use brisk_nn::tensor::Activation;
use brisk_nn::{Adam, Mlp, MlpConfig, Parameters, ParametersBuilder};

use super::Options;

/// The model, its parameters, and what trains them.
#[derive(Debug)]
pub struct Network {
    /// Rows in, a logit each out.
    pub model: Mlp,
    /// With their starting values.
    pub params: Parameters,
    /// Adam over all of them.
    pub optimizer: Adam,
}

impl Network {
    /// A network over rows of so many columns.
    pub fn new(n_cols: usize, options: &Options) -> Self {
        let mut builder = ParametersBuilder::new();
        let sizes = MlpConfig { n_inputs: n_cols, hidden: options.hidden.clone(), n_outputs: 1, activation: Activation::Relu };
        let model = Mlp::new(&mut builder, &sizes);
        let params = builder.build(options.seed);
        let optimizer = Adam::new(&params);
        Self { model, params, optimizer }
    }

    /// The same with parameters that something has been done to, and an optimizer of these.
    ///
    /// # Errors
    /// That of `f`.
    pub fn try_map<E>(self, f: impl FnOnce(Parameters) -> Result<Parameters, E>) -> Result<Self, E> {
        let params = f(self.params)?;
        Ok(Self { optimizer: Adam::new(&params), params, ..self })
    }
}
