use brisk_kernels::{MseLoss, Reduction};

use crate::close::{DEFAULT, GRADIENT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let given = [words(&[1.0, 2.0, 3.0, 4.0]), words(&[0.0, 2.0, 1.0, 1.0]), words(&[1.0, 0.5])];
    let kernel = MseLoss { n_rows: 2, n_cols: 2, reduction: Reduction::Sum };
    // 1 · (1 + 0) + 0.5 · (4 + 9), and that over 2 · 1.5.
    assert_close("sum", &twin_floats(&kernel.loss(), &given), &[7.5, 1.0], DEFAULT);
    let kernel = MseLoss { reduction: Reduction::Mean, ..kernel };
    assert_close("mean", &twin_floats(&kernel.loss(), &given), &[2.5, 3.0], DEFAULT);
}

fn given(random: &mut Random, n_rows: usize, n_cols: usize) -> [Words; 3] {
    let weight: Vec<f32> = (0..n_rows).map(|_| random.below(4) as f32 * 0.5 + 0.25).collect();
    [words(&random.floats(n_rows * n_cols)), words(&random.floats(n_rows * n_cols)), words(&weight)]
}

fn grad_given(forward: &MseLoss, given: &[Words; 3]) -> [Words; 5] {
    let loss = run_twin(&forward.loss(), given).remove(0);
    let [x, target, weight] = given.clone();
    [words(&[0.7]), x, target, weight, loss]
}

#[test]
fn gradient_equals_a_finite_difference() {
    let mut random = Random::new(1);
    for reduction in [Reduction::Mean, Reduction::Sum] {
        let forward = MseLoss { n_rows: 11, n_cols: 3, reduction };
        let given = given(&mut random, 11, 3);
        let direction = random.floats(33);
        let loss = |x: &[f32]| 0.7 * f64::from(twin_floats(&forward.loss(), &[words(x), given[1].clone(), given[2].clone()])[0]);
        let expected = slope_along(floats(&given[0]), &direction, 0.02, loss);
        let grad_x = twin_floats(&forward.grad(), &grad_given(&forward, &given));
        assert!(GRADIENT.holds(dot(&grad_x, &direction), expected), "{reduction:?}: {} != {expected}", dot(&grad_x, &direction));
    }
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(2);
    // The sums are computed in a different order.
    let sums = Tolerance { absolute: 1e-5, relative: 2e-5 };
    for (n_rows, n_cols) in [(1, 1), (63, 1), (64, 3), (65, 2), (333, 7)] {
        for reduction in [Reduction::Mean, Reduction::Sum] {
            let forward = MseLoss { n_rows, n_cols, reduction };
            let given = given(&mut random, n_rows, n_cols);
            gpu_equals_twin_within(&forward.loss(), &given, sums);
            gpu_equals_twin(&forward.grad(), &grad_given(&forward, &given));
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let forward = MseLoss { n_rows: 9001, n_cols: 5, reduction: Reduction::Mean };
    let given = given(&mut Random::new(3), 9001, 5);
    same_bits_on_any_pool(&forward.loss(), &given);
    same_bits_on_any_pool(&forward.grad(), &grad_given(&forward, &given));
}
