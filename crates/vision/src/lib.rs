#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod airbench;
mod augmented_images;
mod error;
#[cfg(any(doc, doctest))]
pub mod guide;
mod mixed_images;
mod recipe;
mod resnet9;
mod views;
mod whitening;

pub use airbench::{Airbench, AirbenchConfig};
pub use augmented_images::AugmentedImages;
pub use error::Error;
pub use mixed_images::MixedImages;
pub use recipe::{Network, NetworkConfig, PAGE_RUNGS, Rates, Recipe, Whitening};
pub use resnet9::{NormOrder, ResNet9, ResNet9Config};
pub use views::{View, WithViews};
pub use whitening::{PatchCovariance, Patches};

pub use brisk_nn as nn;
pub use brisk_nn::tensor::program::kernels;
pub use brisk_nn::tensor::{Border, Flip, ImageAugmentation, Mixing};
