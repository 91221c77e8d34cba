use brisk_kernels::{Ema, Kernel};

use crate::random::Random;
use crate::run::*;

#[track_caller]
fn check(kernel: Ema, step: u32, expected: &[f32]) {
    let given = [words(&[8.0, 0.0]), vec![0, step, 0, 0], words(&[4.0, 4.0])];
    assert_eq!(twin_floats(&kernel, &given), expected, "in step {step}");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn the_first_is_a_copy_then_it_follows() {
    let kernel = Ema { n: 2, decay: 0.75, every: 1 };
    check(kernel, 0, &[8.0, 0.0]);
    check(kernel, 1, &[5.0, 3.0]);
    check(Ema { decay: 1.0, ..kernel }, 1, &[4.0, 4.0]);
    check(Ema { decay: 0.0, ..kernel }, 1, &[8.0, 0.0]);
}

#[test]
fn it_is_taken_every_so_many_steps() {
    let kernel = Ema { n: 2, decay: 0.75, every: 3 };
    for step in [0, 1, 3, 4] {
        check(kernel, step, &[4.0, 4.0]);
    }
    check(kernel, 2, &[8.0, 0.0]);
    check(kernel, 5, &[5.0, 3.0]);
}

#[test]
fn a_skipped_step_is_not_averaged_and_does_not_count() {
    let kernel = Ema { n: 2, decay: 0.75, every: 3 };
    let with_state = |state: [u32; 4]| [words(&[8.0, 0.0]), state.to_vec(), words(&[4.0, 4.0])];
    for (state, expected) in [([0, 2, 1, 0], [4.0, 4.0]), ([0, 4, 0, 2], [8.0, 0.0]), ([0, 6, 0, 1], [5.0, 3.0])] {
        assert_eq!(twin_floats(&kernel, &with_state(state)), expected, "{state:?}");
        gpu_equals_twin(&kernel, &with_state(state));
    }
}

#[test]
fn gpu_agrees_and_bits_do_not_depend_on_threads() {
    let mut random = Random::new(1);
    for n in [1, 63, 64, 65, 40_003] {
        let given = [words(&random.floats(n)), vec![0, 9, 0, 0], words(&random.floats(n))];
        let kernel = Ema { n, decay: 0.999, every: 5 };
        gpu_equals_twin(&kernel, &given);
        same_bits_on_any_pool(&kernel, &given);
    }
}

#[test]
fn a_decay_beyond_one_is_refused() {
    let error = Ema { n: 1, decay: 1.5, every: 1 }.check().expect_err("it would grow");
    assert_eq!(error.to_string(), "ema: decay = 1.5 is not supported, expected 0 <= decay <= 1");
    assert!(Ema { n: 1, decay: 0.5, every: 0 }.check().is_err(), "never");
}
