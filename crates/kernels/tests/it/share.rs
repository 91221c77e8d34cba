use brisk_kernels::{Kernel, Share};

use crate::random::Random;
use crate::run::*;

#[track_caller]
fn check(x: &[f32], total: f32, expected: &[f32]) {
    let (kernel, given) = (Share { n: x.len() }, [words(x), words(&[total])]);
    assert_eq!(twin_floats(&kernel, &given), expected, "of {total}");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn twin_equals_hand_worked_numbers() {
    check(&[1.0, 3.0, 0.0], 4.0, &[0.25, 0.75, 0.0]);
    check(&[0.0, 0.0], 0.0, &[0.0, 0.0]);
    check(&[1.0, -3.0], -2.0, &[-0.5, 1.5]);
}

#[test]
fn gpu_agrees_and_bits_do_not_depend_on_threads() {
    let mut random = Random::new(1);
    for n in [1, 63, 64, 65, 1001, 40_003] {
        let given = [words(&random.floats(n)), words(&[3.7])];
        gpu_equals_twin(&Share { n }, &given);
        same_bits_on_any_pool(&Share { n }, &given);
    }
}

#[test]
fn nothing_is_refused() {
    assert!(Share { n: 0 }.check().is_err(), "no elements");
}
