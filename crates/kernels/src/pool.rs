//! Pooling over windows of images.

pub(crate) mod avg_pool2d;
pub(crate) mod avg_pool2d_cpu;
pub(crate) mod max_pool2d;
pub(crate) mod max_pool2d_cpu;
pub(crate) mod pool_shape;
