//! Networks, whitening and views of images, on both executors.

mod augmented_images;
mod networks;
mod views;
mod whitening;
