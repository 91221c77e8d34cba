//! Normalisation along rows or channels: batch norm, layer norm, softmax.

pub(crate) mod batch_norm;
pub(crate) mod batch_norm_cpu;
mod batch_norm_grad;
pub(crate) mod batch_norm_shape;
pub(crate) mod layer_norm;
pub(crate) mod layer_norm_cpu;
pub(crate) mod softmax;
pub(crate) mod softmax_cpu;
