use rayon::prelude::*;

use super::augmentation::{Border, Draws};
use crate::cpu::team::OnTeam;
use crate::image::augment_images::AugmentImages;
use crate::run_state::EPOCH;
use crate::sizes::in_u32;
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

/// Images per task.
const BLOCK_IMAGES: usize = 16;

/// Which images of the table a batch has, and the ids by which random numbers are drawn for them.
pub(crate) struct ImageBatch<'a> {
    pub(crate) rows: &'a [u32],
    pub(crate) ids: &'a [u32],
    pub(crate) order: &'a [u32],
}

pub(crate) fn run<T: Copy + Into<f32> + Sync, Y: Element>(
    kernel: &AugmentImages,
    table: &[T],
    batch: &ImageBatch<'_>,
    mean: &[f32],
    inv_std: &[f32],
    y: &mut [Y],
) {
    let crop_len = kernel.crop[0] * kernel.crop[1] * kernel.image[2];
    let blocks = batch.rows.par_chunks(BLOCK_IMAGES).zip(batch.ids.par_chunks(BLOCK_IMAGES));
    blocks.zip(y.par_chunks_mut(BLOCK_IMAGES * crop_len)).for_each_on_team(|((rows, ids), y)| {
        let mut lines = Lines::of(kernel);
        for ((y, &row), &id) in y.chunks_exact_mut(crop_len).zip(rows).zip(ids) {
            let draws = kernel.augmentation.draws(kernel.image, kernel.crop, id, batch.order[EPOCH]);
            let row = row.wrapping_sub(in_u32(kernel.first_row)) as usize;
            if row < kernel.n_table_rows {
                let len = mean.len();
                let source = Source { image: &table[row * len..][..len], mean, inv_std };
                vectorised(inlined!(|| augment(kernel, &draws, &source, &mut lines, y)));
            } else if kernel.first_row == 0 {
                y.fill(Y::narrow(0.0));
            }
        }
    });
}

/// An image of the table with the statistics of its values.
struct Source<'a, T> {
    image: &'a [T],
    mean: &'a [f32],
    inv_std: &'a [f32],
}

/// Memory for a line of pixels in f32.
struct Lines {
    /// Of the image.
    source: Vec<f32>,
    /// Of the crop.
    crop: Vec<f32>,
}

impl Lines {
    fn of(kernel: &AugmentImages) -> Self {
        let AugmentImages { image: [_, width, n_channels], crop: [_, crop_width], .. } = *kernel;
        Self { source: vec![0.0; width * n_channels], crop: vec![0.0; crop_width * n_channels] }
    }
}

#[inline(always)]
fn augment<T: Copy + Into<f32>, Y: Element>(
    kernel: &AugmentImages,
    draws: &Draws,
    source: &Source<'_, T>,
    lines: &mut Lines,
    y: &mut [Y],
) {
    let AugmentImages { image: [height, width, n_channels], crop: [_, crop_width], augmentation, .. } = *kernel;
    let is_reflected = augmentation.border == Border::Reflect;
    for (i, y) in y.chunks_exact_mut(crop_width * n_channels).enumerate() {
        match shown_at(i, draws.top, height, is_reflected) {
            None => lines.crop.fill(0.0),
            Some(top) => {
                let pixels = top * width * n_channels..(top + 1) * width * n_channels;
                let statistics = source.mean[pixels.clone()].iter().zip(&source.inv_std[pixels.clone()]);
                for ((line, &x), (mean, inv_std)) in lines.source.iter_mut().zip(&source.image[pixels]).zip(statistics) {
                    *line = (x.into() - mean) * inv_std * draws.factor + draws.summand;
                }
                place(&lines.source, draws, n_channels, is_reflected, &mut lines.crop);
            }
        }
        if (in_u32(i).wrapping_sub(draws.cutout[0]) as usize) < augmentation.cutout {
            let first = draws.cutout[1] as usize * n_channels;
            lines.crop[first..first + augmentation.cutout * n_channels].fill(0.0);
        }
        for (y, &value) in y.iter_mut().zip(lines.crop.iter()) {
            *y = Y::narrow(value);
        }
    }
}

/// Fills a line of the crop with the pixels of `line` that it shows.
#[inline(always)]
fn place(line: &[f32], draws: &Draws, n_channels: usize, is_reflected: bool, crop: &mut [f32]) {
    let (width, crop_width) = (line.len() / n_channels, crop.len() / n_channels);
    let column = |at: usize| if draws.is_flipped { crop_width - 1 - at } else { at };
    // Without the flip: the columns of the crop that show the line itself rather than its padding.
    let before = usize::try_from(-i64::from(draws.left)).unwrap_or(0).min(crop_width);
    let skipped = usize::try_from(draws.left).unwrap_or(0).min(width);
    let n_inside = (crop_width - before).min(width - skipped);
    for at in (0..before).chain(before + n_inside..crop_width) {
        let y = &mut crop[column(at) * n_channels..][..n_channels];
        match shown_at(at, draws.left, width, is_reflected) {
            Some(col) => y.copy_from_slice(&line[col * n_channels..][..n_channels]),
            None => y.fill(0.0),
        }
    }
    let inside = &line[skipped * n_channels..][..n_inside * n_channels];
    let first = if draws.is_flipped { crop_width - before - n_inside } else { before };
    let crop = &mut crop[first * n_channels..][..n_inside * n_channels];
    match (draws.is_flipped, n_channels) {
        (false, _) => crop.copy_from_slice(inside),
        (true, 1) => mirror::<1>(inside, crop),
        (true, 3) => mirror::<3>(inside, crop),
        (true, 4) => mirror::<4>(inside, crop),
        (true, _) => {
            let pixels = inside.chunks_exact(n_channels).rev();
            crop.chunks_exact_mut(n_channels).zip(pixels).for_each(|(y, pixel)| y.copy_from_slice(pixel));
        }
    }
}

/// The pixels of `line` from the last to the first.
#[inline(always)]
fn mirror<const N_CHANNELS: usize>(line: &[f32], y: &mut [f32]) {
    let pixels = line.as_chunks::<N_CHANNELS>().0.iter().rev();
    y.as_chunks_mut::<N_CHANNELS>().0.iter_mut().zip(pixels).for_each(|(y, pixel)| *y = *pixel);
}

/// The line or column of an image, out of `n`, that position `at` of a crop starting at `first` shows.
#[inline(always)]
fn shown_at(at: usize, first: i32, n: usize, is_reflected: bool) -> Option<usize> {
    let at = i64::from(in_u32(at)) + i64::from(first);
    let last = i64::from(in_u32(n)) - 1;
    let at = if is_reflected { at.abs().min(2 * last - at.abs()) } else { at };
    usize::try_from(at).ok().filter(|&at| at < n)
}
