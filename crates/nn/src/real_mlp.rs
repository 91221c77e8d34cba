use brisk_tensor::{Activation, Mode, Tensor};

use crate::bound::Bound;
use crate::categorical_column::CategoricalColumn;
use crate::category_embeddings::CategoryEmbeddings;
use crate::dropout::Dropout;
use crate::entry::Entry;
use crate::init::Init;
use crate::module::Module;
use crate::ntk_linear::NtkLinear;
use crate::number_embedding::{NumberEmbedding, NumberLayer};
use crate::parameter_group::ParameterGroup;
use crate::parameters::{ParameterId, Parameters, ParametersBuilder};
use crate::smooth_clip::SmoothClip;
use crate::tab_m::MeanOf;

/// RealMLP: a multi-layer perceptron for tables with robustly [scaled](SmoothClip) and embedded numbers, trained scales of its
/// inputs, and [`NtkLinear`] layers; several of them are an ensemble, which shares only the embeddings.
///
/// In training, the result has the outputs of each member, whose losses are averaged; otherwise it is that of the ensemble: the
/// mean of the members' numbers or probabilities.
///
/// # Shapes
/// `x`: `[n_rows, n_inputs]`; the result `[n_members, n_rows, n_outputs]` in graphs for training, else `[n_rows, n_outputs]`.
/// # Reference
/// Holzmüller, Grinsztajn & Steinwart 2024, *Better by Default: Strong Pre-Tuned MLPs and Boosted Trees on Tabular Data*,
/// arXiv:2407.04491.
#[derive(Debug, Clone, PartialEq)]
pub struct RealMlp {
    config: RealMlpConfig,
    numbers: NumberLayer,
    embeddings: CategoryEmbeddings,
    scale: ParameterId,
    hidden: Vec<NtkLinear>,
    head: NtkLinear,
}

/// The sizes of a [`RealMlp`], and how its members are combined.
#[derive(Debug, Clone, PartialEq)]
pub struct RealMlpConfig {
    /// How the columns of the input that are numbers are scaled.
    pub scaling: SmoothClip,
    /// How they are then embedded; [`NumberEmbedding::Pbld`] in the paper.
    pub numbers: NumberEmbedding,
    /// Members of the ensemble.
    pub n_members: usize,
    /// Units of each hidden layer.
    pub hidden: Vec<usize>,
    /// The activation after each hidden layer: SELU for classes and Mish for numbers in the paper.
    pub activation: Activation,
    /// The probability of dropout after each hidden layer.
    pub dropout: f32,
    /// Columns of the output.
    pub n_outputs: usize,
    /// What the mean is taken of.
    pub mean_of: MeanOf,
}

