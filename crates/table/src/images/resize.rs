//! Resizing with a triangle filter.

use super::pixels::Shape;

/// Scales an image so that it covers `height` × `width` pixels, and crops the longer side around the centre.
///
/// Each output pixel is a weighted mean of the input pixels around its position: weights decrease linearly to 0 at a distance of
/// one pixel, of the input when it grows and of the output when it shrinks, so that no input pixel is skipped. Pixels outside the
/// image have no weight. Sums are computed in `f32`, columns first, then rows, and rounded once.
///
/// # Cost
/// Only rows and columns that remain are computed; the only buffers are the result, one row of `f32` and the weights.
pub(super) fn resized_to_fill(pixels: &[u8], from: Shape, [height, width]: [usize; 2]) -> Vec<u8> {
    let scale = f64::max(height as f64 / from.height as f64, width as f64 / from.width as f64);
    let rows = weighted_means(from.height, scale, height);
    let columns = weighted_means(from.width, scale, width);
    let mut resized = Vec::with_capacity(height * width * from.n_channels);
    match from.n_channels {
        1 => resize::<1>(pixels, from.width, &rows, &columns, &mut resized),
        2 => resize::<2>(pixels, from.width, &rows, &columns, &mut resized),
        3 => resize::<3>(pixels, from.width, &rows, &columns, &mut resized),
        4 => resize::<4>(pixels, from.width, &rows, &columns, &mut resized),
        n_channels => unreachable!("images have at most 4 channels, not {n_channels}"),
    }
    resized
}

/// Computes one output row or column: the first input row or column that it is a mean of, and the weights of that one and those
/// after it.
struct WeightedMean {
    start: usize,
    weights: Vec<f32>,
}

/// Returns one mean for each of the `n_outputs` rows or columns in the centre of an image whose `n_inputs` rows or columns are
/// scaled.
fn weighted_means(n_inputs: usize, scale: f64, n_outputs: usize) -> Vec<WeightedMean> {
    let n_scaled = ((n_inputs as f64 * scale).round() as usize).max(n_outputs);
    let first = (n_scaled - n_outputs) / 2;
    // Input rows or columns per output row or column.
    let ratio = n_inputs as f32 / n_scaled as f32;
    let reach = ratio.max(1.0);
    let weighted_mean = |output: usize| {
        let centre = (output as f32 + 0.5) * ratio;
        // Conversion to `usize` makes a negative start 0.
        let start = ((centre - reach).floor() as usize).min(n_inputs - 1);
        let end = ((centre + reach).ceil() as usize).clamp(start + 1, n_inputs);
        // The centre of input `i` is at `i + 0.5`.
        let distance = |input: usize| (input as f32 - (centre - 0.5)) / reach;
        let mut weights: Vec<f32> = (start..end).map(|input| (1.0 - distance(input).abs()).max(0.0)).collect();
        let sum: f32 = weights.iter().fold(0.0, |sum, weight| sum + weight);
        weights.iter_mut().for_each(|weight| *weight /= sum);
        WeightedMean { start, weights }
    };
    (first..first + n_outputs).map(weighted_mean).collect()
}

fn resize<const N_CHANNELS: usize>(
    pixels: &[u8],
    width: usize,
    rows: &[WeightedMean],
    columns: &[WeightedMean],
    resized: &mut Vec<u8>,
) {
    // The input columns that are needed.
    let first = columns.first().map_or(0, |column| column.start);
    let end = columns.last().map_or(0, |column| column.start + column.weights.len());
    let mut mean_row = vec![0.0_f32; (end - first) * N_CHANNELS];
    for row in rows {
        mean_row.fill(0.0);
        let inputs = pixels.chunks_exact(width * N_CHANNELS).skip(row.start);
        for (input, weight) in inputs.zip(&row.weights) {
            for (sum, &value) in mean_row.iter_mut().zip(&input[first * N_CHANNELS..]) {
                *sum += f32::from(value) * weight;
            }
        }
        let (mean_pixels, _) = mean_row.as_chunks::<N_CHANNELS>();
        for column in columns {
            let mut sums = [0.0_f32; N_CHANNELS];
            for (pixel, weight) in mean_pixels[column.start - first..].iter().zip(&column.weights) {
                for (sum, value) in sums.iter_mut().zip(pixel) {
                    *sum += value * weight;
                }
            }
            resized.extend(sums.map(|sum| sum.clamp(0.0, 255.0).round() as u8));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pixels: &[u8], [height, width]: [usize; 2], to: [usize; 2], expected: &[u8]) {
        let n_channels = pixels.len() / (height * width);
        assert_eq!(resized_to_fill(pixels, Shape { height, width, n_channels }, to), expected, "to {to:?}");
    }

    #[test]
    fn images_shrink_grow_and_are_cropped() {
        // Weights 1 3 3 1 of the pixels around each pair, without those outside the image.
        check(&[0, 70, 140, 210, 0, 70, 140, 210], [2, 4], [1, 2], &[50, 160]);
        // Pixels at a quarter and three quarters of the way between two centres.
        check(&[0, 100], [1, 2], [1, 4], &[0, 25, 75, 100]);
        check(&[0, 100], [2, 1], [4, 1], &[0, 25, 75, 100]);
        // The centre of the longer side, rounded down.
        check(&[1, 2, 3, 4, 5], [1, 5], [1, 2], &[2, 3]);
        check(&[1, 2, 3, 4, 5], [5, 1], [3, 1], &[2, 3, 4]);
        // Channels stay apart.
        check(&[0, 10, 20, 100, 110, 120], [1, 2], [1, 1], &[0, 10, 20]);
    }

    /// Scaled as a whole, the image would have 2^42 pixels.
    #[test]
    fn what_is_cropped_is_not_computed() {
        let pixels: Vec<u8> = (0..16_384).map(|i| if i < 8_192 { 10 } else { 20 }).collect();
        let resized = resized_to_fill(&pixels, Shape { height: 16_384, width: 1, n_channels: 1 }, [1, 16_384]);
        assert_eq!(resized, [15; 16_384], "half way between the two middle rows");
    }
}
