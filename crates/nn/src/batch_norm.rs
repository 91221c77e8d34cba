use brisk_tensor::{Activation, BatchNormOptions, Mode, Statistics, Tensor};

use crate::{Bound, BufferId, Init, Module, ParameterId, ParametersBuilder};

/// Batch normalisation of each channel with an activation, optionally in ghost groups.
///
/// In a training graph it normalises by the statistics of the batch and updates the running statistics; in a graph for inference it normalises by the running statistics.
///
/// # Shapes
/// `x`: `[n_rows, n_channels]` or `[n_images, height, width, n_channels]`; `weight`, `bias`, `running_mean`, `running_var`: `[n_channels]`.
/// # Reference
/// `torch.nn.BatchNorm1d`, `torch.nn.BatchNorm2d`, with the same names, initial values and defaults.
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
    /// The number of equal groups of consecutive rows or images that are normalised separately in training; 1 for the whole batch.
    pub n_groups: usize,
    /// ε, added to the variance.
    pub eps: f32,
    /// The fraction of the running statistics that a batch replaces.
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
    /// PyTorch's defaults: a trained scale, ε 1e-5, momentum 0.1; one group and no activation.
    pub fn new(n_channels: usize) -> Self {
        Self { n_channels, scale: Scale::Trained, n_groups: 1, eps: 1e-5, momentum: 0.1, activation: Activation::identity() }
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

    /// Records the layer for the mode of the graph.
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` has a different number of channels, or the groups do not divide its rows; [`Error::Program`](brisk_tensor::Error::Program) if a group has fewer than two values
    /// per channel.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let _scope = params.enter(self.bias);
        let BatchNormConfig { n_groups, eps, momentum, activation, .. } = self.config.clone();
        let statistics = match x.graph().mode() {
            Mode::Training => Statistics::Batch { n_groups, momentum },
            Mode::Inference => Statistics::Running,
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
