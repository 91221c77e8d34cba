use brisk_tensor::{Activation, Tensor};

use crate::batch_norm::{BatchNorm, BatchNormConfig};
use crate::bound::Bound;
use crate::categorical_column::CategoricalColumn;
use crate::category_embeddings::CategoryEmbeddings;
use crate::linear::Linear;
use crate::module::Module;
use crate::parameters::ParametersBuilder;

/// A residual network for tables: `x + W₂ ReLU(W₁ BatchNorm(x))` several times, then a linear layer over `ReLU(BatchNorm(x))`.
///
/// # Shapes
/// `x`: `[n_rows, n_inputs]`; the result `[n_rows, n_outputs]`.
/// # Reference
/// Gorishniy, Rubachev, Khrulkov & Babenko 2021, arXiv:2106.11959, section 3.2, without dropout.
#[derive(Debug, Clone, PartialEq)]
pub struct ResidualMlp {
    n_inputs: usize,
    embeddings: CategoryEmbeddings,
    first: Linear,
    blocks: Vec<Block>,
    norm: BatchNorm,
    last: Linear,
}

#[derive(Debug, Clone, PartialEq)]
struct Block {
    norm: BatchNorm,
    inner: Linear,
    outer: Linear,
}

/// The sizes of a [`ResidualMlp`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResidualMlpConfig {
    /// Columns of the input that are numbers.
    pub n_inputs: usize,
    /// Units between blocks.
    pub width: usize,
    /// Units within a block.
    pub hidden: usize,
    /// Blocks.
    pub n_blocks: usize,
    /// Columns of the output.
    pub n_outputs: usize,
}

impl ResidualMlp {
    /// Adds the layers `first`, `blocks.0.norm`, `blocks.0.linear1`, `blocks.0.linear2`, …, `norm` and `last` to the parameters.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::tensor::Graph;
    /// use brisk_nn::{ParametersBuilder, ResidualMlp, ResidualMlpConfig};
    ///
    /// let mut builder = ParametersBuilder::new();
    /// let sizes = ResidualMlpConfig { n_inputs: 3, width: 16, hidden: 32, n_blocks: 2, n_outputs: 1 };
    /// let model = ResidualMlp::new(&mut builder, &sizes);
    /// let graph = Graph::inference("scores");
    /// let x = graph.constant("x", &[0.5; 12], &[4, 3]);
    /// assert_eq!(model.forward(&builder.build(7).bind(&graph), &x).shape(), [4, 1]);
    /// graph.check()?;
    /// # Ok::<(), brisk_nn::Error>(())
    /// ```
    pub fn new(params: &mut ParametersBuilder, config: &ResidualMlpConfig) -> Self {
        Self::with_categories(params, config, &[])
    }

    /// [`new`](Self::new) with [`CategoryEmbeddings`] before the first layer.
    pub fn with_categories(params: &mut ParametersBuilder, config: &ResidualMlpConfig, categories: &[CategoricalColumn]) -> Self {
        let &ResidualMlpConfig { n_inputs, width, hidden, n_blocks, n_outputs } = config;
        let embeddings = CategoryEmbeddings::new(params, categories);
        let first_inputs = n_inputs.saturating_add(embeddings.n_embedded());
        let first = Linear::new(params, "first", first_inputs, width, Activation::identity());
        let block = |i: usize| Block {
            norm: BatchNorm::new(params, &format!("blocks.{i}.norm"), &BatchNormConfig::new(width)),
            inner: Linear::new(params, &format!("blocks.{i}.linear1"), width, hidden, Activation::relu()),
            outer: Linear::new(params, &format!("blocks.{i}.linear2"), hidden, width, Activation::identity()),
        };
        let blocks = (0..n_blocks).map(block).collect();
        let relu = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(width) };
        let norm = BatchNorm::new(params, "norm", &relu);
        let last = Linear::new(params, "last", width, n_outputs, Activation::identity());
        Self { n_inputs, embeddings, first, blocks, norm, last }
    }

    /// Records the embeddings, if there are any, and the layers.
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` or the [categories](Bound::categories) have a different number of
    /// columns.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let mut x = self.first.forward(params, &self.embeddings.forward(params, x));
        for Block { norm, inner, outer } in &self.blocks {
            let inner = inner.forward(params, &norm.forward(params, &x));
            x = x.add(&outer.forward(params, &inner));
        }
        self.last.forward(params, &self.norm.forward(params, &x))
    }
}

impl Module for ResidualMlp {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        ResidualMlp::forward(self, params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(self.n_inputs)
    }
}
