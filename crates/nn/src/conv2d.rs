use brisk_tensor::{Activation, Conv2dOptions, Tensor};

use crate::bound::Bound;
use crate::init::Init;
use crate::module::Module;
use crate::parameters::{ParameterId, ParametersBuilder};

/// A 2-D convolution of NHWC images with its bias and activation, in one kernel.
///
/// # Shapes
/// `x`: `[n_images, height, width, n_in]`; `weight`: `[n_out, kernel height, kernel width, n_in / n_groups]`; `bias`: `[n_out]`.
/// # Reference
/// `torch.nn.Conv2d`, with the same initial distribution; in PyTorch's weights, the last dimension is the second.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv2d {
    weight: ParameterId,
    bias: Option<ParameterId>,
    options: Conv2dOptions,
}

/// The sizes and options of a [`Conv2d`]; pairs are `[height, width]`.
///
/// # Examples
/// ```
/// use brisk_nn::{Activation, Bias, Conv2d, Conv2dConfig, ParametersBuilder};
///
/// let config = Conv2dConfig { stride: [2, 2], padding: [1, 1], bias: Bias::None, ..Conv2dConfig::square(3, 16, 3) };
/// let mut builder = ParametersBuilder::new();
/// let layer = Conv2d::new(&mut builder, "stem", &config);
/// assert_eq!(builder.build(0).entries()[0].shape, [16, 3, 3, 3]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Conv2dConfig {
    /// Input channels.
    pub n_in: usize,
    /// Output channels.
    pub n_out: usize,
    /// The size of the kernel in pixels.
    pub kernel: [usize; 2],
    /// The distance between windows in pixels.
    pub stride: [usize; 2],
    /// Pixels of zeros added on each side; `dilation * (kernel - 1) / 2` keeps the size at stride 1 if the kernel's is odd, as
    /// PyTorch's `padding="same"`.
    pub padding: [usize; 2],
    /// The distance between the taps of a window in pixels.
    pub dilation: [usize; 2],
    /// Groups of consecutive channels that are convolved separately: as many as channels for a depthwise convolution. They divide
    /// `n_in` and `n_out`.
    pub n_groups: usize,
    /// The initial values of the filters.
    pub filters: Filters,
    /// Whether there is a bias.
    pub bias: Bias,
    /// The activation.
    pub activation: Activation,
}

/// The initial values of a [`Conv2d`]'s filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filters {
    /// PyTorch's uniform distribution: [`Init::FanIn`].
    #[default]
    FanIn,
    /// The identity for as many filters of each group as it has input channels: [`Init::Dirac`].
    Dirac,
}

/// Whether a layer has a bias. A layer followed by a normalisation needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bias {
    /// A trained bias.
    #[default]
    Trained,
    /// No bias.
    None,
}

impl Conv2dConfig {
    /// A square kernel with stride 1, no padding, no dilation, one group, a bias and no activation.
    pub fn square(n_in: usize, n_out: usize, kernel: usize) -> Self {
        let activation = Activation::identity();
        Self {
            n_in,
            n_out,
            kernel: [kernel; 2],
            stride: [1; 2],
            padding: [0; 2],
            dilation: [1; 2],
            n_groups: 1,
            filters: Filters::FanIn,
            bias: Bias::Trained,
            activation,
        }
    }
}

impl Conv2d {
    /// Adds `name.weight` and, if there is one, `name.bias` to the parameters.
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, config: &Conv2dConfig) -> Self {
        let Conv2dConfig { n_in, n_out, kernel, stride, padding, dilation, n_groups, filters, bias, activation } = config.clone();
        // If groups do not divide the channels, recording the layer reports it.
        let [height, width] = kernel;
        let [group_in, group_out] = [n_in, n_out].map(|n| n.checked_div(n_groups).unwrap_or(n));
        let init = Init::FanIn(height * width * group_in);
        let filters = match filters {
            Filters::FanIn => init,
            Filters::Dirac => Init::Dirac { kernel, n_in: group_in, n_group_filters: group_out },
        };
        let weight = params.add(format!("{name}.weight"), &[n_out, height, width, group_in], filters);
        let bias = match bias {
            Bias::Trained => Some(params.add(format!("{name}.bias"), &[n_out], init)),
            Bias::None => None,
        };
        let options = Conv2dOptions { stride, padding, dilation, n_groups, activation };
        Self { weight, bias, options }
    }

    /// Records the layer.
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) unless `x` is a batch of images with `n_in` channels, or if `n_groups` does
    /// not divide them or the filters; [`Error::Program`](brisk_tensor::Error::Program) if no window fits, or for a stride or
    /// dilation of 0.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let _scope = params.enter(self.weight);
        let bias = self.bias.map(|bias| params.tensor(bias));
        x.conv2d_with(params.tensor(self.weight), bias, &self.options)
    }
}

impl Module for Conv2d {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        Conv2d::forward(self, params, x)
    }
}
