//! Photos in JPEG files, as data sets of images are published: one folder for each class. They are drawn, so that no data set is
//! needed.

use std::f32::consts::TAU;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use brisk_loader::{Layout, RowBuffers, RowSelection, RowSource};
use brisk_nn::Philox;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ExtendedColorType};
use rayon::prelude::*;

pub(super) const N_CLASSES: usize = 10;
/// The side length of the images that networks are trained on.
pub(super) const SIDE: usize = 32;
pub(super) const IMAGE: [usize; 3] = [SIDE, SIDE, 3];
const LEN: usize = SIDE * SIDE * 3;
/// Height and width of a photo.
const PHOTO: [usize; 2] = [192, 256];
/// The side length of squares of noise, which are still there when the photo is `SIDE` pixels high.
const SPECK: usize = 8;
/// Pixels around an image out of which it is cropped.
const PAD: usize = 4;

/// Draws `n` photos in `folder`: waves in one of ten directions and lengths, under noise of several times their contrast.
pub(super) fn draw(folder: &Path, n: usize, seed: u64) -> Result<()> {
    for class in 0..N_CLASSES {
        let class = folder.join(class.to_string());
        fs::create_dir_all(&class).with_context(|| format!("{}: cannot be made", class.display()))?;
    }
    (0..n).into_par_iter().try_for_each(|i| {
        let class = i % N_CLASSES;
        let path = folder.join(class.to_string()).join(format!("{i:06}.jpg"));
        let write = || -> Result<()> {
            let mut file = BufWriter::new(fs::File::create(&path)?);
            let [height, width] = PHOTO.map(|side| side as u32);
            JpegEncoder::new_with_quality(&mut file, 90).encode(
                &photo(class, i, seed),
                width,
                height,
                ExtendedColorType::Rgb8,
            )?;
            Ok(file.flush()?)
        };
        write().with_context(|| format!("{}: cannot be written", path.display()))
    })
}

fn photo(class: usize, i: usize, seed: u64) -> Vec<u8> {
    let (philox, i) = (Philox::new(seed), i as u32);
    let draw = |at: usize| philox.uniform(i, at as u64);
    let [fx, fy] = [1.0 + (class % 5) as f32, 1.0 + (class / 5) as f32 * 2.0];
    let phase = TAU * draw(0);
    // Some photos show almost nothing of their class.
    let contrast = 20.0 * draw(1).powi(2);
    let [height, width] = PHOTO;
    let n_specks = width / SPECK;
    let specks: Vec<f32> = (0..height / SPECK * n_specks).map(|speck| 220.0 * (draw(2 + speck) - 0.5)).collect();
    let mut pixels = Vec::with_capacity(height * width * 3);
    // Fine noise, which is averaged out when the photo is resized but takes its time to decode.
    let mut grain = i.wrapping_mul(0x9E37_79B9) | 1;
    for y in 0..height {
        for x in 0..width {
            let angle = TAU * (fx * x as f32 + fy * y as f32) / height as f32 + phase;
            let speck = specks[y / SPECK * n_specks + x / SPECK];
            for channel in 0..3_u8 {
                grain = grain.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let fine = (grain >> 24) as f32 / 8.0 - 16.0;
                let wave = contrast * (angle + f32::from(channel)).sin();
                pixels.push((128.0 + wave + speck + fine).clamp(0.0, 255.0) as u8);
            }
        }
    }
    pixels
}

/// Photos that are decoded and resized each time they are read.
#[derive(Debug)]
pub(super) struct Photos {
    files: Vec<(PathBuf, f32)>,
}

impl Photos {
    /// The photos of a folder.
    pub(super) fn of(folder: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for class in 0..N_CLASSES {
            let mut names = fs::read_dir(folder.join(class.to_string()))?
                .map(|entry| Ok(entry?.path()))
                .collect::<io::Result<Vec<PathBuf>>>()?;
            names.sort();
            files.extend(names.into_iter().map(|path| (path, class as f32)));
        }
        Ok(Self { files })
    }
}

impl RowSource for Photos {
    type Feature = u8;
    type Error = io::Error;

