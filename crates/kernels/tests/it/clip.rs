use brisk_kernels::{clip_by_norm, clip_by_value};

use crate::close::{DEFAULT, assert_close};
use crate::random::Random;
use crate::run::*;

#[track_caller]
fn by_norm(norm: f32, grads: &[f32], max_norm: f32, expected: &[f32]) {
    let kernel = clip_by_norm(grads.len(), max_norm).expect("a limit");
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
    // The millionth matters if the norm is tiny.
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
    let kernel = clip_by_value(8, 1.0).expect("a limit");
    let expected = [0.5, -0.5, 1.0, 1.0, -1.0, 1.0, -1.0, f32::NAN];
    assert_close("grads", &twin_floats(&kernel, &[words(&grads)]), &expected, DEFAULT);
    gpu_equals_twin(&kernel, &[words(&grads)]);
}

#[test]
fn gpu_agrees_and_bits_do_not_depend_on_threads() {
    let mut random = Random::new(1);
    for n in [1, 63, 64, 65, 1001, 40_003] {
        let grads = words(&random.floats(n));
        gpu_equals_twin(&clip_by_norm(n, 0.3).expect("a limit"), &[words(&[0.7]), grads.clone()]);
        gpu_equals_twin(&clip_by_value(n, 0.3).expect("a limit"), std::slice::from_ref(&grads));
        same_bits_on_any_pool(&clip_by_norm(n, 0.3).expect("a limit"), &[words(&[0.7]), grads.clone()]);
        same_bits_on_any_pool(&clip_by_value(n, 0.3).expect("a limit"), &[grads]);
    }
}

#[test]
fn a_negative_limit_is_refused() {
    let message =
        |kernel: &str, name: &str| format!("{kernel}: {name} = -1 is not supported, expected a number that is not negative");
    let error = clip_by_norm(1, -1.0).expect_err("a norm is not negative");
    assert_eq!(error.to_string(), message("clip_by_norm", "max_norm"));
    let error = clip_by_value(1, -1.0).expect_err("nothing lies between 1 and -1");
    assert_eq!(error.to_string(), message("clip_by_value", "limit"));
    assert!(clip_by_value(1, f32::NAN).is_err(), "NaN");
}
