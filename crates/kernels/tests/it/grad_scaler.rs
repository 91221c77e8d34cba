use brisk_kernels::{Kernel, Unscale, UpdateScale};

use crate::random::Random;
use crate::run::*;

/// The scale and the count after each step.
#[track_caller]
fn check(kernel: UpdateScale, start: f32, found_inf: &[f32], expected: &[(f32, u32)]) {
    let (mut scale, mut n_good) = (start, 0);
    for (step, (&found, &expected)) in found_inf.iter().zip(expected).enumerate() {
        let given = [words(&[found]), words(&[scale]), vec![n_good]];
        gpu_equals_twin(&kernel, &given);
        let results = run_twin(&kernel, &given);
        (scale, n_good) = (floats(&results[0])[0], results[1][0]);
        assert_eq!((scale, n_good), expected, "after step {step}");
    }
}

#[test]
fn the_scale_backs_off_and_grows() {
    let kernel = UpdateScale { growth_interval: 2, ..UpdateScale::default() };
    // As PyTorch does it, with something infinite in the second step.
    let expected = [(65536.0, 1), (32768.0, 0), (32768.0, 1), (65536.0, 0), (65536.0, 1)];
    check(kernel, 65536.0, &[0.0, 1.0, 0.0, 0.0, 0.0], &expected);
}

#[test]
fn the_scale_stays_finite_above_and_has_no_floor() {
    let kernel = UpdateScale { growth_interval: 1, ..UpdateScale::default() };
    check(kernel, f32::MAX, &[0.0, 0.0], &[(f32::MAX, 0), (f32::MAX, 0)]);
    // A denormal, which a GPU may take for 0 at once, so on the twin alone.
    let results = run_twin(&kernel, &[words(&[1.0]), words(&[1e-45]), vec![0]]);
    assert_eq!(floats(&results[0]), [0.0], "half of the least");
}

#[test]
fn gradients_are_divided_by_the_scale() {
    let given = [words(&[4.0]), words(&[4.0, -2.0, f32::INFINITY])];
    assert_eq!(twin_floats(&Unscale { n: 3 }, &given), [1.0, -0.5, f32::INFINITY]);
    gpu_equals_twin(&Unscale { n: 3 }, &given);
    for n in [1, 63, 64, 65, 40_003] {
        let given = [words(&[65536.0]), words(&Random::new(1).floats(n))];
        gpu_equals_twin(&Unscale { n }, &given);
        same_bits_on_any_pool(&Unscale { n }, &given);
    }
}

#[test]
fn factors_that_make_no_sense_are_refused() {
    let refuses = |kernel: UpdateScale, expected: &str| {
        let error = kernel.check().expect_err("it would not back off or grow");
        assert_eq!(error.to_string(), format!("update_scale: {expected}"));
    };
    let default = UpdateScale::default();
    refuses(UpdateScale { growth_factor: 1.0, ..default }, "growth_factor = 1 is not supported, expected more than 1");
    refuses(UpdateScale { backoff_factor: 1.0, ..default }, "backoff_factor = 1 is not supported, expected between 0 and 1");
    refuses(UpdateScale { growth_interval: 0, ..default }, "growth_interval = 0 is not supported, expected at least 1");
}
