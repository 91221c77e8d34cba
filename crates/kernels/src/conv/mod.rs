//! Convolutions and their gradients: dense ones as implicit matrix products over image patches, those with groups or dilation directly.

pub(crate) mod conv2d;
pub(crate) mod conv2d_cpu;
pub(crate) mod conv2d_gpu;
pub(crate) mod conv2d_grad_input;
pub(crate) mod conv2d_grad_input_cpu;
pub(crate) mod conv2d_grad_weight;
pub(crate) mod conv2d_grad_weight_cpu;
pub(crate) mod grouped_conv2d;
pub(crate) mod grouped_conv2d_cpu;
pub(crate) mod grouped_conv2d_grad_input;
pub(crate) mod grouped_conv2d_grad_input_cpu;
pub(crate) mod grouped_conv2d_grad_weight;
pub(crate) mod grouped_conv2d_grad_weight_cpu;
pub(crate) mod grouped_shape;
pub(crate) mod modules;
pub(crate) mod over_images;
pub(crate) mod parts;
pub(crate) mod patches;
pub(crate) mod window;
mod window_sums;
