use brisk_kernels::Transpose;
use brisk_tensor::{Activation, Mode, Tensor};
use serde::{Deserialize, Serialize};

use crate::batch_ensemble::BatchEnsemble;
use crate::bound::Bound;
use crate::categorical_column::CategoricalColumn;
use crate::category_embeddings::CategoryEmbeddings;
use crate::dropout::Dropout;
use crate::init::Init;
use crate::linear::Linear;
use crate::module::Module;
use crate::number_embedding::{NumberEmbedding, NumberLayer};
use crate::parameters::{ParameterId, ParametersBuilder};

/// An ensemble of networks for tables that share the weights of all layers but the last: TabM and TabM-mini.
///
/// Each member `i` multiplies the embedded row by its own scales `r_i`; then all go through the same hidden layers, in one
/// product for all members, and each has a last layer of its own. The hidden layers are the same for all members
/// ([`Adapters::First`]: TabM-mini), or also have scales and biases of each ([`Adapters::All`]: TabM). In training, the result
/// has the outputs of each member, whose losses are averaged; otherwise it is that of the ensemble: the mean of the members'
/// numbers or probabilities.
///
/// # Shapes
/// `x`: `[n_rows, n_inputs]`; the result `[n_members, n_rows, n_outputs]` in graphs for training, else `[n_rows, n_outputs]`.
/// # Reference
/// Gorishniy, Kotelnikov & Babenko 2024, *TabM: Advancing Tabular Deep Learning With Parameter-Efficient Ensembling*,
/// arXiv:2410.24210: with piecewise-linear embeddings of numbers, TabM† and TabM†-mini.
#[derive(Debug, Clone, PartialEq)]
pub struct TabM {
    config: TabMConfig,
    numbers: NumberLayer,
    embeddings: CategoryEmbeddings,
    scales: Vec<ParameterId>,
    hidden: Vec<Hidden>,
    head: [ParameterId; 2],
}

#[derive(Debug, Clone, PartialEq)]
enum Hidden {
    Shared(Linear),
    BatchEnsemble(BatchEnsemble),
}

/// Which hidden layers of a [`TabM`] have scales of each member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adapters {
    /// Only the input of the first: TabM-mini.
    First,
    /// The input and the output of all of them, with a bias of each member: TabM.
    All,
}

/// The sizes of a [`TabM`], and how its members are combined.
#[derive(Debug, Clone, PartialEq)]
pub struct TabMConfig {
    /// Columns of the input that are numbers.
    pub n_inputs: usize,
    /// How they are embedded.
    pub numbers: NumberEmbedding,
    /// Members of the ensemble.
    pub n_members: usize,
    /// Which hidden layers have scales of each member.
    pub adapters: Adapters,
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// The probability of dropout after each hidden layer.
    pub dropout: f32,
    /// Columns of the output.
    pub n_outputs: usize,
    /// What the mean is taken of.
    pub mean_of: MeanOf,
}

/// What the prediction of an ensemble is the mean of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeanOf {
    /// The members' outputs: numbers.
    Outputs,
    /// The probabilities of the second of two classes, whose logits are the outputs; the result is the logit of the mean.
    Sigmoids,
    /// The probabilities of classes, whose logits are the outputs; the result is the logarithm of the mean.
    Softmaxes,
}

