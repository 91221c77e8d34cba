use brisk_nn::tensor::{Activation, Pool2d, Tensor, Transpose};
use brisk_nn::{
    BatchNorm, BatchNormConfig, Bias, Bound, BufferId, Conv2d, Conv2dConfig, Init, Module, ParameterId, Parameters,
    ParametersBuilder, Scale,
};

use crate::whitening::PatchCovariance;

/// The nine-layer residual network of Page's *How to train your ResNet*, with a setting for each of its tricks.
///
/// # Shapes
/// `x`: `[n, height * width * n_channels]` or `[n, height, width, n_channels]`, standardised; the result is `[n, n_classes]`.
/// # Reference
/// Page 2019, *How to train your ResNet 8: Bag of tricks*; `new_dawn.py` of davidcpage/cifar10-fast.
#[derive(Debug, Clone)]
pub struct ResNet9 {
    config: ResNet9Config,
    whitening: Option<BufferId>,
    prep: Block,
    layer1: Block,
    residual1: [Block; 2],
    layer2: Block,
    layer3: Block,
    residual3: [Block; 2],
    head: ParameterId,
}

/// The sizes and tricks of a [`ResNet9`].
#[derive(Debug, Clone, PartialEq)]
pub struct ResNet9Config {
    /// Height, width and channels of an image; height and width are at least 8.
    pub image: [usize; 3],
    /// The number of classes.
    pub n_classes: usize,
    /// Channels of the four stages.
    pub widths: [usize; 4],
    /// Whether the network starts with a frozen convolution that whitens patches of 3 × 3 pixels, followed by a 1 × 1 convolution
    /// instead of a 3 × 3 one.
    pub is_whitened: bool,
    /// At which point stages are pooled.
    pub order: NormOrder,
    /// The activation.
    pub activation: Activation,
    /// The number of images of a ghost batch, which is normalised independently; the batch size must be a multiple of it. `None`
    /// normalises whole batches.
    pub ghost_rows: Option<usize>,
    /// Whether the scale of the normalisation layers is trained.
    pub scale: Scale,
    /// The factor by which the outputs of the linear layer are multiplied.
    pub logit_scale: f32,
}

/// At which point a stage of the network is pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormOrder {
    /// Convolution, normalisation, activation, pooling.
    PoolLast,
    /// Convolution, pooling, normalisation, activation: normalisation and activation work on a quarter of the pixels.
    PoolFirst,
}

impl ResNet9Config {
    /// The network of the final 94 % recipe, for 32 × 32 images of three channels, ten classes and batches of 512: 6.57 million
    /// parameters.
    pub fn cifar10() -> Self {
        Self {
            image: [32, 32, 3],
            n_classes: 10,
            widths: [64, 128, 256, 512],
            is_whitened: true,
            order: NormOrder::PoolFirst,
            activation: Activation::celu(0.3),
            ghost_rows: Some(32),
            scale: Scale::Frozen,
            logit_scale: 1.0 / 16.0,
        }
    }

    /// The network before the tricks: ReLU, pooling last, plain batch normalisation, no whitening.
    pub fn baseline() -> Self {
        Self {
            is_whitened: false,
            order: NormOrder::PoolLast,
            activation: Activation::relu(),
            ghost_rows: None,
            scale: Scale::Trained,
            logit_scale: 1.0 / 8.0,
            ..Self::cifar10()
        }
    }
}

/// A convolution with its normalisation and activation.
#[derive(Debug, Clone)]
struct Block {
    conv: Conv2d,
    norm: BatchNorm,
}

