use brisk_kernels::{AddTo, Kernel};

use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let given = [words(&[1.0, -2.0, 0.5]), words(&[10.0, 2.0, f32::INFINITY])];
    assert_eq!(twin_floats(&AddTo { n: 3 }, &given), [11.0, 0.0, f32::INFINITY]);
}

#[test]
fn gpu_agrees_and_bits_do_not_depend_on_threads() {
    let mut random = Random::new(1);
    for n in [1, 63, 64, 65, 1001, 40_003] {
        let given = [words(&random.floats(n)), words(&random.floats(n))];
        gpu_equals_twin(&AddTo { n }, &given);
        same_bits_on_any_pool(&AddTo { n }, &given);
    }
}

#[test]
fn nothing_is_refused() {
    assert!(AddTo { n: 0 }.check().is_err(), "no elements");
}
