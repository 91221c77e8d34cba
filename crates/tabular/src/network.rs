use brisk_loader::{RowSource, Rows};
use brisk_nn::{
    Activation, Adapters, CategoricalColumn, MeanOf, Mlp, MlpConfig, Module, NumberEmbedding, ParametersBuilder, RealMlp,
    RealMlpConfig, ResidualMlp, ResidualMlpConfig, SmoothClip, TabM, TabMConfig,
};
use serde::{Deserialize, Serialize};

use crate::ensemble::Ensemble;
use crate::target::Target;

/// The network of a [`TabularModel`](crate::TabularModel). All of them embed categories, and concatenate the embeddings with the
/// numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// An ensemble as one network: [`TabM`].
    #[serde(rename = "tabm")]
    TabM {
        /// Members of the ensemble.
        n_members: usize,
        /// Which hidden layers have scales of each member.
        adapters: Adapters,
        /// Units of each hidden layer, which the members share.
        hidden: Vec<usize>,
        /// The probability of dropout after each hidden layer.
        dropout: f32,
        /// How the features are embedded, at [`quantile_edges`](Network::quantile_edges) or by waves.
        numbers: NumberEmbedding,
        /// The most dimensions of the embedding of a categorical column, which has half as many as there are codes if those are
        /// fewer.
        category_dim: usize,
    },
    /// Several multi-layer perceptrons as one network: [`RealMlp`], with SELU for classes and Mish for numbers.
    #[serde(rename = "realmlp")]
    RealMlp {
        /// Perceptrons.
        n_members: usize,
        /// Units of each of their hidden layers.
        hidden: Vec<usize>,
        /// The probability of dropout after each hidden layer.
        dropout: f32,
        /// How the features are scaled.
        scaling: SmoothClip,
        /// How they are then embedded.
        numbers: NumberEmbedding,
        /// The most dimensions of the embedding of a categorical column, as in [`TabM`](Self::TabM).
        category_dim: usize,
    },
    /// Networks that were trained one by one, whose weighted mean is predicted: of numbers or of probabilities.
    Ensemble {
        /// The networks.
        members: Vec<Member>,
    },
}

/// A network of a [`Network::Ensemble`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Its share of the prediction.
    pub weight: f32,
    /// The network, which is no ensemble.
    pub network: Network,
}

