use brisk_tensor::{Activation, Tensor};

use crate::embedding::{CategoricalColumn, Embedding, embed_columns};
use crate::linear::Linear;
use crate::parameters::{Bound, ParametersBuilder};

/// A multi-layer perceptron: linear layers with an activation between them, and before them, if requested, an embedding for each
/// categorical column.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    n_inputs: usize,
    categories: Vec<CategoricalColumn>,
    embeddings: Vec<Embedding>,
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

    /// [`new`](Self::new) with embeddings, `embeddings.0`, `embeddings.1`, …, one for each categorical column. They follow the numeric columns in the input of
    /// the first layer.
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
    /// assert_eq!(shapes[..3], [("embeddings.0.weight", &[8, 4][..]), ("embeddings.1.weight", &[1000, 8]), ("layers.0.weight", &[32, 6 + 4 + 8])]);
    /// ```
    #[track_caller]
    pub fn with_categories(params: &mut ParametersBuilder, config: &MlpConfig, categories: &[CategoricalColumn]) -> Self {
        let (mut embeddings, mut layers) = (Vec::new(), Vec::new());
        for (i, column) in categories.iter().enumerate() {
            embeddings.push(Embedding::new(params, &format!("embeddings.{i}"), column.n_codes, column.dim));
        }
        let n_inputs = categories.iter().fold(config.n_inputs, |n, column| n.saturating_add(column.dim));
        let sizes: Vec<usize> =
            std::iter::once(n_inputs).chain(config.hidden.iter().copied()).chain([config.n_outputs]).collect();
        let n_layers = sizes.len() - 1;
        for (i, pair) in sizes.windows(2).enumerate() {
            let activation = if i + 1 < n_layers { config.activation.clone() } else { Activation::identity() };
            layers.push(Linear::new(params, &format!("layers.{i}"), pair[0], pair[1], activation));
        }
        Self { n_inputs: config.n_inputs, categories: categories.to_vec(), embeddings, layers }
    }

    /// Records the layers one after the other.
    ///
    /// # Shapes
    /// `x`: `[n_rows, n_inputs]`; the result `[n_rows, n_outputs]`.
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` has a different number of columns, or if the model has embeddings.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let mut x = x.clone();
        for layer in &self.layers {
            x = layer.forward(params, &x);
        }
        x
    }

    /// Records the embeddings, then the layers.
    ///
    /// # Shapes
    /// `x`: `[n_rows, n_inputs]`; `categories`: `[n_rows, n_categories]` u32; the result `[n_rows, n_outputs]`.
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if either has a different number of columns.
    #[track_caller]
    pub fn forward_with_categories(&self, params: &Bound, x: &Tensor, categories: &Tensor) -> Tensor {
        match embed_columns(&self.embeddings, params, x, categories) {
            Ok(embedded) => self.forward(params, &x.concat_columns(&embedded.iter().collect::<Vec<_>>())),
            Err(failed) => failed,
        }
    }

    /// The number of numeric columns of its input.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// The categorical columns that it takes.
    pub fn categories(&self) -> &[CategoricalColumn] {
        &self.categories
    }
}
