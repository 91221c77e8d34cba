use brisk_tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::bound::Bound;
use crate::parameters::ParametersBuilder;
use crate::pbld::Pbld;
use crate::periodic::Periodic;
use crate::piecewise_linear::PiecewiseLinear;

/// How numbers become the input of a network.
///
/// A column becomes `dim` numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum NumberEmbedding {
    /// As they are.
    Plain,
    /// By a [piecewise-linear](PiecewiseLinear) encoding with these edges of the bins of each column, in increasing order.
    PiecewiseLinear { edges: Vec<Vec<f32>>, dim: usize },
    /// By [waves](Periodic), whose initial frequencies have the standard deviation `std`, in cycles per unit.
    Periodic { n_frequencies: usize, std: f32, dim: usize },
    /// By [waves with phases, followed by the number](Pbld), which is one of the `dim` numbers.
    Pbld { n_frequencies: usize, std: f32, dim: usize },
}

impl NumberEmbedding {
    /// How many numbers a column becomes.
    pub fn dim(&self) -> usize {
        match *self {
            Self::Plain => 1,
            Self::PiecewiseLinear { dim, .. } | Self::Periodic { dim, .. } | Self::Pbld { dim, .. } => dim,
        }
    }
}

/// The layer of a [`NumberEmbedding`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NumberLayer {
    Plain,
    PiecewiseLinear(PiecewiseLinear),
    Periodic(Periodic),
    Pbld(Pbld),
}

impl NumberLayer {
    #[track_caller]
    pub(crate) fn new(params: &mut ParametersBuilder, name: &str, n_columns: usize, embedding: &NumberEmbedding) -> Self {
        match *embedding {
            // Without columns, there is nothing to embed.
            _ if n_columns == 0 => Self::Plain,
            NumberEmbedding::Plain => Self::Plain,
            NumberEmbedding::PiecewiseLinear { ref edges, dim } => {
                Self::PiecewiseLinear(PiecewiseLinear::new(params, name, edges, dim))
            }
            NumberEmbedding::Periodic { n_frequencies, std, dim } => {
                Self::Periodic(Periodic::new(params, name, n_columns, n_frequencies, std, dim))
            }
            NumberEmbedding::Pbld { n_frequencies, std, dim } => {
                Self::Pbld(Pbld::new(params, name, n_columns, n_frequencies, std, dim))
            }
        }
    }

    #[track_caller]
    pub(crate) fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        match self {
            Self::Plain => x.clone(),
            Self::PiecewiseLinear(layer) => layer.forward(params, x),
            Self::Periodic(layer) => layer.forward(params, x),
            Self::Pbld(layer) => layer.forward(params, x),
        }
    }
}