impl Network {
    /// A lower bound of the number of parameters that [`build`](Self::build) adds.
    pub(super) fn min_parameters(&self, n_inputs: usize, n_outputs: usize) -> u128 {
        let product = |a: usize, b: usize| a as u128 * b as u128;
        let layers = |sizes: &[&[usize]]| -> u128 { sizes.concat().windows(2).map(|pair| product(pair[0], pair[1])).sum() };
        let first = |numbers: &NumberEmbedding| n_inputs.saturating_mul(numbers.dim());
        match self {
            Self::Mlp { hidden } => layers(&[&[n_inputs], hidden, &[n_outputs]]),
            &Self::ResidualMlp { width, hidden, n_blocks } => {
                product(n_inputs, width) + n_blocks as u128 * 2 * product(width, hidden) + product(width, n_outputs)
            }
            Self::TabM { n_members, hidden, numbers, .. } => {
                let first = first(numbers);
                let last = hidden.last().copied().unwrap_or(first);
                layers(&[&[first], hidden]) + *n_members as u128 * (first as u128 + product(last, n_outputs))
            }
            Self::RealMlp { n_members, hidden, numbers, .. } => {
                layers(&[&[first(numbers)], hidden, &[n_outputs]]).saturating_mul(*n_members as u128)
            }
            Self::Ensemble { members } => members.iter().map(|member| member.network.min_parameters(n_inputs, n_outputs)).sum(),
        }
    }

    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mlp { hidden } if hidden.is_empty() => "linear",
            Self::Mlp { .. } => "mlp",
            Self::ResidualMlp { .. } => "resnet",
            Self::TabM { adapters: Adapters::First, .. } => "tabm-mini",
            Self::TabM { .. } => "tabm",
            Self::RealMlp { .. } => "realmlp",
            Self::Ensemble { .. } => "ensemble",
        }
    }

    /// The edges of `n_bins` bins with about as many of `rows` each, for each feature. A feature of few different values for its
    /// rows, at most 256, has an edge at each of them, such as an amount that most rows do not have and others have in common.
    /// Where values are repeated so often that several edges would be the same, the others are evenly spaced among the remaining
    /// values; there are fewer bins if there are not as many different values.
    pub fn quantile_edges(rows: &Rows, n_bins: usize) -> Vec<Vec<f32>> {
        let (n_cols, n_rows) = (rows.n_cols(), rows.n_rows());
        let column = |col: usize| {
            let mut values: Vec<f32> = rows.features().iter().skip(col).step_by(n_cols).copied().collect();
            values.sort_unstable_by(f32::total_cmp);
            let n_different = 1 + values.windows(2).filter(|pair| pair[0] != pair[1]).count();
            if n_different <= MAX_DISCRETE && n_rows >= ROWS_PER_VALUE * n_different {
                values.dedup();
                return at_least_two(values);
            }
            let quantile = |i: usize| {
                let at = i as f64 / n_bins as f64 * (n_rows - 1) as f64;
                let (below, share) = (at.floor() as usize, at.fract() as f32);
                let above = values[(below + 1).min(n_rows - 1)];
                if share == 0.0 { values[below] } else { values[below] + (above - values[below]) * share }
            };
            let mut edges: Vec<f32> = if n_rows == 0 { Vec::new() } else { (0..=n_bins).map(quantile).collect() };
            edges.dedup();
            values.dedup();
            values.retain(|value| edges.binary_search_by(|edge| edge.total_cmp(value)).is_err());
            let n_missing = (n_bins + 1 - edges.len().min(n_bins + 1)).min(values.len());
            edges.extend((0..n_missing).map(|i| values[(2 * i + 1) * values.len() / (2 * n_missing)]));
            edges.sort_unstable_by(f32::total_cmp);
            // 0 and -0 are one edge.
            edges.dedup();
            at_least_two(edges)
        };
        (0..n_cols).map(column).collect()
    }

    /// Adds the parameters of a network for rows of `n_inputs` numbers and `categories`, and for the task of `target`.
    pub fn build(
        &self,
        params: &mut ParametersBuilder,
        n_inputs: usize,
        categories: &[CategoricalColumn],
        target: &Target,
    ) -> Box<dyn Module> {
        let n_outputs = target.task().n_outputs();
        let mean_of = match target.classes().len() {
            0 => MeanOf::Outputs,
            2 => MeanOf::Sigmoids,
            _ => MeanOf::Softmaxes,
        };
        match self {
            Self::Mlp { hidden } => {
                let sizes = MlpConfig { n_inputs, hidden: hidden.clone(), n_outputs, activation: Activation::relu() };
                Box::new(Mlp::with_categories(params, &sizes, categories))
            }
            &Self::ResidualMlp { width, hidden, n_blocks } => {
                let sizes = ResidualMlpConfig { n_inputs, width, hidden, n_blocks, n_outputs };
                Box::new(ResidualMlp::with_categories(params, &sizes, categories))
            }
            Self::TabM { n_members, adapters, hidden, dropout, numbers, category_dim } => {
                let config = TabMConfig {
                    n_inputs,
                    numbers: numbers.clone(),
                    n_members: *n_members,
                    adapters: *adapters,
                    hidden: hidden.clone(),
                    dropout: *dropout,
                    n_outputs,
                    mean_of,
                };
                Box::new(TabM::new(params, &config, &at_most(*category_dim, categories)))
            }
            Self::RealMlp { n_members, hidden, dropout, scaling, numbers, category_dim } => {
                let config = RealMlpConfig {
                    scaling: scaling.clone(),
                    numbers: numbers.clone(),
                    n_members: *n_members,
                    hidden: hidden.clone(),
                    activation: if target.classes().is_empty() { Activation::mish() } else { Activation::selu() },
                    dropout: *dropout,
                    n_outputs,
                    mean_of,
                };
                Box::new(RealMlp::new(params, &config, &at_most(*category_dim, categories)))
            }
            Self::Ensemble { members } => {
                let member = |(i, member): (usize, &Member)| {
                    let build = |params: &mut ParametersBuilder| member.network.build(params, n_inputs, categories, target);
                    (member.weight, params.within(&member_path(i), build))
                };
                let members = members.iter().enumerate().map(member).collect();
                Box::new(Ensemble { members, mean_of })
            }
        }
    }
}

/// The columns, with embeddings of at most `dim` dimensions.
fn at_most(dim: usize, columns: &[CategoricalColumn]) -> Vec<CategoricalColumn> {
    columns.iter().map(|column| CategoricalColumn { dim: column.dim.min(dim), ..*column }).collect()
}

fn at_least_two(edges: Vec<f32>) -> Vec<f32> {
    match edges[..] {
        [] => vec![0.0, 1.0],
        [only] => vec![only, only + only.abs().max(1.0)],
        _ => edges,
    }
}

/// The most different values of a feature that has an edge at each of them, and the fewest rows for each value.
const MAX_DISCRETE: usize = 256;
const ROWS_PER_VALUE: usize = 64;

/// What the names of the parameters of a member of an ensemble begin with.
pub(super) fn member_path(member: usize) -> String {
    format!("members.{member}")
}
