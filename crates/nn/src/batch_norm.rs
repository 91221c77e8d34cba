use brisk_tensor::{Activation, BatchNormOptions, Error, Mode, Statistics, Tensor};

use crate::bound::Bound;
use crate::buffer::BufferId;
use crate::init::Init;
use crate::module::Module;
use crate::parameters::{ParameterId, ParametersBuilder};

/// Batch normalisation of each channel with an activation, optionally of ghost batches.
///
/// In a training graph it normalises by the statistics of the batch and updates the running statistics; in a graph for inference,
/// or if its parameters are [frozen](Bound::is_frozen), it normalises by the running statistics. If the graph has
/// [weights](brisk_tensor::Graph::set_row_weights) of the batch's rows, as those of trainers have where they are needed, the
/// statistics are weighted: the padding of a short last batch and other rows of weight 0 count as absent.
///
/// # Shapes
/// `x`: `[n_rows, n_channels]` or `[n_images, height, width, n_channels]`; `weight`, `bias`, `running_mean`, `running_var`:
/// `[n_channels]`.
/// # Reference
/// `torch.nn.BatchNorm1d`, `torch.nn.BatchNorm2d`, with the same names, initial values and defaults. Ghost batches: Hoffer et al.
/// 2017, arXiv:1705.08741.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchNorm {
    weight: Weight,
    bias: ParameterId,
    running_mean: BufferId,
    running_var: BufferId,
    config: BatchNormConfig,
}

#[derive(Debug, Clone, PartialEq)]
enum Weight {
    Trained(ParameterId),
    Frozen(BufferId),
}

/// The size and options of a [`BatchNorm`].
#[derive(Debug, Clone, PartialEq)]
pub struct BatchNormConfig {
    /// Channels, the last dimension of the input.
    pub n_channels: usize,
    /// Whether the scale is trained.
    pub scale: Scale,
    /// The size of ghost batches: in training, every `ghost_rows` consecutive rows or images are normalised by their own
    /// statistics; `None` normalises the whole batch. Replicas whose parts of a batch are made of whole ghost batches normalise
    /// as one device does.
    pub ghost_rows: Option<usize>,
    /// ε, added to the variance.
    pub eps: f32,
    /// The fraction of the running statistics that a batch replaces. PyTorch's `None`, the mean of all batches, is not supported.
    pub momentum: f32,
    /// The activation, which is fused into the kernel.
    pub activation: Activation,
}

/// Whether the scale of a normalisation, `weight`, is trained. It starts at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// The scale is a parameter.
    #[default]
    Trained,
    /// The scale is a buffer, which is not trained.
    Frozen,
}

impl BatchNormConfig {
    /// PyTorch's defaults: a trained scale, ε 1e-5, momentum 0.1; no ghost batches and no activation.
    pub fn new(n_channels: usize) -> Self {
        Self { n_channels, scale: Scale::Trained, ghost_rows: None, eps: 1e-5, momentum: 0.1, activation: Activation::identity() }
    }
}

impl BatchNorm {
    /// Adds `name.weight` and `name.bias` to the parameters, and `name.running_mean` and `name.running_var` to the buffers.
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, config: &BatchNormConfig) -> Self {
        let shape = &[config.n_channels];
        let weight = match config.scale {
            Scale::Trained => Weight::Trained(params.add(format!("{name}.weight"), shape, Init::Constant(1.0))),
            Scale::Frozen => Weight::Frozen(params.add_buffer(format!("{name}.weight"), shape, 1.0)),
        };
        let bias = params.add(format!("{name}.bias"), shape, Init::Constant(0.0));
        let running_mean = params.add_buffer(format!("{name}.running_mean"), shape, 0.0);
        let running_var = params.add_buffer(format!("{name}.running_var"), shape, 1.0);
        Self { weight, bias, running_mean, running_var, config: config.clone() }
    }

    /// Weight, if it is trained, and bias.
    fn parameters(&self) -> Vec<ParameterId> {
        match self.weight {
            Weight::Trained(id) => vec![id, self.bias],
            Weight::Frozen(_) => vec![self.bias],
        }
    }

    /// Records the layer for the mode of the graph.
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` has another number of channels;
    /// [`Error::Refused`](brisk_tensor::Error::Refused) if a training batch is not made of whole ghost batches;
    /// [`Error::Program`](brisk_tensor::Error::Program) if a ghost batch has fewer than two values per channel;
    /// [`Error::OneValue`](brisk_tensor::Error::OneValue) if the last batch of an epoch leaves one.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let _scope = params.enter(self.bias);
        let BatchNormConfig { ghost_rows, eps, momentum, activation, .. } = self.config.clone();
        let n_rows = x.shape().first().copied().unwrap_or(0);
        let statistics = match (x.graph().mode(), ghost_rows) {
            (Mode::Inference, _) => Statistics::Running,
            (Mode::Training, _) if params.is_frozen(&self.parameters()) => Statistics::Running,
            (Mode::Training, None) => Statistics::Batch { n_groups: 1, momentum },
            (Mode::Training, Some(ghost_rows)) if ghost_rows > 0 && n_rows.is_multiple_of(ghost_rows) => {
                Statistics::Batch { n_groups: n_rows / ghost_rows, momentum }
            }
            (Mode::Training, Some(ghost_rows)) => {
                let found = format!("a batch of {n_rows} rows for ghost batches of {ghost_rows}");
                let error = Error::Refused { op: "batch_norm", found, expected: "a multiple of the rows of a ghost batch" };
                return x.graph().failed(error, x.dtype(), x.shape());
            }
        };
        let weight = match self.weight {
            Weight::Trained(id) => params.tensor(id),
            Weight::Frozen(id) => params.buffer(id),
        };
        let (running_mean, running_var) = (params.buffer(self.running_mean), params.buffer(self.running_var));
        let (weight, bias) = (Some(weight), Some(params.tensor(self.bias)));
        x.batch_norm(&BatchNormOptions { weight, bias, running_mean, running_var, statistics, eps, activation })
    }
}

impl Module for BatchNorm {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        BatchNorm::forward(self, params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(self.config.n_channels)
    }
}
