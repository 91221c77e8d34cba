use brisk_kernels::{AugmentImages, Border, DType, Flip, ImageAugmentation, ORDER_LEN, Philox, order_in_epoch, sequential_order};

use crate::random::Random;
use crate::run::*;

const NOTHING: ImageAugmentation =
    ImageAugmentation { pad: 0, border: Border::Reflect, flip: Flip::Never, cutout: 0, brightness: 0.0, contrast: 0.0, seed: 7 };

const EVERYTHING: ImageAugmentation =
    ImageAugmentation { pad: 2, flip: Flip::Random, cutout: 2, brightness: 0.2, contrast: 0.3, ..NOTHING };

fn kernel(image: [usize; 3], n: usize, augmentation: ImageAugmentation) -> AugmentImages {
    let [height, width, _] = image;
    AugmentImages { dtype: DType::U8, first_row: 0, n_table_rows: 9, image, crop: [height, width], n, augmentation }
}

fn order(epoch: u32) -> Words {
    let order: [u32; ORDER_LEN] = order_in_epoch(sequential_order(9, 1, 0), epoch);
    order.to_vec()
}

struct Case {
    kernel: AugmentImages,
    table: Vec<u8>,
    rows: Vec<u32>,
    /// The ids by which random numbers are drawn: the rows themselves, unless the table is a part of a larger one.
    ids: Vec<u32>,
    epoch: u32,
    mean: Vec<f32>,
    inv_std: Vec<f32>,
}

impl Case {
    fn new(random: &mut Random, kernel: AugmentImages, epoch: u32) -> Self {
        let n_cols: usize = kernel.image.iter().product();
        let table = (0..kernel.n_table_rows * n_cols).map(|_| random.below(256) as u8).collect();
        let rows: Vec<u32> = (0..kernel.n).map(|_| random.below((kernel.first_row + kernel.n_table_rows) as u32)).collect();
        Self {
            kernel,
            table,
            ids: rows.clone(),
            rows,
            epoch,
            mean: random.floats(n_cols).iter().map(|x| 128.0 + 50.0 * x).collect(),
            inv_std: random.floats(n_cols).iter().map(|x| 0.02 + 0.005 * x).collect(),
        }
    }

    fn given(&self) -> Vec<Words> {
        let table = match self.kernel.dtype {
            DType::U8 => {
                self.table.chunks(4).map(|four| (0..four.len()).fold(0, |w, i| w | u32::from(four[i]) << (8 * i))).collect()
            }
            _ => words(&self.table.iter().map(|&byte| f32::from(byte)).collect::<Vec<_>>()),
        };
        vec![table, self.rows.clone(), self.ids.clone(), order(self.epoch), words(&self.mean), words(&self.inv_std)]
    }

    /// The batch after padding, cropping, mirroring and so on, one after another, pixel by pixel.
    fn reference(&self) -> Vec<f32> {
        let AugmentImages { image: [height, width, n_channels], crop: [crop_height, crop_width], augmentation, .. } = self.kernel;
        let ImageAugmentation { pad, border, flip, cutout, brightness, contrast, seed } = augmentation;
        let philox = Philox::new(seed);
        let below = |word: u32, n: usize| ((u64::from(word) * n as u64) >> 32) as usize;
        let centred = |word: u32| (word >> 8) as f32 / 8_388_608.0 - 1.0;
        let mut batch = Vec::new();
        for (&row, &id) in self.rows.iter().zip(&self.ids) {
            let [first, second] = [0, 1].map(|block| philox.block([id, self.epoch, block, 0]));
            let value = |line: usize, col: usize, channel: usize| {
                let at = (line * width + col) * n_channels + channel;
                let table = f32::from(self.table[row as usize * self.mean.len() + at]);
                (table - self.mean[at]) * self.inv_std[at]
            };
            // The source of each line and column of the padded image.
            let mirror = |at: i64, n: usize| match border {
                Border::Reflect if at < 0 => Some(-at as usize),
                Border::Reflect if at >= n as i64 => Some(2 * n - 2 - at as usize),
                _ => usize::try_from(at).ok().filter(|&at| at < n),
            };
            let padded = |n: usize| (0..n + 2 * pad).map(|at| mirror(at as i64 - pad as i64, n)).collect::<Vec<_>>();
            let (lines, cols) = (padded(height), padded(width));
            let top = below(first[0], lines.len() - crop_height + 1);
            let left = below(first[1], cols.len() - crop_width + 1);
            let is_flipped = match flip {
                Flip::Random => first[2] >= 1 << 31,
                Flip::Alternating => (philox.block([id, 0, 2, 0])[0] >= 1 << 31) != (self.epoch % 2 == 1),
                _ => false,
            };
            let corner = [below(first[3], crop_height - cutout + 1), below(second[0], crop_width - cutout + 1)];
            for line in 0..crop_height {
                for col in 0..crop_width {
                    let from = if is_flipped { crop_width - 1 - col } else { col };
                    let is_cut =
                        (corner[0]..corner[0] + cutout).contains(&line) && (corner[1]..corner[1] + cutout).contains(&col);
                    for channel in 0..n_channels {
                        batch.push(match (lines[top + line], cols[left + from]) {
                            (Some(line), Some(col)) if !is_cut => {
                                let bright = value(line, col, channel) + brightness * centred(second[1]);
                                bright * (1.0 + contrast * centred(second[2]))
                            }
                            _ => 0.0,
                        });
                    }
                }
            }
        }
        batch
    }
}

