//! Batches of images: gathering with augmentation.

pub(crate) mod augment_images;
pub(crate) mod augment_images_cpu;
pub(crate) mod augmentation;
