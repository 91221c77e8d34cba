//! Synthetic images for benchmarks that need no data set: ten classes of coloured waves with noise.

use brisk_loader::Rows;
use brisk_nn::Philox;

/// The side length in pixels.
const SIDE: usize = 32;
pub(super) const N_CLASSES: usize = 10;
pub(super) const IMAGE: [usize; 3] = [SIDE, SIDE, 3];
/// The number of values of an image.
pub(super) const LEN: usize = SIDE * SIDE * 3;

/// `n` images with their classes, drawn at random with `seed`.
pub(super) fn drawn(n: usize, seed: u64) -> Rows<Vec<u8>, Vec<f32>> {
    let philox = Philox::new(seed);
    let mut pixels = Vec::with_capacity(n * LEN);
    let mut labels = Vec::with_capacity(n);
    for i in 0..n {
        let image = i as u32;
        let class = (philox.uniform(image, 0) * N_CLASSES as f32) as usize % N_CLASSES;
        let (fx, fy) = (1.0 + (class % 5) as f32, 1.0 + (class / 5) as f32 * 2.0);
        let phase = std::f32::consts::TAU * philox.uniform(image, 1);
        for at in 0..LEN {
            let (y, x, channel) = (at / 3 / SIDE, at / 3 % SIDE, at % 3);
            let angle = std::f32::consts::TAU * (fx * x as f32 + fy * y as f32) / SIDE as f32 + phase + channel as f32;
            let noise = 50.0 * (philox.uniform(image, 8 + at as u64) - 0.5);
            pixels.push((128.0 + 70.0 * angle.sin() + noise).clamp(0.0, 255.0) as u8);
        }
        labels.push(class as f32);
    }
    Rows::new(pixels, labels, LEN).expect("a label for each image")
}
