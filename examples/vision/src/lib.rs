//! What the examples that train on images share.

pub mod cifar10;
pub mod images;