#[track_caller]
fn close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "values of the batch");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= 1e-5, "value {i}: {found}, expected {expected}");
    }
}

#[test]
fn without_changes_it_standardises_the_images() {
    let kernel = AugmentImages { n_table_rows: 2, ..kernel([1, 2, 2], 2, NOTHING) };
    let table = vec![0x0403_0201, 0x0807_0605];
    let given = [table, vec![1, 0], vec![1, 0], order(3), words(&[1.0, 2.0, 3.0, 4.0]), words(&[1.0, 1.0, 0.5, 2.0])];
    assert_eq!(twin_floats(&kernel, &given), [4.0, 4.0, 2.0, 8.0, 0.0, 0.0, 0.0, 0.0], "(value - mean) / std");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn every_change_equals_the_reference_pixel_for_pixel() {
    let mut random = Random::new(1);
    let zero = ImageAugmentation { border: Border::Zero, pad: 3, ..EVERYTHING };
    let cases = [
        NOTHING,
        ImageAugmentation { pad: 4, ..NOTHING },
        ImageAugmentation { border: Border::Zero, pad: 9, ..NOTHING },
        ImageAugmentation { flip: Flip::Random, ..NOTHING },
        ImageAugmentation { flip: Flip::Alternating, ..NOTHING },
        ImageAugmentation { cutout: 3, ..NOTHING },
        ImageAugmentation { brightness: 0.5, ..NOTHING },
        ImageAugmentation { contrast: 0.5, ..NOTHING },
        EVERYTHING,
        zero,
    ];
    for augmentation in cases {
        for image in [[6, 5, 3], [5, 7, 1], [8, 8, 4]] {
            for epoch in [0, 1] {
                let case = Case::new(&mut random, kernel(image, 40, augmentation), epoch);
                close(&twin_floats(&case.kernel, &case.given()), &case.reference());
            }
        }
    }
}

#[test]
fn a_crop_may_have_another_size_than_the_image() {
    let mut random = Random::new(2);
    for (pad, crop) in [(0, [3, 4]), (2, [9, 8]), (1, [1, 1])] {
        let augmentation = ImageAugmentation { pad, cutout: 1, flip: Flip::Random, ..NOTHING };
        let case = Case::new(&mut random, AugmentImages { crop, ..kernel([6, 5, 3], 30, augmentation) }, 2);
        close(&twin_floats(&case.kernel, &case.given()), &case.reference());
        gpu_equals_twin(&case.kernel, &case.given());
    }
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(3);
    for dtype in [DType::U8, DType::F32] {
        for image in [[6, 5, 3], [3, 3, 1], [8, 8, 3]] {
            for augmentation in [EVERYTHING, ImageAugmentation { border: Border::Zero, flip: Flip::Alternating, ..EVERYTHING }] {
                let case = Case::new(&mut random, AugmentImages { dtype, ..kernel(image, 33, augmentation) }, 5);
                gpu_equals_twin(&case.kernel, &case.given());
            }
        }
    }
}

#[test]
fn halves_are_the_rounded_floats() {
    let mut random = Random::new(4);
    let case = Case::new(&mut random, kernel([4, 4, 3], 12, EVERYTHING), 1);
    both_forms_equal_twin_within(&case.kernel, &case.given(), crate::close::DEFAULT);
}

#[test]
fn windows_of_a_table_give_the_batch_of_the_whole_table() {
    let mut random = Random::new(5);
    // Images with an odd number of values, so that a pair of values may belong to two images.
    for image in [[3, 3, 3], [4, 4, 1]] {
        let case = Case::new(&mut random, kernel(image, 25, EVERYTHING), 4);
        let whole = twin_floats(&case.kernel, &case.given());
        let n_cols: usize = image.iter().product();
        let table: Vec<f32> = case.table.iter().map(|&byte| f32::from(byte)).collect();
        let mut given = case.given();
        let first = AugmentImages { dtype: DType::F32, n_table_rows: 4, ..case.kernel };
        given[0] = words(&table[..4 * n_cols]);
        gpu_equals_twin(&first, &given);
        let y = twin_floats(&first, &given);
        let second = AugmentImages { dtype: DType::F32, first_row: 4, n_table_rows: 5, ..case.kernel };
        given[0] = words(&table[4 * n_cols..]);
        given.push(words(&y));
        gpu_equals_twin(&second, &given);
        assert_eq!(twin_floats(&second, &given), whole, "both windows together");
    }
}

/// The last four images of the table as a separate table: with their rows in the whole table as ids, the results are the same.
#[test]
fn images_of_a_part_of_a_table_are_drawn_by_their_ids() {
    let mut random = Random::new(8);
    for flip in [Flip::Random, Flip::Alternating] {
        let augmentation = ImageAugmentation { flip, ..EVERYTHING };
        let mut case = Case::new(&mut random, kernel([6, 5, 3], 40, augmentation), 3);
        case.rows.iter_mut().for_each(|row| *row = 5 + *row % 4);
        case.ids = case.rows.clone();
        let whole = twin_floats(&case.kernel, &case.given());
        case.rows.iter_mut().for_each(|row| *row -= 5);
        case.kernel.n_table_rows = 4;
        case.table.drain(..5 * case.mean.len());
        assert_eq!(twin_floats(&case.kernel, &case.given()), whole);
        close(&whole, &case.reference());
        gpu_equals_twin(&case.kernel, &case.given());
    }
}

#[test]
fn alternating_flips_show_each_orientation_once_in_two_epochs() {
    let augmentation = ImageAugmentation { flip: Flip::Alternating, ..NOTHING };
    let kernel = AugmentImages { dtype: DType::F32, n_table_rows: 200, ..kernel([1, 2, 1], 200, augmentation) };
    let table: Vec<f32> = (0..400).map(|i| i as f32).collect();
    let batch = |epoch| {
        let rows: Words = (0..200).collect();
        twin_floats(&kernel, &[words(&table), rows.clone(), rows, order(epoch), words(&[0.0; 2]), words(&[1.0; 2])])
    };
    let mirrored: Vec<f32> = batch(0).chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
    assert_eq!(batch(1), mirrored, "every image is mirrored in the next epoch");
    assert_eq!(batch(2), batch(0), "and back in the one after");
    let n_flipped = batch(0).chunks(2).filter(|pair| pair[0] > pair[1]).count();
    assert!((70..130).contains(&n_flipped), "about half start mirrored: {n_flipped} of 200");
}

#[test]
fn all_crops_and_flips_are_equally_likely() {
    let augmentation = ImageAugmentation { pad: 1, border: Border::Zero, flip: Flip::Random, ..NOTHING };
    let n = 9 * 2 * 200;
    let kernel = AugmentImages { dtype: DType::F32, n_table_rows: n, ..kernel([3, 3, 1], n, augmentation) };
    let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    let rows: Words = (0..n as u32).collect();
    let given = [words(&image.repeat(n)), rows.clone(), rows, order(0), words(&[0.0; 9]), words(&[1.0; 9])];
    let mut counts = std::collections::BTreeMap::new();
    for image in twin_floats(&kernel, &given).chunks(9) {
        *counts.entry(image.iter().map(|&value| value as u32).collect::<Vec<_>>()).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 18, "nine offsets, mirrored or not");
    // Four standard deviations of a count with mean 200.
    assert!(counts.values().all(|count| (145..=255).contains(count)), "{counts:?}");
}

#[test]
fn bits_do_not_depend_on_threads() {
    let case = Case::new(&mut Random::new(6), kernel([8, 8, 3], 200, EVERYTHING), 0);
    same_bits_on_any_pool(&case.kernel, &case.given());
}

#[test]
fn settings_that_fit_no_image_are_refused() {
    #[track_caller]
    fn refuses(kernel: AugmentImages, expected: &str) {
        let error = brisk_kernels::Kernel::check(&kernel).expect_err("the settings fit no image").to_string();
        assert_eq!(error, expected, "{kernel:?}");
    }
    let with = |augmentation| kernel([6, 5, 3], 4, augmentation);
    refuses(
        with(ImageAugmentation { pad: 5, ..NOTHING }),
        "augment_images: pad is 5, expected less than the image's height and width, which a reflection cannot exceed",
    );
    refuses(
        AugmentImages { crop: [7, 5], ..with(NOTHING) },
        "augment_images: crop height is 7, expected at least 1 and at most that of the padded image",
    );
    refuses(
        with(ImageAugmentation { cutout: 6, ..NOTHING }),
        "augment_images: cutout is 6, expected at most the crop's height and width",
    );
    refuses(
        with(ImageAugmentation { contrast: f32::NAN, ..NOTHING }),
        "augment_images: contrast = NaN is not supported, expected a finite number that is not negative",
    );
}
