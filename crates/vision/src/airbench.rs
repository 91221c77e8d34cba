use brisk_nn::tensor::{Activation, Pool2d, Tensor};
use brisk_nn::{
    BatchNorm, BatchNormConfig, Bias, Bound, BufferId, Conv2d, Conv2dConfig, Filters, Init, Module, ParameterId, Parameters,
    ParametersBuilder, Scale,
};

use crate::whitening::PatchCovariance;

/// The network of airbench, the fastest known way to 94 % on CIFAR-10: a whitening convolution with frozen filters, three groups
/// of two 3 × 3 convolutions with batch normalisation, the first of which is followed by max pooling, and a linear layer. Filters
/// are initialised to the identity as far as possible.
///
/// # Shapes
/// `x`: `[n, height * width * n_channels]` or `[n, height, width, n_channels]`, standardised; the result is `[n, n_classes]`.
/// # Reference
/// Jordan 2024, *94% on CIFAR-10 in 3.29 seconds on a single GPU*, arXiv:2404.00498.
#[derive(Debug, Clone)]
pub struct Airbench {
    config: AirbenchConfig,
    whitening: BufferId,
    whitening_bias: ParameterId,
    groups: Vec<[(Conv2d, BatchNorm); 2]>,
    head: ParameterId,
}

/// The sizes of an [`Airbench`].
#[derive(Debug, Clone, PartialEq)]
pub struct AirbenchConfig {
    /// Height, width and channels of an image; height and width are at least 9.
    pub image: [usize; 3],
    /// The number of classes.
    pub n_classes: usize,
    /// Channels of the three groups.
    pub widths: [usize; 3],
    /// The factor by which the outputs of the linear layer are multiplied.
    pub logit_scale: f32,
    /// The activation of the groups; the one after the whitening is GELU.
    pub activation: Activation,
    /// The initial value of the whitening bias.
    pub whitening_bias: Init,
    /// The fraction of the running statistics that each batch replaces.
    pub momentum: f32,
}

/// Height and width of the whitened patches.
const PATCH: [usize; 2] = [2, 2];

impl AirbenchConfig {
    /// The network of the 94 % recipe for 32 × 32 images of three channels and ten classes: 1.97 million parameters.
    pub fn cifar10() -> Self {
        Self {
            image: [32, 32, 3],
            n_classes: 10,
            widths: [64, 256, 256],
            logit_scale: 1.0 / 9.0,
            activation: Activation::gelu(),
            whitening_bias: Init::Constant(0.0),
            momentum: 0.4,
        }
    }

    /// The variant that is trained with Muon: the outputs are divided by the last width, and the whitening bias has PyTorch's
    /// default initialisation.
    pub(crate) fn cifar10_muon() -> Self {
        let config = Self::cifar10();
        Self { logit_scale: 1.0 / config.widths[2] as f32, whitening_bias: Init::FanIn(config.patch_len()), ..config }
    }

    /// The number of values of a whitened patch.
    pub(crate) fn patch_len(&self) -> usize {
        PATCH[0] * PATCH[1] * self.image[2]
    }
}

impl Airbench {
    /// Adds the network's parameters. The whitening filters are zeros until [`Recipe::initialise`](crate::Recipe::initialise)
    /// sets them.
    pub fn new(params: &mut ParametersBuilder, config: &AirbenchConfig) -> Self {
        let n_whitened = 2 * config.patch_len();
        let shape = [n_whitened, PATCH[0], PATCH[1], config.image[2]];
        let whitening = params.add_buffer("whiten.weight", &shape, 0.0);
        let whitening_bias = params.add("whiten.bias", &[n_whitened], config.whitening_bias);
        let mut n_in = n_whitened;
        let groups = config.widths.iter().enumerate().map(|(i, &width)| {
            let n_in = std::mem::replace(&mut n_in, width);
            params.within(&format!("layers.{i}"), |params| {
                [conv_norm(params, 1, [n_in, width], config), conv_norm(params, 2, [width, width], config)]
            })
        });
        let groups = groups.collect();
        let head = params.add("head.weight", &[config.n_classes, n_in], Init::FanIn(n_in));
        Self { config: config.clone(), whitening, whitening_bias, groups, head }
    }

    /// Height and width of the whitened patches.
    pub(crate) fn patch(&self) -> [usize; 2] {
        PATCH
    }

    /// Sets the filters of the first layer to those that whiten patches of [`patch`](Self::patch) pixels, with `eps` added to
    /// their variances, and their negatives.
    ///
    /// # Errors
    /// [`Shape`](brisk_nn::Error::Shape) for a covariance of patches of another size.
    pub(crate) fn set_whitening(
        &self,
        params: &mut Parameters,
        covariance: &PatchCovariance,
        eps: f32,
    ) -> Result<(), brisk_nn::Error> {
        params.set_initial_buffer(self.whitening, &covariance.filters_with_negatives(eps))
    }

    /// The bias of the whitening.
    pub(crate) fn whitening_bias(&self) -> ParameterId {
        self.whitening_bias
    }

    /// The weight of the linear layer.
    pub(crate) fn head(&self) -> ParameterId {
        self.head
    }
}

/// Convolution number `i` of a group, and the normalisation after it.
fn conv_norm(
    params: &mut ParametersBuilder,
    i: usize,
    [n_in, n_out]: [usize; 2],
    config: &AirbenchConfig,
) -> (Conv2d, BatchNorm) {
    let conv =
        Conv2dConfig { padding: [1, 1], bias: Bias::None, filters: Filters::Dirac, ..Conv2dConfig::square(n_in, n_out, 3) };
    let norm = BatchNormConfig {
        scale: Scale::Frozen,
        // The default eps, not the authors' 1e-12, with which a channel without variance multiplies the rounding errors of its
        // gradients by 10^6, as for images that are all of one colour.
        momentum: config.momentum,
        activation: config.activation.clone(),
        ..BatchNormConfig::new(n_out)
    };
    (Conv2d::new(params, &format!("conv{i}"), &conv), BatchNorm::new(params, &format!("norm{i}"), &norm))
}

impl Module for Airbench {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let [height, width, n_channels] = self.config.image;
        let images = x.reshape(&[x.shape()[0], height, width, n_channels]);
        let weight = params.buffer(self.whitening);
        let bias = params.tensor(self.whitening_bias);
        let mut x = images.conv2d(weight, Some(bias), [1, 1], [0, 0], Activation::gelu());
        for [(conv1, norm1), (conv2, norm2)] in &self.groups {
            let pooled = conv1.forward(params, &x).max_pool2d(&Pool2d::square(2));
            x = norm2.forward(params, &conv2.forward(params, &norm1.forward(params, &pooled)));
        }
        let _scope = params.enter(self.head);
        x.global_max_pool2d().matmul(params.tensor(self.head), brisk_nn::tensor::Transpose::B) * self.config.logit_scale
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(self.config.image.iter().product())
    }
}
