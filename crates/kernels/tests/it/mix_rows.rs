use brisk_kernels::{MixRows, Mixing, N_QUANTILES, ORDER_LEN, Philox, order_in_epoch, sequential_order};

use crate::run::*;

fn order(n_rows: u32, epoch: u32) -> Words {
    let order: [u32; ORDER_LEN] = order_in_epoch(sequential_order(n_rows, 1, 0), epoch);
    order.to_vec()
}

fn quantiles(mixing: Mixing) -> Words {
    mixing.quantiles().unwrap_or_else(|error| panic!("{error}"))
}

/// The results for rows 0 to n of a table of n rows.
fn mixed(cut: Option<[usize; 3]>, mixing: Mixing, n: usize, epoch: u32) -> Vec<Words> {
    let kernel = MixRows { n, cut, seed: 7 };
    run_twin(&kernel, &[(0..n as u32).collect(), order(n as u32, epoch), quantiles(mixing)])
}

/// Quantiles at these multiples of 1/1024, computed by `scipy.stats.beta.ppf` of scipy 1.17.
#[test]
fn quantiles_are_those_of_the_beta_distribution() {
    #[track_caller]
    fn check(alpha: f32, expected: [f64; 5]) {
        let quantiles = quantiles(Mixing::Mixup { alpha });
        assert_eq!(quantiles.len(), N_QUANTILES);
        for (at, expected) in [1, 100, 256, 512, 900].into_iter().zip(expected) {
            let found = f64::from(quantiles[at]) / 4_294_967_296.0;
            assert!((found - expected).abs() < 1e-7, "alpha {alpha}, quantile {at}: {found}, expected {expected}");
        }
        assert_eq!([quantiles[0], quantiles[1024]], [0, u32::MAX], "the ends for alpha {alpha}");
        assert!(quantiles.is_sorted(), "alpha {alpha}");
    }
    check(0.05, [0.000000000, 0.000000000, 0.000000883, 0.500000000, 1.000000000]);
    check(0.2, [0.000000000, 0.000220063, 0.023814719, 0.500000000, 0.999355040]);
    check(0.5, [0.000002353, 0.023346980, 0.146446609, 0.500000000, 0.964253040]);
    check(1.0, [0.000976562, 0.097656250, 0.250000000, 0.500000000, 0.878906250]);
    check(2.5, [0.032206368, 0.222180209, 0.345463744, 0.500000000, 0.755030854]);
    check(30.0, [0.307073967, 0.416646484, 0.456363646, 0.500000000, 0.575374275]);
    check(1000.0, [0.465408650, 0.485522435, 0.492458462, 0.500000000, 0.513075215]);
}

#[test]
fn the_quantiles_of_cutmix_are_half_the_roots() {
    let [mixup, cutmix] = [Mixing::Mixup { alpha: 0.7 }, Mixing::CutMix { alpha: 0.7 }].map(quantiles);
    for (share, root) in mixup.iter().zip(&cutmix) {
        let [share, root] = [share, root].map(|&units| f64::from(units) / 4_294_967_296.0);
        assert!((share - 4.0 * root * root).abs() < 1e-8, "{share} and {root}");
    }
}

#[test]
fn draws_are_distributed_as_they_should_be() {
    let n = 4000;
    for alpha in [0.3, 1.0, 4.0] {
        let results = mixed(None, Mixing::Mixup { alpha }, n, 3);
        let (partners, shares) = (&results[0], floats(&results[1]));
        assert_eq!([&results[2], &results[3]].map(|words| words.len()), [n; 2], "one line and one column for each row");
        assert_eq!(floats(&results[2]), shares, "the lines");
        assert!(floats(&results[3]).iter().all(|column| *column == 1.0), "the columns");
        // A share is below each quantile with the right frequency, within four standard deviations of the count.
        let quantiles = quantiles(Mixing::Mixup { alpha });
        for at in (64..1024).step_by(64) {
            let p = at as f64 / 1024.0;
            let limit = (f64::from(quantiles[at]) / 4_294_967_296.0) as f32;
            let n_below = shares.iter().filter(|share| **share < limit).count() as f64;
            let deviation = (p * (1.0 - p) * n as f64).sqrt();
            assert!((n_below - p * n as f64).abs() < 4.0 * deviation, "alpha {alpha}: {n_below} shares below quantile {at}");
        }
        for eighth in 0..8 {
            let rows = eighth * n as u32 / 8..(eighth + 1) * n as u32 / 8;
            let n_found = partners.iter().filter(|partner| rows.contains(partner)).count();
            assert!((416..=584).contains(&n_found), "{n_found} of {n} partners in eighth {eighth}");
        }
    }
}

