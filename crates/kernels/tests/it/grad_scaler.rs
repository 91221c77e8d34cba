use brisk_kernels::{Kernel, Unscale, UpdateScale};

use crate::random::Random;
use crate::run::*;

/// On the twin and the GPU, the scale and the count of good steps after each update are bit-identical to those of
/// `torch._amp_update_scale_` of PyTorch 2.15.
#[track_caller]
fn check(kernel: UpdateScale, start: f32, found_inf: &[u32], expected: &[(f32, u32)]) {
    let (mut scale, mut scaler) = (words(&[start]), vec![0, 0, 0, 0]);
    for (step, (&found, &expected)) in found_inf.iter().zip(expected).enumerate() {
        scaler[0] = 1 + found;
        let given = [scale, scaler];
        let results = run_twin(&kernel, &given);
        gpu_equals_twin_to_the_bit(&kernel, &given);
        [scale, scaler] = results.try_into().expect("two results");
        assert_eq!((floats(&scale)[0], scaler[1]), expected, "after step {step}");
    }
}

#[track_caller]
fn gpu_equals_twin_to_the_bit(kernel: &dyn Kernel, given: &[Words]) {
    let Some(mut gpu) = crate::gpu::gpu() else { return };
    assert_eq!(run_gpu(&mut gpu, kernel, given), run_twin(kernel, given), "{kernel:?} of {given:X?}");
}

#[test]
fn the_scale_backs_off_and_grows() {
    let kernel = UpdateScale { growth_interval: 2, ..UpdateScale::default() };
    let expected = [(65536.0, 1), (32768.0, 0), (32768.0, 1), (65536.0, 0), (65536.0, 1)];
    check(kernel, 65536.0, &[0, 1, 0, 0, 0], &expected);
}

#[test]
fn the_scale_stays_finite_above() {
    let kernel = UpdateScale { growth_interval: 1, ..UpdateScale::default() };
    check(kernel, f32::MAX, &[0, 0], &[(f32::MAX, 0), (f32::MAX, 0)]);
    // 2¹²⁷ is the last power of two.
    let start = 2.0_f32.powi(126);
    check(kernel, start, &[0, 0, 1, 0], &[(2.0 * start, 0), (2.0 * start, 0), (start, 0), (2.0 * start, 0)]);
}

#[test]
fn the_scale_is_halved_to_nothing() {
    let kernel = UpdateScale::default();
    let halves: Vec<(f32, u32)> = (127..=150).map(|power| (2.0_f64.powi(-power) as f32, 0)).collect();
    assert_eq!(halves.last(), Some(&(0.0, 0)), "half of the least number is 0, by ties to even");
    check(kernel, 2.0_f32.powi(-126), &vec![1; halves.len()], &halves);
    check(kernel, 0.0, &[1, 0, 0], &[(0.0, 0), (0.0, 1), (0.0, 2)]);
}

/// The scale after each update is within 3 · 2⁻²⁴ of PyTorch's per update so far, and subnormal scales within one unit each.
#[track_caller]
fn check_near_pytorch(kernel: UpdateScale, start: f32, found_inf: &[u32], expected: &[u32]) {
    let (mut scale, mut scaler) = (words(&[start]), vec![0, 0, 0, 0]);
    for (step, (&found, &expected)) in found_inf.iter().zip(expected).enumerate() {
        scaler[0] = 1 + found;
        let given = [scale, scaler];
        gpu_equals_twin_to_the_bit(&kernel, &given);
        [scale, scaler] = run_twin(&kernel, &given).try_into().expect("two results");
        let (found, expected) = (f64::from(floats(&scale)[0]), f64::from(f32::from_bits(expected)));
        let n_updates = step as f64 + 1.0;
        let limit = n_updates * (expected * 3.0 * 2.0_f64.powi(-24)).max(2.0_f64.powi(-149));
        assert!((found - expected).abs() <= limit, "{found:e} instead of {expected:e} after step {step}");
    }
}

#[test]
fn factors_that_are_not_powers_of_two_are_near_pytorchs() {
    let kernel = UpdateScale { growth_factor: 1.1, backoff_factor: 0.7, growth_interval: 1 };
    check_near_pytorch(kernel, 65536.0, &[0, 0, 1, 0, 1, 1, 0, 0, 0, 1], &TORCH_TRACE);
}

/// The results of `torch._amp_update_scale_` for 65536 with the factors 1.1 and 0.7.
const TORCH_TRACE: [u32; 10] = [
    0x478C_CCCD,
    0x479A_E148,
    0x4758_D4FE,
    0x476E_83E4,
    0x4726_F5EC,
    0x46E9_BEB1,
    0x4700_8F48,
    0x470D_6A69,
    0x471B_8EA7,
    0x46D9_C7B7,
];

