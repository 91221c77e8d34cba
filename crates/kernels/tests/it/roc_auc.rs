use brisk_kernels::{Kernel, RocAuc};

use crate::close::{DEFAULT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

fn area(given: &[Words; 3]) -> f32 {
    twin_floats(&RocAuc { n: given[0].len() }, given)[0]
}

#[track_caller]
fn check(scores: &[f32], labels: &[f32], weights: &[f32], expected: f32) {
    let given = [words(scores), words(labels), words(weights)];
    assert_close(&format!("{scores:?}"), &[area(&given)], &[expected], DEFAULT);
    gpu_equals_twin(&RocAuc { n: scores.len() }, &given);
}

/// Numbers without a pattern, the same in the program that gave the truth.
fn values(n: usize, k: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * i * 37 + i * k * 11 + k * 53 + 7) % 101) as f32).collect()
}

#[test]
fn it_is_scikit_learns_with_ties_and_weights() {
    let scores = [-2.0, 0.5, -0.1, 1.5, 0.5, 0.0, 3.25, -1.0];
    let labels = [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0];
    check(&scores, &labels, &[1.0; 8], 0.84375);
    check(&scores, &labels, &[1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 0.25, 4.0], 0.881_578_9);

    let n = 1000;
    let scores: Vec<f32> = values(n, 1).iter().map(|x| (x / 4.0).floor()).collect();
    let labels: Vec<f32> = values(n, 2).iter().zip(values(n, 1)).map(|(a, b)| f32::from(u8::from(a + b > 100.0))).collect();
    let weights: Vec<f32> = values(n, 3).iter().map(|x| x / 50.0).collect();
    check(&scores, &labels, &vec![1.0; n], 0.836_782_04);
    check(&scores, &labels, &weights, 0.874_823);
}

#[test]
fn it_knows_its_extremes() {
    check(&[1.0, 2.0], &[0.0, 1.0], &[1.0; 2], 1.0);
    check(&[2.0, 1.0], &[0.0, 1.0], &[1.0; 2], 0.0);
    check(&[7.0; 5], &[0.0, 1.0, 0.0, 1.0, 1.0], &[1.0; 5], 0.5);
    check(&[-0.0, 0.0], &[0.0, 1.0], &[1.0; 2], 0.5);
    let infinities = [f32::NEG_INFINITY, f32::MIN, -1e-45, 1e-45, f32::MAX, f32::INFINITY];
    check(&infinities, &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0], &[1.0; 6], 1.0);
}

#[test]
fn rows_of_weight_zero_count_for_nothing() {
    check(&[1.0, 2.0, f32::NAN, 9.0, -9.0], &[0.0, 1.0, 1.0, 0.0, 1.0], &[1.0, 1.0, 0.0, 0.0, 0.0], 1.0);
}

#[test]
fn nan_and_one_class_have_no_area() {
    check(&[1.0, f32::NAN, 2.0], &[0.0, 0.0, 1.0], &[1.0; 3], f32::NAN);
    check(&[1.0, -f32::NAN, 2.0], &[0.0, 1.0, 1.0], &[1.0; 3], f32::NAN);
    check(&[1.0, 2.0], &[0.0, 1.0], &[1.0, f32::NAN], f32::NAN);
    check(&[1.0, 2.0], &[1.0, 1.0], &[1.0; 2], f32::NAN);
    check(&[1.0, 2.0], &[0.0, 1.0], &[1.0, 0.0], f32::NAN);
    check(&[1.0], &[0.0], &[1.0], f32::NAN);
}

fn given(n: usize, seed: u64) -> [Words; 3] {
    let mut random = Random::new(seed);
    let labels: Vec<f32> = (0..n).map(|_| random.below(2) as f32).collect();
    // On a grid, so that there are ties, and with labels a little.
    let scores: Vec<f32> = labels.iter().map(|label| (random.float() * 40.0 + 8.0 * label).round() / 4.0).collect();
    let weights: Vec<f32> = (0..n).map(|_| random.below(5) as f32 / 2.0).collect();
    [words(&scores), words(&labels), words(&weights)]
}

#[test]
fn the_area_counts_pairs() {
    for n in [2, 3, 17, 300] {
        let mut given = given(n, n as u64);
        (given[1][0], given[1][1]) = (0, 1.0_f32.to_bits());
        (given[2][0], given[2][1]) = (1.0_f32.to_bits(), 1.0_f32.to_bits());
        let rows: Vec<[f64; 3]> = (0..n).map(|i| [0, 1, 2].map(|arg| f64::from(floats(&given[arg])[i]))).collect();
        let (mut wins, mut pairs) = (0.0, 0.0);
        for [a, label, weight] in &rows {
            for [b, other_label, other_weight] in &rows {
                if *label == 1.0 && *other_label == 0.0 {
                    pairs += weight * other_weight;
                    wins += weight * other_weight * if a > b { 1.0 } else { f64::from(u8::from(a == b)) / 2.0 };
                }
            }
        }
        assert_close(&format!("{n} rows"), &[area(&given)], &[(wins / pairs) as f32], DEFAULT);
    }
}

#[test]
fn gpu_agrees() {
    // Weights are added in f32.
    let sums = Tolerance { absolute: 2e-6, relative: 0.0 };
    // Around powers of two, and around runs of 64 and of runs.
    for n in [1, 2, 3, 5, 8, 9, 63, 64, 65, 129, 1000, 4096, 4097] {
        gpu_equals_twin_within(&RocAuc { n }, &given(n, 100 + n as u64), sums);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    same_bits_on_any_pool(&RocAuc { n: 50_001 }, &given(50_001, 1));
}

#[test]
fn too_many_rows_are_refused() {
    let error = RocAuc { n: (1 << 30) + 1 }.check().expect_err("too many").to_string();
    assert_eq!(error, "roc_auc: n is 1073741825, expected at most 2^30");
    assert_eq!(RocAuc { n: 0 }.check().expect_err("none").to_string(), "roc_auc: n is 0, expected 1 to 2^32 - 1");
}
