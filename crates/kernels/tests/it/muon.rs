use brisk_kernels::{Kernel, Momentum, MuonMomentum, MuonStep, Runs};

use crate::close::{DEFAULT, assert_close};
use crate::random::Random;
use crate::run::*;
use crate::runs::{STATES, runs};

#[track_caller]
fn check_momentum(form: Momentum, state: [u32; 4], expected_momentum: &[f32], expected_update: &[f32]) {
    let runs = Runs { n: 7, starts: vec![1, 4], len: 2 };
    let kernel = MuonMomentum { runs, momentum: 0.75, form };
    let grads = [9.0, 1.0, 2.0, 9.0, 3.0, 4.0, 9.0];
    let given = [words(&grads), state.to_vec(), words(&[8.0, 5.0, -2.0, 8.0, 3.0, 0.0, 8.0])];
    let [momentum, update]: [Words; 2] = run_twin(&kernel, &given).try_into().expect("two results");
    assert_close("momentum", floats(&momentum), expected_momentum, DEFAULT);
    assert_close("update", floats(&update), expected_update, DEFAULT);
}

#[test]
fn the_mean_of_gradients_equals_hand_worked_numbers() {
    let moved = [8.0, 4.0, -1.0, 8.0, 3.0, 1.0, 8.0];
    check_momentum(Momentum::Heavy, STATES[0], &moved, &[4.0, -1.0, 3.0, 1.0]);
    check_momentum(Momentum::Nesterov, STATES[0], &moved, &[3.25, -0.25, 3.0, 1.75]);
    // A skipped step does not change it, whatever the update.
    check_momentum(Momentum::Heavy, STATES[1], &[8.0, 5.0, -2.0, 8.0, 3.0, 0.0, 8.0], &[4.0, -1.0, 3.0, 1.0]);
}

#[test]
fn the_step_equals_hand_worked_numbers() {
    let kernel = MuonStep { runs: Runs { n: 7, starts: vec![1, 4], len: 2 }, n_lr: 2, factor: 2.0, weight_decay: 0.5 };
    let params = words(&[8.0, 2.0, 4.0, 8.0, 0.0, -2.0, 8.0]);
    // Beyond the table, the last rate is used.
    let given = |state: [u32; 4]| [words(&[1.0, -1.0, 0.5, 0.0]), words(&[5.0, 0.1]), state.to_vec(), params.clone()];
    assert_close("params", &twin_floats(&kernel, &given(STATES[0])), &[8.0, 1.7, 4.0, 8.0, -0.1, -1.9, 8.0], DEFAULT);
    assert_eq!(twin_floats(&kernel, &given(STATES[1])), floats(&params), "a step that is skipped");
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for (n_runs, len) in [(1, 1), (3, 63), (2, 64), (5, 65), (2, 40_003)] {
        let runs = runs(n_runs, len);
        let (grads, flat) = (words(&random.floats(runs.n)), words(&random.floats(runs.n)));
        let update = words(&random.floats(runs.n_elements()));
        for state in STATES {
            for form in [Momentum::Heavy, Momentum::Nesterov] {
                let kernel = MuonMomentum { runs: runs.clone(), momentum: 0.95, form };
                gpu_equals_twin(&kernel, &[grads.clone(), state.to_vec(), flat.clone()]);
            }
            let kernel = MuonStep { runs: runs.clone(), n_lr: 3, factor: 1.5, weight_decay: 0.1 };
            gpu_equals_twin(&kernel, &[update.clone(), words(&[0.1, 0.2, 0.3]), state.to_vec(), flat.clone()]);
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let runs = runs(2, 50_003);
    let mut random = Random::new(2);
    let [grads, flat] = [0, 1].map(|_| words(&random.floats(runs.n)));
    let update = words(&random.floats(runs.n_elements()));
    let kernel = MuonMomentum { runs: runs.clone(), momentum: 0.95, form: Momentum::Nesterov };
    same_bits_on_any_pool(&kernel, &[grads, STATES[0].to_vec(), flat.clone()]);
    let kernel = MuonStep { runs, n_lr: 1, factor: 1.5, weight_decay: 0.1 };
    same_bits_on_any_pool(&kernel, &[update, words(&[0.1]), STATES[0].to_vec(), flat]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let runs = Runs { n: 10, starts: vec![0], len: 4 };
    for momentum in [-0.1, 1.0, f32::NAN] {
        let kernel = MuonMomentum { runs: runs.clone(), momentum, form: Momentum::Heavy };
        let error = kernel.check().expect_err("it would not forget").to_string();
        assert_eq!(error, format!("muon_momentum: momentum = {momentum} is not supported, expected a number from 0 to below 1"));
    }
    let folded = MuonMomentum { runs: runs.clone(), momentum: 0.9, form: Momentum::FoldedNesterov };
    let error = folded.check().expect_err("it reads no learning rate").to_string();
    assert!(error.contains("`Momentum::Heavy` or `Momentum::Nesterov`"), "{error}");
    let kernel = MuonStep { runs: Runs { n: 3, ..runs }, n_lr: 1, factor: 1.0, weight_decay: 0.0 };
    assert!(kernel.check().expect_err("too long").to_string().starts_with("muon_step: start of a run is 0"), "which kernel");
}