impl Block {
    fn new(params: &mut ParametersBuilder, name: &str, kernel: usize, n_in: usize, n_out: usize, config: &ResNet9Config) -> Self {
        let conv = Conv2dConfig { padding: [kernel / 2; 2], bias: Bias::None, ..Conv2dConfig::square(n_in, n_out, kernel) };
        let norm = BatchNormConfig {
            scale: config.scale,
            ghost_rows: config.ghost_rows,
            activation: config.activation.clone(),
            ..BatchNormConfig::new(n_out)
        };
        params
            .within(name, |params| Self { conv: Conv2d::new(params, "conv", &conv), norm: BatchNorm::new(params, "norm", &norm) })
    }

    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        self.norm.forward(params, &self.conv.forward(params, x))
    }

    fn forward_pooled(&self, params: &Bound, x: &Tensor, order: NormOrder) -> Tensor {
        let pool = Pool2d::square(2);
        match order {
            NormOrder::PoolLast => self.forward(params, x).max_pool2d(&pool),
            NormOrder::PoolFirst => self.norm.forward(params, &self.conv.forward(params, x).max_pool2d(&pool)),
        }
    }
}

impl ResNet9 {
    /// Adds the network's parameters. The whitening filters are zeros until [`Recipe::initialise`](crate::Recipe::initialise)
    /// sets them.
    pub fn new(params: &mut ParametersBuilder, config: &ResNet9Config) -> Self {
        let n_channels = config.image[2];
        let [w0, w1, w2, w3] = config.widths;
        let n_whitened = 9 * n_channels;
        let whitening = config.is_whitened.then(|| params.add_buffer("whiten.weight", &[n_whitened, 3, 3, n_channels], 0.0));
        let prep = if config.is_whitened {
            Block::new(params, "prep", 1, n_whitened, w0, config)
        } else {
            Block::new(params, "prep", 3, n_channels, w0, config)
        };
        let mut block = |name: &str, n_in, n_out| Block::new(params, name, 3, n_in, n_out, config);
        let layer1 = block("layer1", w0, w1);
        let residual1 = [block("residual1.0", w1, w1), block("residual1.1", w1, w1)];
        let layer2 = block("layer2", w1, w2);
        let layer3 = block("layer3", w2, w3);
        let residual3 = [block("residual3.0", w3, w3), block("residual3.1", w3, w3)];
        let head = params.add("head.weight", &[config.n_classes, w3], Init::FanIn(w3));
        Self { config: config.clone(), whitening, prep, layer1, residual1, layer2, layer3, residual3, head }
    }

    /// Whether the first layer whitens patches.
    pub(crate) fn is_whitened(&self) -> bool {
        self.whitening.is_some()
    }

    /// Height and width of the whitened patches.
    pub(crate) fn patch(&self) -> [usize; 2] {
        [3, 3]
    }

    /// Sets the filters of the first layer to those that whiten patches of [`patch`](Self::patch) pixels, with `eps` added to
    /// their variances. Does nothing for a network without whitening.
    ///
    /// # Errors
    /// [`Shape`](brisk_nn::Error::Shape) for a covariance of patches of another size.
    pub(crate) fn set_whitening(
        &self,
        params: &mut Parameters,
        covariance: &PatchCovariance,
        eps: f32,
    ) -> Result<(), brisk_nn::Error> {
        self.whitening.map_or(Ok(()), |id| params.set_initial_buffer(id, &covariance.filters(eps)))
    }
}

impl Module for ResNet9 {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let [height, width, n_channels] = self.config.image;
        let order = self.config.order;
        let mut x = x.reshape(&[x.shape()[0], height, width, n_channels]);
        if let Some(whitening) = self.whitening {
            x = x.conv2d(params.buffer(whitening), None, [1, 1], [1, 1], Activation::identity());
        }
        x = self.prep.forward(params, &x);
        x = self.layer1.forward_pooled(params, &x, order);
        x = &x + &residual(&self.residual1, params, &x);
        x = self.layer2.forward_pooled(params, &x, order);
        x = self.layer3.forward_pooled(params, &x, order);
        x = &x + &residual(&self.residual3, params, &x);
        let _scope = params.enter(self.head);
        x.global_max_pool2d().matmul(params.tensor(self.head), Transpose::B) * self.config.logit_scale
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(self.config.image.iter().product())
    }
}

fn residual([first, second]: &[Block; 2], params: &Bound, x: &Tensor) -> Tensor {
    second.forward(params, &first.forward(params, x))
}
