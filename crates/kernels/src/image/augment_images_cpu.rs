use rayon::prelude::*;

use super::augmentation::{Border, Draws};
use crate::AugmentImages;
use crate::batch::order::EPOCH;
use crate::core::half::Element;
use crate::core::sizes::in_u32;
use crate::core::vectorised::vectorised;

/// Images a task.
const BLOCK_IMAGES: usize = 16;

pub(crate) fn run<T: Copy + Into<f32> + Sync, Y: Element>(
    kernel: &AugmentImages,
    table: &[T],
    rows: &[u32],
    order: &[u32],
    mean: &[f32],
    inv_std: &[f32],
    y: &mut [Y],
) {
    let crop_len = kernel.crop[0] * kernel.crop[1] * kernel.image[2];
    rows.par_chunks(BLOCK_IMAGES).zip(y.par_chunks_mut(BLOCK_IMAGES * crop_len)).for_each(|(rows, y)| {
        let mut columns = Vec::with_capacity(kernel.crop[1]);
        let mut line = vec![0.0; kernel.crop[1] * kernel.image[2]];
        for (y, &row) in y.chunks_exact_mut(crop_len).zip(rows) {
            let draws = kernel.augmentation.draws(kernel.image, kernel.crop, row, order[EPOCH]);
            let row = row.wrapping_sub(in_u32(kernel.first_row)) as usize;
            if row < kernel.n_table_rows {
                let len = mean.len();
                let source = Source { image: &table[row * len..][..len], mean, inv_std };
                vectorised(
                    #[inline(always)]
                    || augment(kernel, &draws, &source, &mut columns, &mut line, y),
                );
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

#[inline(always)]
fn augment<T: Copy + Into<f32>, Y: Element>(
    kernel: &AugmentImages,
    draws: &Draws,
    source: &Source<'_, T>,
    columns: &mut Vec<Option<usize>>,
    line: &mut [f32],
    y: &mut [Y],
) {
    let AugmentImages { image: [height, width, n_channels], crop: [_, crop_width], augmentation, .. } = *kernel;
    let is_reflected = augmentation.border == Border::Reflect;
    columns.clear();
    columns.extend((0..crop_width).map(|col| {
        let shown = if draws.is_flipped { crop_width - 1 - col } else { col };
        shown_at(shown, draws.left, width, is_reflected)
    }));
    for (i, y) in y.chunks_exact_mut(crop_width * n_channels).enumerate() {
        match shown_at(i, draws.top, height, is_reflected) {
            None => line.fill(0.0),
            Some(top) => {
                let start = top * width * n_channels;
                for (y, col) in line.chunks_exact_mut(n_channels).zip(columns.iter()) {
                    let Some(col) = col else {
                        y.fill(0.0);
                        continue;
                    };
                    let from = start + col * n_channels..start + (col + 1) * n_channels;
                    let values = source.image[from.clone()].iter().zip(&source.mean[from.clone()]).zip(&source.inv_std[from]);
                    for (y, ((&x, mean), inv_std)) in y.iter_mut().zip(values) {
                        *y = (x.into() - mean) * inv_std * draws.factor + draws.summand;
                    }
                }
            }
        }
        if (in_u32(i).wrapping_sub(draws.cutout[0]) as usize) < augmentation.cutout {
            let first = draws.cutout[1] as usize * n_channels;
            line[first..first + augmentation.cutout * n_channels].fill(0.0);
        }
        for (y, &value) in y.iter_mut().zip(line.iter()) {
            *y = Y::narrow(value);
        }
    }
}

/// The line or column, of `n`, of an image that position `at` of a crop from `first` on shows.
#[inline(always)]
fn shown_at(at: usize, first: i32, n: usize, is_reflected: bool) -> Option<usize> {
    let at = i64::from(in_u32(at)) + i64::from(first);
    let last = i64::from(in_u32(n)) - 1;
    let at = if is_reflected { at.abs().min(2 * last - at.abs()) } else { at };
    usize::try_from(at).ok().filter(|&at| at < n)
}