/// The rectangle of `torchvision.transforms.v2.CutMix`, pixel by pixel, in f64.
#[test]
fn cutmix_replaces_the_rectangle_of_torchvision() {
    for image in [[6, 5, 3], [1, 9, 1], [32, 32, 3]] {
        let [height, width, n_channels] = image;
        let mixing = Mixing::CutMix { alpha: 1.0 };
        let (n, epoch) = (300, 2);
        let results = mixed(Some(image), mixing, n, epoch);
        let quantiles = quantiles(mixing);
        for row in 0..n {
            let words = Philox::new(7).block([row as u32, epoch, 3, 0]).map(f64::from).map(|word| word / 4_294_967_296.0);
            assert_eq!(f64::from(results[0][row]), (words[0] * n as f64).floor(), "the partner");
            let at = words[1] * 1024.0;
            let [low, high] = [0, 1].map(|i| f64::from(quantiles[at as usize + i]) / 4_294_967_296.0);
            let root = low + (high - low) * at.fract();
            let bounds = |word: f64, len: usize| {
                let (centre, reach) = ((word * len as f64).floor(), (root * len as f64).floor());
                [(centre - reach).max(0.0), (centre + reach).min(len as f64)]
            };
            let [[top, bottom], [left, right]] = [bounds(words[2], height), bounds(words[3], width)];
            let (mut n_inside, mut n_expected) = (0, 0);
            for line in 0..height {
                for column in 0..width * n_channels {
                    let of_line = floats(&results[2])[row * height + line];
                    let found = of_line * floats(&results[3])[row * width * n_channels + column];
                    let pixel = (column / n_channels) as f64;
                    let expected = (top..bottom).contains(&(line as f64)) && (left..right).contains(&pixel);
                    assert_eq!(found, f32::from(u8::from(expected)), "image {row}, line {line}, column {column}");
                    n_inside += usize::from(found == 1.0);
                    n_expected += usize::from(expected);
                }
            }
            assert_eq!(n_inside, n_expected, "image {row}");
            let share = n_inside as f32 / (height * width * n_channels) as f32;
            assert!((floats(&results[1])[row] - share).abs() < 1e-6, "the share is what was replaced of image {row}");
        }
    }
}

#[test]
fn draws_follow_from_row_and_epoch() {
    let cut = Some([8, 8, 3]);
    let mixing = Mixing::CutMix { alpha: 1.0 };
    let whole = mixed(cut, mixing, 50, 4);
    assert_ne!(whole, mixed(cut, mixing, 50, 5), "another epoch");
    let part = MixRows { n: 3, cut, seed: 7 };
    let part = run_twin(&part, &[vec![9, 40, 2], order(50, 4), quantiles(mixing)]);
    for (i, row) in [9, 40, 2].into_iter().enumerate() {
        assert_eq!([part[0][i], part[1][i]], [whole[0][row], whole[1][row]], "row {row} in another batch");
        assert_eq!(part[2][8 * i..][..8], whole[2][8 * row..][..8], "lines of row {row}");
    }
}

#[test]
fn gpu_draws_the_same_bits() {
    for (cut, mixing) in [
        (None, Mixing::Mixup { alpha: 0.2 }),
        (Some([5, 7, 3]), Mixing::CutMix { alpha: 1.0 }),
        (Some([32, 32, 3]), Mixing::CutMix { alpha: 0.3 }),
    ] {
        for n in [1, 63, 64, 65, 500] {
            let kernel = MixRows { n, cut, seed: u64::MAX - 3 };
            let given = [(0..n as u32).rev().collect(), order(n as u32, 9), quantiles(mixing)];
            if let Some(mut gpu) = crate::gpu::gpu() {
                assert_eq!(run_gpu(&mut gpu, &kernel, &given), run_twin(&kernel, &given), "{kernel:?}");
            }
        }
    }
}

#[test]
fn settings_that_fit_nothing_are_refused() {
    for alpha in [0.0, -1.0, f32::NAN, f32::INFINITY, 1001.0] {
        let error = Mixing::Mixup { alpha }.quantiles().expect_err("no distribution").to_string();
        assert_eq!(error, format!("mix_rows: alpha = {alpha} is not supported, expected 0 < alpha <= 1000"));
    }
    let kernel = MixRows { n: 5, cut: Some([5000, 5000, 1]), seed: 0 };
    let error = brisk_kernels::Kernel::check(&kernel).expect_err("too large").to_string();
    assert_eq!(error, "mix_rows: height * width is 25000000, expected at most 2^24");
}
