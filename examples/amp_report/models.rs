use brisk_nn::tensor::{Pool2d, PoolDivisor, Tensor};
use brisk_nn::{
    Activation, AvgPool2d, BatchNorm, BatchNormConfig, Bias, Bound, Checkpointed, Conv2d, Conv2dConfig, GlobalAvgPool2d, Linear,
    Module, ParametersBuilder, Sequential,
};

use crate::options::ModelName;

/// A model in blocks, and the shape of its rows.
#[derive(Debug)]
pub(crate) struct Model {
    blocks: Vec<Checkpointed<Sequential>>,
    pub(crate) row_shape: Vec<usize>,
}

/// What happens to activations between the forward and the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activations {
    Kept,
    /// Only the last activation of each block is kept; the others are recomputed.
    ComputedAgain,
    /// Gradients are accumulated over quarters of the batch, with the activations of one quarter at a time.
    OfQuarters,
}

/// Classes of both models.
pub(crate) const N_CLASSES: usize = 10;

impl Model {
    pub(crate) fn new(name: ModelName, params: &mut ParametersBuilder) -> Self {
        match name {
            ModelName::Mlp => mlp(params),
            ModelName::Convnet => convnet(params),
        }
    }

    pub(crate) fn forward(&self, params: &Bound, x: &Tensor, activations: Activations) -> Tensor {
        self.blocks.iter().fold(x.clone(), |x, block| match activations {
            Activations::Kept | Activations::OfQuarters => block.0.forward(params, &x),
            Activations::ComputedAgain => block.forward(params, &x),
        })
    }
}

/// Six layers of 512 units with GELU, two per block, on rows of 128 numbers.
fn mlp(params: &mut ParametersBuilder) -> Model {
    let mut layer = |i: usize, n_in: usize, n_out: usize, activation| -> Box<dyn Module> {
        Box::new(Linear::new(params, &format!("layers.{i}"), n_in, n_out, activation))
    };
    let block = |layers| Checkpointed(Sequential(layers));
    let blocks = (0..3)
        .map(|i| {
            let first = layer(2 * i, if i == 0 { 128 } else { 512 }, 512, Activation::gelu());
            block(vec![first, layer(2 * i + 1, 512, 512, Activation::gelu())])
        })
        .collect::<Vec<_>>();
    let head = block(vec![layer(6, 512, N_CLASSES, Activation::identity())]);
    Model { blocks: blocks.into_iter().chain([head]).collect(), row_shape: vec![128] }
}

/// Three blocks of two convolutions with batch normalisation and GELU, of 32, 64 and 128 channels, each followed by average
/// pooling, on images of 32 by 32.
fn convnet(params: &mut ParametersBuilder) -> Model {
    let mut n_in = 3;
    let mut blocks: Vec<_> = [32, 64, 128]
        .into_iter()
        .enumerate()
        .map(|(i, n_out)| {
            let mut modules: Vec<Box<dyn Module>> = Vec::new();
            for j in 0..2 {
                let conv = Conv2dConfig { padding: [1, 1], bias: Bias::None, ..Conv2dConfig::square(n_in, n_out, 3) };
                let norm = BatchNormConfig { activation: Activation::gelu(), ..BatchNormConfig::new(n_out) };
                modules.push(Box::new(Conv2d::new(params, &format!("blocks.{i}.conv{j}"), &conv)));
                modules.push(Box::new(BatchNorm::new(params, &format!("blocks.{i}.norm{j}"), &norm)));
                n_in = n_out;
            }
            modules.push(Box::new(AvgPool2d(Pool2d::square(2), PoolDivisor::Padded)));
            Checkpointed(Sequential(modules))
        })
        .collect();
    let head = Linear::new(params, "head", n_in, N_CLASSES, Activation::identity());
    blocks.push(Checkpointed(Sequential(vec![Box::new(GlobalAvgPool2d), Box::new(head)])));
    Model { blocks, row_shape: vec![32, 32, 3] }
}
