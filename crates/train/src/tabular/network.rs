use brisk_nn::{Activation, CategoricalColumn, Mlp, MlpConfig, Module, ParametersBuilder, ResidualMlp, ResidualMlpConfig};

/// The network of a [`TabularModel`](super::TabularModel). Both embed categories, and concatenate the embeddings with the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// A multi-layer perceptron with ReLU.
    Mlp {
        /// Units of each hidden layer; none for a linear model.
        hidden: Vec<usize>,
    },
    /// A residual network: [`ResidualMlp`].
    ResidualMlp {
        /// Units between blocks.
        width: usize,
        /// Units within a block.
        hidden: usize,
        /// Blocks.
        n_blocks: usize,
    },
}

impl Network {
    /// Adds the parameters of a network for rows of `n_inputs` numbers and `categories`.
    pub fn build(
        &self,
        params: &mut ParametersBuilder,
        n_inputs: usize,
        categories: &[CategoricalColumn],
        n_outputs: usize,
    ) -> Box<dyn Module> {
        match self {
            Self::Mlp { hidden } => {
                let sizes = MlpConfig { n_inputs, hidden: hidden.clone(), n_outputs, activation: Activation::relu() };
                Box::new(Mlp::with_categories(params, &sizes, categories))
            }
            &Self::ResidualMlp { width, hidden, n_blocks } => {
                let sizes = ResidualMlpConfig { n_inputs, width, hidden, n_blocks, n_outputs };
                Box::new(ResidualMlp::with_categories(params, &sizes, categories))
            }
        }
    }
}
