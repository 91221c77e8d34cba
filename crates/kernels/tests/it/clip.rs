use brisk_kernels::{ClipByNorm, ClipByValue, Kernel};

use crate::close::{DEFAULT, assert_close};
use crate::random::Random;
use crate::run::*;

#[track_caller]
fn by_norm(norm: f32, grads: &[f32], max_norm: f32, expected: &[f32]) {
    let kernel = ClipByNorm { n: grads.len(), max_norm };
    let given = [words(&[norm]), words(grads)];
    assert_close("grads", &twin_floats(&kernel, &given), expected, DEFAULT);
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn a_norm_too_large_is_scaled_down_and_another_is_left() {
    by_norm(13.0, &[3.0, 4.0, 0.0, 12.0], 6.5, &[1.5, 2.0, 0.0, 6.0]);
    by_norm(5.0, &[3.0, 4.0], 6.5, &[3.0, 4.0]);
    by_norm(0.0, &[0.0, 0.0], 1.0, &[0.0, 0.0]);
    by_norm(5.0, &[3.0, 4.0], 0.0, &[0.0, 0.0]);
    // The millionth counts where the norm is tiny.
    by_norm(1e-6, &[1e-6], 1e-6, &[0.5e-6]);
}

#[test]
fn a_norm_of_nan_makes_all_nan_and_an_infinite_one_zero() {
    by_norm(f32::NAN, &[3.0, f32::NAN, 0.0], 1.0, &[f32::NAN, f32::NAN, 0.0]);
    by_norm(f32::INFINITY, &[3.0, f32::INFINITY], 1.0, &[0.0, f32::NAN]);
}

#[test]
fn values_are_cut_and_nan_stays() {
    let grads = [0.5, -0.5, 1.0, 2.0, -3.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let kernel = ClipByValue { n: 8, limit: 1.0 };
    let expected = [0.5, -0.5, 1.0, 1.0, -1.0, 1.0, -1.0, f32::NAN];
    assert_close("grads", &twin_floats(&kernel, &[words(&grads)]), &expected, DEFAULT);
    gpu_equals_twin(&kernel, &[words(&grads)]);
}

#[test]
fn gpu_agrees_and_bits_do_not_depend_on_threads() {
    let mut random = Random::new(1);
    for n in [1, 63, 64, 65, 1001, 40_003] {
        let grads = words(&random.floats(n));
        gpu_equals_twin(&ClipByNorm { n, max_norm: 0.3 }, &[words(&[0.7]), grads.clone()]);
        gpu_equals_twin(&ClipByValue { n, limit: 0.3 }, std::slice::from_ref(&grads));
        same_bits_on_any_pool(&ClipByNorm { n, max_norm: 0.3 }, &[words(&[0.7]), grads.clone()]);
        same_bits_on_any_pool(&ClipByValue { n, limit: 0.3 }, &[grads]);
    }
}

#[test]
fn a_negative_limit_is_refused() {
    let message =
        |kernel: &str, name: &str| format!("{kernel}: {name} = -1 is not supported, expected a number that is not negative");
    let error = ClipByNorm { n: 1, max_norm: -1.0 }.check().expect_err("a norm is not negative");
    assert_eq!(error.to_string(), message("clip_by_norm", "max_norm"));
    let error = ClipByValue { n: 1, limit: -1.0 }.check().expect_err("nothing lies between 1 and -1");
    assert_eq!(error.to_string(), message("clip_by_value", "limit"));
    assert!(ClipByValue { n: 1, limit: f32::NAN }.check().is_err(), "NaN");
}