impl TabM {
    /// Adds the layers `numbers`, `embeddings.0`, …, `scales.0`, …, `hidden.0`, … and `head` to the parameters.
    /// [`Parameters::check`](crate::Parameters::check) refuses [`MeanOf::Softmaxes`] of one output, whose probability is always
    /// 1.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::tensor::Graph;
    /// use brisk_nn::{Adapters, MeanOf, NumberEmbedding, ParametersBuilder, TabM, TabMConfig};
    ///
    /// let mut builder = ParametersBuilder::new();
    /// let sizes = TabMConfig {
    ///     n_inputs: 2,
    ///     numbers: NumberEmbedding::PiecewiseLinear { edges: vec![vec![0.0, 0.5, 1.0]; 2], dim: 8 },
    ///     n_members: 4,
    ///     adapters: Adapters::All,
    ///     hidden: vec![32, 32],
    ///     dropout: 0.1,
    ///     n_outputs: 1,
    ///     mean_of: MeanOf::Outputs,
    /// };
    /// let model = TabM::new(&mut builder, &sizes, &[]);
    /// let params = builder.build(7);
    /// let shape = |graph: Graph| model.forward(&params.bind(&graph), &graph.constant("x", &[0.5; 6], &[3, 2])).shape().to_vec();
    /// assert_eq!(shape(Graph::training("train")), [4, 3, 1]);
    /// assert_eq!(shape(Graph::inference("predict")), [3, 1]);
    /// ```
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, config: &TabMConfig, categories: &[CategoricalColumn]) -> Self {
        let TabMConfig { n_inputs, n_members, adapters, ref hidden, n_outputs, .. } = *config;
        if config.mean_of == MeanOf::Softmaxes && n_outputs < 2 {
            params.refuse("tab_m", format!("`Softmaxes` of {n_outputs} output"), "an output for each class; `Sigmoids` for one");
        }
        let numbers = NumberLayer::new(params, "numbers", n_inputs, &config.numbers);
        let embeddings = CategoryEmbeddings::new(params, categories);
        // One draw for each feature and member, whatever a feature became.
        let dim = config.numbers.dim();
        let n_numbers = n_inputs * dim;
        let of_numbers = if numbers == NumberLayer::Plain { Init::Signs } else { Init::NormalRuns { len: dim } };
        let of_categories = categories.iter().map(|column| (column.dim, Init::NormalRuns { len: column.dim }));
        let scaled: Vec<(usize, Init)> = std::iter::once((n_numbers, of_numbers)).chain(of_categories).collect();
        let scale = |(i, &(len, init)): (usize, &(usize, Init))| params.add(format!("scales.{i}"), &[n_members, len], init);
        let scales = scaled.iter().enumerate().map(scale).collect();
        let mut n_in: usize = scaled.iter().map(|(len, _)| len).sum();
        let mut layers = Vec::with_capacity(hidden.len());
        for (i, &width) in hidden.iter().enumerate() {
            let name = format!("hidden.{i}");
            layers.push(match (adapters, i) {
                (Adapters::First, _) => Hidden::Shared(Linear::new(params, &name, n_in, width, Activation::relu())),
                (Adapters::All, 0) => Hidden::BatchEnsemble(BatchEnsemble::of_scaled(params, &name, n_members, n_in, width)),
                (Adapters::All, _) => Hidden::BatchEnsemble(BatchEnsemble::new(params, &name, n_members, n_in, width)),
            });
            n_in = width;
        }
        let weight = params.add("head.weight", &[n_members, n_in, n_outputs], Init::FanIn(n_in));
        let bias = params.add("head.bias", &[n_members, 1, n_outputs], Init::FanIn(n_in));
        Self { config: config.clone(), numbers, embeddings, scales, hidden: layers, head: [weight, bias] }
    }

    /// Records the model.
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` or the [categories](Bound::categories) have a different number of
    /// columns.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let embedded = match self.embeddings.embedded(params, x) {
            Ok(embedded) => embedded,
            Err(failed) => return failed,
        };
        let TabMConfig { n_members, dropout, .. } = self.config;
        let numbers = self.numbers.forward(params, x);
        let scales: Vec<&Tensor> = self.scales.iter().map(|&scale| params.tensor(scale)).collect();
        let (row, scales) = match &embedded[..] {
            [] => (numbers, scales[0].clone()),
            _ => (numbers.concat_columns(&embedded.iter().collect::<Vec<_>>()), scales[0].concat_columns(&scales[1..])),
        };
        let [n_rows, n_in] = [row.shape()[0], row.shape()[1]];
        // The members of a row follow each other, so that replicas draw the masks of one device.
        let of_members = row.reshape(&[n_rows, 1, n_in]).multiply(&scales.reshape(&[1, n_members, n_in]));
        let mut h = of_members.reshape(&[n_rows * n_members, n_in]);
        for layer in &self.hidden {
            h = match layer {
                Hidden::Shared(layer) => layer.forward(params, &h),
                Hidden::BatchEnsemble(layer) => layer.forward(params, &h),
            };
            h = Dropout::new(dropout).forward(params, &h);
        }
        let [weight, bias] = self.head.map(|id| params.tensor(id));
        let width = h.shape()[1];
        let by_member = h.reshape(&[n_rows, n_members, width]).permute(&[1, 0, 2]);
        let outputs = by_member.batched_matmul(weight, Transpose::None).add(bias);
        if x.graph().mode() == Mode::Training { outputs } else { self.config.mean_of.combined(&outputs) }
    }
}

impl MeanOf {
    /// The prediction of the ensemble: `[n_rows, n_outputs]` of `[n_members, n_rows, n_outputs]`.
    pub(crate) fn combined(self, outputs: &Tensor) -> Tensor {
        // The logarithm of a probability that all members round to 0.
        const LEAST: f32 = 1e-30;
        match self {
            Self::Outputs => outputs.mean(0),
            Self::Sigmoids => {
                // The mean of each class on its own, so that neither is rounded to 1.
                let [no, yes] = [-1.0, 1.0].map(|sign| outputs.map(|x| (x * sign).sigmoid()).mean(0));
                yes.map2(&no, |yes, no| (yes + LEAST).log() - (no + LEAST).log())
            }
            Self::Softmaxes => outputs.softmax(2).mean(0).map(|p| (p + LEAST).log()),
        }
    }
}

impl Module for TabM {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        TabM::forward(self, params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(self.config.n_inputs)
    }
}
