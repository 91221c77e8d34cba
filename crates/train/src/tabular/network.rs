use brisk_nn::{Activation, CategoricalColumn, Mlp, MlpConfig, Module, ParametersBuilder, ResidualMlp, ResidualMlpConfig};
use serde::{Deserialize, Serialize};

/// The network of a [`TabularModel`](super::TabularModel). Both embed categories, and concatenate the embeddings with the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Network {
    /// A multi-layer perceptron with ReLU.
    Mlp {
        /// Units of each hidden layer; none for a linear model.
        hidden: Vec<usize>,
    },
    /// A residual network: [`ResidualMlp`].
    #[serde(rename = "resnet")]
    ResidualMlp {
        /// Units between blocks.
        width: usize,
        /// Units within a block.
        hidden: usize,
        /// Blocks.
        #[serde(rename = "blocks")]
        n_blocks: usize,
    },
}

impl Network {
    /// A lower bound of the number of parameters that [`build`](Self::build) adds.
    pub(super) fn min_parameters(&self, n_inputs: usize, n_outputs: usize) -> u128 {
        let product = |a: usize, b: usize| a as u128 * b as u128;
        match self {
            Self::Mlp { hidden } => {
                let sizes: Vec<usize> = [n_inputs].into_iter().chain(hidden.iter().copied()).chain([n_outputs]).collect();
                sizes.windows(2).map(|pair| product(pair[0], pair[1])).sum()
            }
            &Self::ResidualMlp { width, hidden, n_blocks } => {
                product(n_inputs, width) + n_blocks as u128 * 2 * product(width, hidden) + product(width, n_outputs)
            }
        }
    }

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
