//! Batches of images: gathering with augmentation, and mixing.
//!
//! Augmentation follows from seed, epoch and row, as the order of rows does, so that an image looks the same in any batch and on
//! any replica. Draws are made once per image by a dispatch of their own, since ten rounds of Philox for each pixel would cost
//! more than the pixel. The row that a row is mixed with is drawn from the whole epoch, not from its batch, and so is the share:
//! by integer arithmetic from a table of quantiles, which the host computes once, so that all devices agree on every pixel.

pub(crate) mod augment_images;
pub(crate) mod augment_images_cpu;
pub(crate) mod augmentation;
pub(crate) mod mix_rows;
pub(crate) mod mix_rows_cpu;
pub(crate) mod mixing;