impl RealMlp {
    /// Adds the layers `numbers`, `embeddings.0`, …, `scale`, `hidden.0`, … and `head` to the parameters.
    /// [`Parameters::check`] refuses [`MeanOf::Softmaxes`] of one output, whose probability is always 1.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::tensor::Graph;
    /// use brisk_nn::{Activation, MeanOf, NumberEmbedding, ParametersBuilder, RealMlp, RealMlpConfig, SmoothClip};
    ///
    /// let x = [0.5, 1.0, 0.25, 3.0, 0.75, 1.0];
    /// let mut builder = ParametersBuilder::new();
    /// let sizes = RealMlpConfig {
    ///     scaling: SmoothClip::of_rows(&x, 2),
    ///     numbers: NumberEmbedding::Pbld { n_frequencies: 16, std: 0.1, dim: 4 },
    ///     n_members: 4,
    ///     hidden: vec![32, 32],
    ///     activation: Activation::mish(),
    ///     dropout: 0.15,
    ///     n_outputs: 1,
    ///     mean_of: MeanOf::Outputs,
    /// };
    /// let model = RealMlp::new(&mut builder, &sizes, &[]);
    /// let params = builder.build(7);
    /// let shape = |graph: Graph| model.forward(&params.bind(&graph), &graph.constant("x", &x, &[3, 2])).shape().to_vec();
    /// assert_eq!(shape(Graph::training("train")), [4, 3, 1]);
    /// assert_eq!(shape(Graph::inference("predict")), [3, 1]);
    /// ```
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, config: &RealMlpConfig, categories: &[CategoricalColumn]) -> Self {
        let RealMlpConfig { ref scaling, ref numbers, n_members, ref hidden, ref activation, n_outputs, mean_of, .. } = *config;
        if mean_of == MeanOf::Softmaxes && n_outputs < 2 {
            params.refuse(
                "real_mlp",
                format!("`Softmaxes` of {n_outputs} output"),
                "an output for each class; `Sigmoids` for one",
            );
        }
        let n_inputs = scaling.centers.len();
        let layer_of_numbers = NumberLayer::new(params, "numbers", n_inputs, numbers);
        let embeddings = CategoryEmbeddings::new(params, categories);
        let mut n_in = n_inputs * numbers.dim() + embeddings.n_embedded();
        let scale = params.add("scale", &[1, n_members, n_in], Init::Constant(1.0));
        let mut layers = Vec::with_capacity(hidden.len());
        for (i, &width) in hidden.iter().enumerate() {
            layers.push(NtkLinear::new(params, &format!("hidden.{i}"), n_members, n_in, width, activation.clone()));
            n_in = width;
        }
        let head = NtkLinear::head(params, "head", n_members, n_in, n_outputs);
        Self { config: config.clone(), numbers: layer_of_numbers, embeddings, scale, hidden: layers, head }
    }

    /// Records the model.
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` or the [categories](Bound::categories) have a different number of
    /// columns.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let numbers = self.numbers.forward(params, &self.config.scaling.forward(x));
        let row = self.embeddings.forward(params, &numbers);
        let [n_rows, n_in] = [row.shape()[0], row.shape()[1]];
        let scaled = row.reshape(&[n_rows, 1, n_in]).multiply(params.tensor(self.scale));
        let mut h = scaled.permute(&[1, 0, 2]);
        for layer in &self.hidden {
            h = layer.forward(params, &h);
            if self.config.dropout > 0.0 && x.graph().mode() == Mode::Training {
                // The members of a row follow each other, so that replicas draw the masks of one device.
                let by_row = Dropout::new(self.config.dropout).forward(params, &h.permute(&[1, 0, 2]));
                h = by_row.permute(&[1, 0, 2]);
            }
        }
        let outputs = self.head.forward(params, &h);
        if x.graph().mode() == Mode::Training { outputs } else { self.config.mean_of.combined(&outputs) }
    }

    /// The groups of parameters of the authors' package, for [`Adam`](crate::Adam) with decoupled weight decay: scales learn six
    /// times as fast as weights; biases, embeddings of numbers and the strengths of activations a tenth as fast. Biases do not
    /// decay; where rates differ, so does the decay. Parameters belong to a group by their names.
    pub fn groups(params: &Parameters, weight_decay: f32) -> Vec<ParameterGroup> {
        let kind = |entry: &Entry| match entry.name.rsplit('.').next() {
            _ if entry.name.starts_with("numbers.") => 1,
            Some("scale") => 2,
            Some("strength") => 1,
            Some("bias") => 3,
            _ => 0,
        };
        let settings = [(1.0, weight_decay), (0.1, 0.1 * weight_decay), (6.0, 6.0 * weight_decay), (0.1, 0.0)];
        let group = |(i, (lr_factor, decay)): (usize, (f32, f32))| {
            let ids = params.ids_where(|entry| kind(entry) == i);
            (!ids.is_empty()).then(|| ParameterGroup::new(ids).lr_factor(lr_factor).weight_decay(decay))
        };
        settings.into_iter().enumerate().filter_map(group).collect()
    }
}

impl Module for RealMlp {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        RealMlp::forward(self, params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(self.config.scaling.centers.len())
    }
}
