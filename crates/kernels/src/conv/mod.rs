//! Convolutions and their gradients, as implicit matrix products over image patches.

pub(crate) mod conv2d;
pub(crate) mod conv2d_cpu;
pub(crate) mod conv2d_gpu;
pub(crate) mod conv2d_grad_input;
pub(crate) mod conv2d_grad_input_cpu;
pub(crate) mod conv2d_grad_weight;
pub(crate) mod conv2d_grad_weight_cpu;
pub(crate) mod modules;
pub(crate) mod patches;
pub(crate) mod window;
