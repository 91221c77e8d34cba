use super::*;
use crate::conv::patches::Walk;
use crate::conv::window::Images;

/// Integers whose products and sums are exact in f32.
fn numbers(n: usize, seed: usize) -> Vec<bf16> {
    (0..n).map(|i| bf16::from_f32(((i * 7919 + seed * 104_729) % 9) as f32 - 4.0)).collect()
}

/// The instructions of this machine. Without any, these tests check nothing.
fn available() -> impl Iterator<Item = Bf16Instructions> {
    [Bf16Instructions::Amx, Bf16Instructions::Avx512].into_iter().filter(|instructions| instructions.is_available())
}

struct Case {
    place: String,
    images: Images,
    walks: [Walk; 2],
    rows: Vec<ResultRow>,
    n: usize,
}

/// Windows that are adjacent or not, with and without padding; rows that start within an image and end in the next.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (height, width, c) in [(7, 9, 16), (6, 31, 24), (5, 8, 40), (12, 12, 8), (3, 1, 64), (8, 17, 3)] {
        for (n_taps, step, padding) in [(1, 1, 0), (2, 1, 0), (3, 1, 1), (3, 2, 1), (3, 1, 0), (5, 1, 2)] {
            if height.min(width) + 2 * padding < n_taps {
                continue;
            }
            for n in [1, 16, 40] {
                let walk =
                    |size: usize| Walk { n: (size + 2 * padding - n_taps) / step + 1, n_taps, start: -(padding as isize), step };
                let images = Images { n_images: 3, height, width, n_channels: c };
                let walks = [walk(height), walk(width)];
                let n_rows = walks[0].n;
                cases.push(Case {
                    place: format!("{images:?}, {n_taps} taps, step {step}, padding {padding}, {n} channels"),
                    images,
                    walks,
                    rows: (n_rows / 2..3 * n_rows).map(|row| (row / n_rows, row % n_rows)).collect(),
                    n,
                });
            }
        }
    }
    cases
}

/// Images, one of whose values may be infinite.
fn pixels(images: Images, infinity_at: Option<usize>) -> Vec<bf16> {
    let mut pixels = numbers(images.len(), 1);
    if let Some(at) = infinity_at {
        pixels[at] = bf16::INFINITY;
    }
    pixels
}

/// The patches of all pixels, in f32.
fn packed(patches: &Patches<'_, bf16>, rows: &[ResultRow]) -> Vec<f32> {
    patches.pack(rows, 0..patches.walks[0].n_taps, &mut Vec::new()).to_vec()
}

#[track_caller]
fn assert_same(place: &str, found: &[f32], expected: &[f32]) {
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            found == expected || (found.is_nan() && expected.is_nan()),
            "{place}: element {i} is {found}, expected {expected}"
        );
    }
}

/// Both ways, by lines and by patches; a value that is not finite takes the second, and reaches the windows that cover it only.
#[test]
fn products_equal_those_of_patches() {
    for instructions in available() {
        let mut n_by_lines = 0;
        for Case { place, images, walks, rows, n } in cases() {
            for infinity_at in [None, Some(images.len() / 2)] {
                let source = pixels(images, infinity_at);
                let patches = Patches { source: &source, images, walks };
                n_by_lines += usize::from(patches.is_by_lines());
                let k = patches.n_cols(walks[0].n_taps);
                // Without zeros, by which infinities would become NaN.
                let weights: Vec<bf16> =
                    numbers(k * n, 2).into_iter().map(|x| if x == bf16::ZERO { bf16::ONE } else { x }).collect();
                let all = packed(&patches, &rows);
                let n_pixels = rows.len() * walks[1].n;
                let sum = |pixel: usize, col: usize| -> f32 {
                    (0..k).map(|i| all[pixel * k + i] * weights[i * n + col].to_f32()).sum()
                };
                let expected: Vec<f32> = (0..n_pixels * n).map(|i| sum(i / n, i % n)).collect();
                let mut found = vec![f32::NAN; n_pixels * n];
                let right = Stored { data: &weights, n, stride: n, k_is_outer: true };
                with_each(&[patches.side(right)], Threads::One, |panels| {
                    patches.times_pairs(&rows, (instructions, panels[0]), &mut found);
                });
                assert_same(&format!("{instructions}, {place}"), &found, &expected);
            }
        }
        assert!(n_by_lines > 50, "only {n_by_lines} products by lines");
    }
}

/// The same for gradients of weights, all of them and some rows of taps.
#[test]
fn sums_equal_those_of_patches() {
    for instructions in available() {
        let mut n_by_lines = 0;
        for Case { place, images, walks, rows, n } in cases() {
            for infinity_at in [None, Some(images.len() / 2)] {
                let source = pixels(images, infinity_at);
                let patches = Patches { source: &source, images, walks };
                n_by_lines += usize::from(patches.sums_by_lines(instructions, n));
                let n_pixels = rows.len() * walks[1].n;
                let grad_y: Vec<bf16> = numbers(n_pixels * n, 3).into_iter().map(|x| x + bf16::from_f32(5.0)).collect();
                let (all, k) = (packed(&patches, &rows), patches.n_cols(walks[0].n_taps));
                for taps in [0..walks[0].n_taps, walks[0].n_taps / 2..walks[0].n_taps] {
                    let (first, n_cols) = (patches.n_cols(taps.start), patches.n_cols(taps.len()));
                    let sum = |out: usize, col: usize| -> f32 {
                        let products = (0..n_pixels).map(|pixel| grad_y[pixel * n + out].to_f32() * all[pixel * k + first + col]);
                        products.sum::<f32>() + 1.0
                    };
                    let expected: Vec<f32> = (0..n * n_cols).map(|i| sum(i / n_cols, i % n_cols)).collect();
                    let mut found = vec![1.0; n * n_cols];
                    patches.add_pairs(instructions, (&grad_y, n), (&rows, taps), &mut found, Onto::Sum);
                    assert_same(&format!("{instructions}, {place}"), &found, &expected);
                }
            }
        }
        assert!(n_by_lines > 30, "only {n_by_lines} sums by lines");
    }
}
