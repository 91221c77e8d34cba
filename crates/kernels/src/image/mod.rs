//! Batches of images: gathering with augmentation, and mixing.

pub(crate) mod augment_images;
pub(crate) mod augment_images_cpu;
pub(crate) mod augmentation;
pub(crate) mod mix_rows;
pub(crate) mod mix_rows_cpu;
pub(crate) mod mixing;
