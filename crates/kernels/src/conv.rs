//! Convolutions and their gradients: dense ones as matrix products over image patches, those with groups or dilation directly.
//!
//! No patches are copied to memory: a product reads windows from the images themselves. On the CPU, convolutions of few channels
//! keep the sums of a tile of pixels in registers (`window_sums.rs`), in vectors of half the width where full ones would be half
//! empty; the others multiply lines or patches that fit the cache. Gradients are gathered, without atomics.

mod by_pairs;
pub(crate) mod conv2d;
pub(crate) mod conv2d_cpu;
pub(crate) mod conv2d_gpu;
pub(crate) mod conv2d_grad_input;
pub(crate) mod conv2d_grad_input_cpu;
pub(crate) mod conv2d_grad_weight;
pub(crate) mod conv2d_grad_weight_cpu;
pub(crate) mod conv_shape;
mod grouped_cpu;
mod grouped_gpu;
mod kernel_over_images;
pub(crate) mod modules;
pub(crate) mod over_images;
pub(crate) mod parts;
pub(crate) mod patches;
pub(crate) mod window;
mod window_sums;