/// The same for 2⁻¹²⁰ and 0.1, down to 0; subnormal from the second on.
const TORCH_DESCENT: [u32; 9] =
    [0x01CC_CCCD, 0x0051_EB85, 0x0008_3127, 0x0000_D1B7, 0x0000_14F9, 0x0000_0219, 0x0000_0036, 0x0000_0005, 0];

#[test]
fn a_scale_falls_through_subnormal_numbers_to_0() {
    let kernel = UpdateScale { backoff_factor: 0.1, ..UpdateScale::default() };
    check_near_pytorch(kernel, 2.0_f32.powi(-120), &[1; 9], &TORCH_DESCENT);
}

/// With any power of two, results are bit-identical to PyTorch's, which multiplies in f64: for scales with any mantissa,
/// subnormal numbers, and beyond the largest number.
#[test]
fn powers_of_two_give_the_bits_of_pytorch() {
    let mut random = Random::new(6);
    for (at, power) in random.floats(600).iter().zip((1..=149).cycle()) {
        let factor = 2.0_f64.powi(power);
        let kernel = UpdateScale { growth_factor: factor, backoff_factor: 1.0 / factor, growth_interval: 1 };
        for scale in [(1.0 + at.abs()) * 2.0_f32.powi((126.0 * at) as i32), f32::from_bits((at.abs() * 8_388_607.0) as u32)] {
            let [grown, shrunk] = [factor, 1.0 / factor].map(|factor| (f64::from(scale) * factor) as f32);
            check(kernel, scale, &[0], &[(if grown.is_finite() { grown } else { scale }, 0)]);
            check(kernel, scale, &[1], &[(shrunk, 0)]);
        }
    }
}

#[test]
fn factors_of_any_size_give_the_same_bits_on_the_gpu() {
    let next_below = |x: f64| f64::from_bits(x.to_bits() - 1);
    for backoff_factor in
        [next_below(1.0), 1e-5, 2.0_f64.powi(-149), 2.0_f64.powi(-278), 1e-300, f64::MIN_POSITIVE, f64::from_bits(1)]
    {
        for growth_factor in [1.0 + f64::EPSILON, 3.3, 1e30, 2.0_f64.powi(277), f64::MAX] {
            let kernel = UpdateScale { growth_factor, backoff_factor, growth_interval: 1 };
            for scale in [f32::from_bits(1), f32::MIN_POSITIVE, 0.1, f32::from_bits(0x3FFF_FFFF), 65536.0, f32::MAX] {
                gpu_equals_twin_to_the_bit(&kernel, &[words(&[scale]), vec![1, 0, 0, 0]]);
                gpu_equals_twin_to_the_bit(&kernel, &[words(&[scale]), vec![2, 0, 0, 0]]);
            }
        }
    }
}

#[test]
fn any_scale_and_factors_give_the_same_bits_on_the_gpu() {
    let mut random = Random::new(5);
    let uniform = random.floats(400);
    for at in uniform.chunks_exact(4) {
        // Arbitrary factors, and scales of any size, including subnormal ones.
        let kernel = UpdateScale {
            growth_factor: 1.5 + 0.4999 * f64::from(at[0]),
            backoff_factor: 0.5 + 0.4999 * f64::from(at[1]),
            growth_interval: 1,
        };
        let scale = (0.25 + at[2].abs()) * 2.0_f32.powi((150.0 * at[3]) as i32).max(f32::from_bits(99));
        gpu_equals_twin_to_the_bit(&kernel, &[words(&[scale]), vec![1, 0, 0, 0]]);
        gpu_equals_twin_to_the_bit(&kernel, &[words(&[scale]), vec![2, 0, 0, 0]]);
    }
}

#[test]
fn updates_that_found_something_are_counted() {
    let mut scaler = vec![0, 0, 0, 0];
    for (verdict, expected) in
        [(2, [0, 0, 1, 1]), (2, [0, 0, 2, 2]), (0, [0, 0, 2, 2]), (1, [0, 1, 0, 2]), (0, [0, 1, 0, 2]), (2, [0, 0, 1, 3])]
    {
        scaler[0] = verdict;
        let given = [words(&[1.0]), scaler];
        gpu_equals_twin_to_the_bit(&UpdateScale::default(), &given);
        scaler = run_twin(&UpdateScale::default(), &given)[1].clone();
        assert_eq!(scaler, expected, "verdict, n_good, n_skipped_in_a_row, n_skipped");
    }
}

