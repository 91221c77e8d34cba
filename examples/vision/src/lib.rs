//! Code shared by the examples that train on images.

pub mod cifar10;
pub mod images;
