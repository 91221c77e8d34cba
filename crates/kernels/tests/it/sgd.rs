use brisk_kernels::{Momentum, Sgd};

use crate::close::{DEFAULT, assert_close};
use crate::random::Random;
use crate::run::*;

#[track_caller]
fn check(form: Momentum, expected_params: &[f32], expected_momentum: &[f32]) {
    let kernel = Sgd { n: 2, n_lr: 1, momentum: 0.5, weight_decay: 0.1, form };
    let given = [words(&[1.0, -1.0]), words(&[0.1]), vec![7, 7, 0, 0], words(&[10.0, 0.0]), words(&[2.0, 4.0])];
    let [params, momentum]: [Words; 2] = run_twin(&kernel, &given).try_into().expect("two results");
    assert_close("params", floats(&params), expected_params, DEFAULT);
    assert_close("momentum", floats(&momentum), expected_momentum, DEFAULT);
}

#[test]
fn twins_equal_hand_worked_numbers() {
    // g = 1 + 0.1 · 10 = 2, -1; u = 0.5 · 2 + 2 = 3, 0.5 · 4 - 1 = 1.
    check(Momentum::Heavy, &[9.7, -0.1], &[3.0, 1.0]);
    // g + 0.5 u = 3.5, -0.5.
    check(Momentum::Nesterov, &[9.65, 0.05], &[3.0, 1.0]);
    // u = 0.5 · 2 - 0.1 · 2 = 0.8, 2 + 0.1 = 2.1; p + 0.5 u - 0.1 g.
    check(Momentum::FoldedNesterov, &[10.2, 1.15], &[0.8, 2.1]);
}

fn given(random: &mut Random, n: usize) -> Vec<Words> {
    let lr = words(&[0.1, 0.01]);
    vec![words(&random.floats(n)), lr, vec![5, 5, 0, 0], words(&random.floats(n)), words(&random.floats(n))]
}

#[test]
fn a_skipped_step_changes_nothing() {
    let mut skipped = given(&mut Random::new(3), 65);
    skipped[2][2] = 1;
    let kernel = Sgd { n: 65, n_lr: 2, momentum: 0.9, weight_decay: 0.01, form: Momentum::Nesterov };
    assert_eq!(run_twin(&kernel, &skipped), skipped[3..], "parameters and momentum are as they were");
    gpu_equals_twin(&kernel, &skipped);
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for form in [Momentum::Heavy, Momentum::Nesterov, Momentum::FoldedNesterov] {
        for n in [1, 63, 64, 65, 1001] {
            gpu_equals_twin(&Sgd { n, n_lr: 2, momentum: 0.9, weight_decay: 0.01, form }, &given(&mut random, n));
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let n = 70_001;
    let kernel = Sgd { n, n_lr: 2, momentum: 0.9, weight_decay: 0.01, form: Momentum::Nesterov };
    same_bits_on_any_pool(&kernel, &given(&mut Random::new(2), n));
}