/// The gradients, the verdict, and whether the step is skipped.
#[track_caller]
fn check_unscale(scale: f32, grads: &[f32], expected: &[f32], skips: u32) {
    let (given, kernel) = ([words(&[scale]), words(grads), vec![0, 4, 5, 6], vec![7, 8, 0, 9]], Unscale { n: grads.len() });
    let results = run_twin(&kernel, &given);
    assert_eq!(floats(&results[0]), expected, "of {grads:?}");
    assert_eq!(results[1..], [vec![1 + skips, 4, 5, 6], vec![7, 8, skips, 9]], "of {grads:?}");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn gradients_are_divided_by_the_scale() {
    check_unscale(4.0, &[4.0, -2.0, 0.0], &[1.0, -0.5, 0.0], 0);
    check_unscale(3.0, &[3.0, -1.5], &[1.0, -0.5], 0);
    check_unscale(0.25, &[3.0, f32::MAX / 8.0], &[12.0, f32::MAX / 2.0], 0);
}

#[test]
fn what_is_not_finite_skips_the_step_and_the_rest_is_divided() {
    check_unscale(4.0, &[4.0, f32::INFINITY, -2.0], &[1.0, f32::INFINITY, -0.5], 1);
    check_unscale(4.0, &[f32::NEG_INFINITY, 8.0], &[f32::NEG_INFINITY, 2.0], 1);
    // Finite before, infinite after.
    check_unscale(0.25, &[4.0, f32::MAX], &[16.0, f32::INFINITY], 1);
    let nan = [words(&[4.0]), words(&[f32::NAN, 4.0]), vec![0; 4], vec![0; 4]];
    let results = run_twin(&Unscale { n: 2 }, &nan);
    assert!(floats(&results[0])[0].is_nan(), "it stays");
    assert_eq!((floats(&results[0])[1], results[1][0], results[2][2]), (1.0, 2, 1), "the other, and the flags");
    gpu_equals_twin(&Unscale { n: 2 }, &nan);
}

#[test]
fn where_no_step_is_due_nothing_is_unscaled() {
    let given = [words(&[4.0]), words(&[8.0, f32::INFINITY]), vec![0, 1, 0, 0], vec![5, 5, 2, 3]];
    assert_eq!(run_twin(&Unscale { n: 2 }, &given), given[1..]);
    gpu_equals_twin_to_the_bit(&Unscale { n: 2 }, &given);
    // Finite gradients of one optimizer do not clear the verdict of another.
    let given = [words(&[4.0]), words(&[8.0]), vec![2, 0, 0, 0], vec![5, 5, 0, 0]];
    assert_eq!(run_twin(&Unscale { n: 1 }, &given)[1..], [vec![2, 0, 0, 0], vec![5, 5, 0, 0]]);
    gpu_equals_twin_to_the_bit(&Unscale { n: 1 }, &given);
}

#[test]
fn a_scale_that_is_no_normal_number_skips_every_step() {
    for scale in [0.0, f32::INFINITY, f32::NAN, f32::from_bits(1)] {
        let given = [words(&[scale]), words(&[0.0, 1.0]), vec![0; 4], vec![0; 4]];
        let results = run_twin(&Unscale { n: 2 }, &given);
        assert_eq!((results[1][0], results[2][2]), (2, 1), "{scale}");
        assert_eq!(results[0], given[1], "{scale}: what lies between parameters is 0 and stays it");
        let Some(mut gpu) = crate::gpu::gpu() else { continue };
        assert_eq!(run_gpu(&mut gpu, &Unscale { n: 2 }, &given), results, "{scale}");
    }
}

#[test]
fn gpu_agrees_and_bits_do_not_depend_on_threads() {
    for n in [1, 63, 64, 65, 40_003] {
        for last in [1.0, f32::INFINITY] {
            let mut grads = Random::new(1).floats(n);
            grads[n - 1] = last;
            let given = [words(&[65536.0]), words(&grads), vec![0; 4], vec![0; 4]];
            gpu_equals_twin_to_the_bit(&Unscale { n }, &given);
            same_bits_on_any_pool(&Unscale { n }, &given);
        }
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
    refuses(
        UpdateScale { growth_factor: f64::INFINITY, ..default },
        "growth_factor = inf is not supported, expected more than 1",
    );
    refuses(UpdateScale { backoff_factor: 1.0, ..default }, "backoff_factor = 1 is not supported, expected between 0 and 1");
    refuses(UpdateScale { growth_interval: 0, ..default }, "growth_interval = 0 is not supported, expected at least 1");
}
