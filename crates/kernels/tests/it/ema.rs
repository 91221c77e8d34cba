use brisk_kernels::{Ema, EmaStart, Kernel};

use crate::random::Random;
use crate::run::*;

/// Every step, from the parameters.
const EMA: Ema = Ema { n: 2, decay: 0.75, every: 1, first_step: 1, start: EmaStart::Parameters };

#[track_caller]
fn check(kernel: Ema, step: u32, expected: &[f32]) {
    check_state(kernel, [0, step, 0, 0], expected);
}

#[track_caller]
fn check_state(kernel: Ema, state: [u32; 4], expected: &[f32]) {
    let given = [words(&[8.0, 0.0]), state.to_vec(), words(&[4.0, 4.0])];
    assert_eq!(twin_floats(&kernel, &given), expected, "in state {state:?}");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn the_first_is_a_copy_then_it_follows() {
    check(EMA, 0, &[8.0, 0.0]);
    check(EMA, 1, &[5.0, 3.0]);
    check(Ema { decay: 1.0, ..EMA }, 1, &[4.0, 4.0]);
    check(Ema { decay: 0.0, ..EMA }, 1, &[8.0, 0.0]);
}

#[test]
fn it_is_the_parameters_up_to_its_first_update_and_then_updated_every_so_many_steps() {
    let kernel = Ema { every: 3, first_step: 3, ..EMA };
    for step in [0, 1, 2] {
        check(kernel, step, &[8.0, 0.0]);
    }
    for step in [3, 4, 6] {
        check(kernel, step, &[4.0, 4.0]);
    }
    check(kernel, 5, &[5.0, 3.0]);
}

#[test]
fn from_given_values_the_first_update_is_an_average() {
    // Steps 1, 6, 11.
    let kernel = Ema { every: 5, start: EmaStart::Given, ..EMA };
    for step in [0, 5, 10] {
        check(kernel, step, &[5.0, 3.0]);
    }
    for step in [1, 4, 6] {
        check(kernel, step, &[4.0, 4.0]);
    }
    // Steps 3, 8.
    let late = Ema { first_step: 3, ..kernel };
    for (step, expected) in [(0, [4.0, 4.0]), (1, [4.0, 4.0]), (2, [5.0, 3.0]), (3, [4.0, 4.0]), (7, [5.0, 3.0])] {
        check(late, step, &expected);
    }
}

#[test]
fn a_skipped_step_is_not_averaged_and_does_not_count() {
    let kernel = Ema { every: 3, first_step: 3, ..EMA };
    for (state, expected) in [([0, 2, 1, 0], [4.0, 4.0]), ([0, 4, 0, 2], [8.0, 0.0]), ([0, 6, 0, 1], [5.0, 3.0])] {
        check_state(kernel, state, &expected);
    }
}

#[test]
fn gpu_agrees_and_bits_do_not_depend_on_threads() {
    let mut random = Random::new(1);
    for n in [1, 63, 64, 65, 40_003] {
        let given = [words(&random.floats(n)), vec![0, 9, 0, 0], words(&random.floats(n))];
        let kernel = Ema { n, decay: 0.999, every: 5, first_step: 5, start: EmaStart::Parameters };
        gpu_equals_twin(&kernel, &given);
        same_bits_on_any_pool(&kernel, &given);
    }
}

#[test]
fn a_decay_beyond_one_and_steps_of_zero_are_refused() {
    let error = Ema { decay: 1.5, ..EMA }.check().expect_err("it would grow");
    assert_eq!(error.to_string(), "ema: decay = 1.5 is not supported, expected a number from 0 to 1");
    assert!(Ema { every: 0, ..EMA }.check().is_err(), "never");
    assert!(Ema { first_step: 0, ..EMA }.check().is_err(), "steps are counted from 1");
}
