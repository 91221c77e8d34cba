use brisk_tensor::{Pool2d, PoolDivisor, Tensor};

use crate::bound::Bound;
use crate::module::Module;

/// The maximum of each window: [`Tensor::max_pool2d`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxPool2d(pub Pool2d);

/// The mean of each window: [`Tensor::avg_pool2d`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvgPool2d(pub Pool2d, pub PoolDivisor);

/// The maximum of each channel of each image: [`Tensor::global_max_pool2d`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlobalMaxPool2d;

/// The mean of each channel of each image: [`Tensor::global_avg_pool2d`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlobalAvgPool2d;

impl Module for MaxPool2d {
    #[track_caller]
    fn forward(&self, _: &Bound, x: &Tensor) -> Tensor {
        x.max_pool2d(&self.0)
    }
}

impl Module for AvgPool2d {
    #[track_caller]
    fn forward(&self, _: &Bound, x: &Tensor) -> Tensor {
        x.avg_pool2d(&self.0, self.1)
    }
}

impl Module for GlobalMaxPool2d {
    #[track_caller]
    fn forward(&self, _: &Bound, x: &Tensor) -> Tensor {
        x.global_max_pool2d()
    }
}

impl Module for GlobalAvgPool2d {
    #[track_caller]
    fn forward(&self, _: &Bound, x: &Tensor) -> Tensor {
        x.global_avg_pool2d()
    }
}