    fn layout(&self) -> Layout {
        Layout { grain: 1, ..Layout::new(self.files.len(), LEN) }
    }

    fn gather(&self, rows: RowSelection<'_>, mut into: RowBuffers<'_, u8>) -> io::Result<()> {
        into.check(&rows, &self.layout()).map_err(io::Error::other)?;
        rows.for_each_block(|first, rows| {
            for (row, i) in rows.iter().zip(first..) {
                let (path, class) = &self.files[*row as usize];
                if let Some(labels) = &mut into.labels {
                    labels[i] = *class;
                }
                if let Some(features) = &mut into.features {
                    decode(path, &mut features[i * LEN..][..LEN])?;
                }
            }
            Ok(())
        })
    }
}

/// The square in the middle of a photo, in `SIDE` by `SIDE` pixels.
fn decode(path: &Path, pixels: &mut [u8]) -> io::Result<()> {
    let photo: DynamicImage = image::open(path).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    let side = SIDE as u32;
    pixels.copy_from_slice(&photo.resize_to_fill(side, side, FilterType::Triangle).into_rgb8());
    Ok(())
}

/// Images that are padded by reflection, cropped and flipped at random on the CPU, each time they are read.
#[derive(Debug)]
pub(super) struct AugmentedRows<S> {
    rows: S,
    n_read: AtomicU32,
}

impl<S> AugmentedRows<S> {
    pub(super) const fn new(rows: S) -> Self {
        Self { rows, n_read: AtomicU32::new(0) }
    }
}

impl<S: RowSource<Feature = u8>> RowSource for AugmentedRows<S> {
    type Feature = u8;
    type Error = S::Error;

    fn layout(&self) -> Layout {
        self.rows.layout()
    }

    fn gather(&self, rows: RowSelection<'_>, mut into: RowBuffers<'_, u8>) -> Result<(), S::Error> {
        let features = into.features.take();
        let Some(features) = features else { return self.rows.gather(rows, into) };
        self.rows.gather(rows, RowBuffers { features: Some(&mut *features), ..into })?;
        let philox = Philox::new(7);
        let mut original = [0; LEN];
        for image in features.chunks_exact_mut(LEN) {
            let number = self.n_read.fetch_add(1, Ordering::Relaxed);
            let offset = |at| (philox.uniform(number, at) * (2 * PAD + 1) as f32) as usize;
            original.copy_from_slice(image);
            shift(&original, image, [offset(0), offset(1)], philox.uniform(number, 2) < 0.5);
        }
        Ok(())
    }
}

/// `image` = the original at this offset within its padding, mirrored if it `is_flipped`.
fn shift(original: &[u8; LEN], image: &mut [u8], [top, left]: [usize; 2], is_flipped: bool) {
    let reflected = |at: usize| {
        let at = (at as isize - PAD as isize).unsigned_abs();
        if at < SIDE { at } else { 2 * (SIDE - 1) - at }
    };
    for (y, line) in image.chunks_exact_mut(SIDE * 3).enumerate() {
        let from = reflected(y + top) * SIDE;
        for (x, pixel) in line.chunks_exact_mut(3).enumerate() {
            let x = if is_flipped { SIDE - 1 - x } else { x };
            pixel.copy_from_slice(&original[(from + reflected(x + left)) * 3..][..3]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_cropped_out_of_its_reflected_padding() {
        let original = std::array::from_fn(|i| (i / 3 % SIDE) as u8);
        let mut image = [0; LEN];
        let line = |image: &[u8; LEN]| -> Vec<u8> { image[..SIDE * 3].iter().copied().step_by(3).collect() };
        shift(&original, &mut image, [PAD, PAD], false);
        assert_eq!(image, original);
        shift(&original, &mut image, [0, 0], false);
        assert_eq!(line(&image)[..6], [4, 3, 2, 1, 0, 1]);
        shift(&original, &mut image, [2 * PAD, 2 * PAD], true);
        assert_eq!(line(&image)[..6], [27, 28, 29, 30, 31, 30]);
    }
}
