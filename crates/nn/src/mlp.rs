use brisk_tensor::{Activation, Tensor};

use crate::bound::Bound;
use crate::categorical_column::CategoricalColumn;
use crate::category_embeddings::CategoryEmbeddings;
use crate::linear::Linear;
use crate::module::Module;
use crate::parameters::ParametersBuilder;

/// A multi-layer perceptron: linear layers with an activation between them, and before them, if requested, an embedding for each
/// categorical column.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    n_inputs: usize,
    embeddings: CategoryEmbeddings,
    layers: Vec<Linear>,
}

/// The sizes of an [`Mlp`].
#[derive(Debug, Clone, PartialEq)]
pub struct MlpConfig {
    /// Columns of the input that are numbers.
    pub n_inputs: usize,
    /// Units of each hidden layer; none for a linear model.
    pub hidden: Vec<usize>,
    /// Columns of the output.
    pub n_outputs: usize,
    /// The activation after each hidden layer; the output has none.
    pub activation: Activation,
}

impl Mlp {
    /// Adds the layers `layers.0`, `layers.1`, … to the parameters.
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, config: &MlpConfig) -> Self {
        Self::with_categories(params, config, &[])
    }

    /// [`new`](Self::new) with [`CategoryEmbeddings`] before the first layer.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::{Activation, CategoricalColumn, Mlp, MlpConfig, ParametersBuilder};
    ///
    /// let mut builder = ParametersBuilder::new();
    /// let sizes = MlpConfig { n_inputs: 6, hidden: vec![32], n_outputs: 1, activation: Activation::relu() };
    /// // A column of 8 codes, and one of 1000 whose embedding has 8 dimensions.
    /// let categories = [CategoricalColumn::of(8), CategoricalColumn { n_codes: 1000, dim: 8 }];
    /// Mlp::with_categories(&mut builder, &sizes, &categories);
    /// let params = builder.build(0);
    /// let shapes: Vec<_> = params.entries().iter().map(|entry| (entry.name.as_str(), entry.shape.as_slice())).collect();
    /// let first = [
    ///     ("embeddings.0.weight", &[8, 4][..]),
    ///     ("embeddings.1.weight", &[1000, 8]),
    ///     ("layers.0.weight", &[32, 6 + 4 + 8]),
    /// ];
    /// assert_eq!(shapes[..3], first);
    /// ```
    #[track_caller]
    pub fn with_categories(params: &mut ParametersBuilder, config: &MlpConfig, categories: &[CategoricalColumn]) -> Self {
        let embeddings = CategoryEmbeddings::new(params, categories);
        let n_inputs = config.n_inputs.saturating_add(embeddings.n_embedded());
        let sizes: Vec<usize> =
            std::iter::once(n_inputs).chain(config.hidden.iter().copied()).chain([config.n_outputs]).collect();
        let n_layers = sizes.len() - 1;
        let mut layers = Vec::with_capacity(n_layers);
        for (i, pair) in sizes.windows(2).enumerate() {
            let activation = if i + 1 < n_layers { config.activation.clone() } else { Activation::identity() };
            layers.push(Linear::new(params, &format!("layers.{i}"), pair[0], pair[1], activation));
        }
        Self { n_inputs: config.n_inputs, embeddings, layers }
    }

    /// Records the embeddings, if there are any, and the layers one after the other.
    ///
    /// # Shapes
    /// `x`: `[n_rows, n_inputs]`; the result `[n_rows, n_outputs]`.
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` or the [categories](Bound::categories) have a different number of
    /// columns.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let mut x = self.embeddings.forward(params, x);
        for layer in &self.layers {
            x = layer.forward(params, &x);
        }
        x
    }

    /// The number of numeric columns of its input.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }
}

impl Module for Mlp {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        Mlp::forward(self, params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(Mlp::n_inputs(self))
    }
}
