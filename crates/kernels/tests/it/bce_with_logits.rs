use brisk_kernels::{BceWithLogits, Reduction};

use crate::close::{DEFAULT, GRADIENT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let given = [words(&[0.0, 2.0, -2.0]), words(&[1.0, 1.0, 0.0]), words(&[1.0, 0.5, 0.0])];
    // ln 2 = 0.6931472 and 0.5 ln(1 + exp(-2)) = 0.0634640.
    let kernel = BceWithLogits { n: 3, reduction: Reduction::Sum, pos_weight: 1.0 };
    assert_close("sum", &twin_floats(&kernel.loss(), &given), &[0.756_611_2, 1.0], DEFAULT);
    let kernel = BceWithLogits { reduction: Reduction::Mean, ..kernel };
    assert_close("mean", &twin_floats(&kernel.loss(), &given), &[0.504_407_5, 1.5], DEFAULT);
    let kernel = BceWithLogits { pos_weight: 3.0, reduction: Reduction::Sum, ..kernel };
    assert_close("positive rows count threefold", &twin_floats(&kernel.loss(), &given), &[2.269_833_6, 1.0], DEFAULT);
}

#[test]
fn far_logits_stay_finite() {
    let given = [words(&[1e4, -1e4, 200.0, -200.0]), words(&[1.0, 0.0, 0.0, 1.0]), words(&[1.0; 4])];
    let kernel = BceWithLogits { n: 4, reduction: Reduction::Sum, pos_weight: 1.0 };
    assert_close("two right, two wrong by 200", &twin_floats(&kernel.loss(), &given), &[400.0, 1.0], DEFAULT);
    gpu_equals_twin(&kernel.loss(), &given);
}

fn given(random: &mut Random, n: usize) -> [Words; 3] {
    let target: Vec<f32> = (0..n).map(|_| random.below(2) as f32).collect();
    let weight: Vec<f32> = (0..n).map(|_| random.below(4) as f32 * 0.5 + 0.25).collect();
    [words(&random.wide_floats(n)), words(&target), words(&weight)]
}

fn grad_given(forward: &BceWithLogits, [logits, target, weight]: &[Words; 3]) -> [Words; 5] {
    let loss = run_twin(&forward.loss(), &[logits.clone(), target.clone(), weight.clone()]).remove(0);
    [words(&[0.7]), logits.clone(), target.clone(), weight.clone(), loss]
}

#[test]
fn gradient_equals_a_finite_difference() {
    let mut random = Random::new(1);
    for reduction in [Reduction::Mean, Reduction::Sum] {
        let forward = BceWithLogits { n: 30, reduction, pos_weight: 2.5 };
        let given = given(&mut random, 30);
        let direction = random.floats(30);
        let loss = |x: &[f32]| 0.7 * f64::from(twin_floats(&forward.loss(), &[words(x), given[1].clone(), given[2].clone()])[0]);
        let expected = slope_along(floats(&given[0]), &direction, 0.02, loss);
        let grad_x = twin_floats(&forward.grad(), &grad_given(&forward, &given));
        assert!(GRADIENT.holds(dot(&grad_x, &direction), expected), "{reduction:?}: {} != {expected}", dot(&grad_x, &direction));
    }
}

#[test]
fn rows_of_weight_zero_count_for_nothing() {
    let forward = BceWithLogits { n: 4, reduction: Reduction::Mean, pos_weight: 1.0 };
    let padded = [words(&[0.3, -1.2, 9.0, 9.0]), words(&[1.0, 0.0, 0.0, 0.0]), words(&[1.0, 1.0, 0.0, 0.0])];
    let bare = [words(&[0.3, -1.2]), words(&[1.0, 0.0]), words(&[1.0, 1.0])];
    assert_eq!(twin_floats(&forward.loss(), &padded), twin_floats(&BceWithLogits { n: 2, ..forward }.loss(), &bare), "loss");
    let grad_x = twin_floats(&forward.grad(), &grad_given(&forward, &padded));
    assert_eq!(grad_x[2..], [0.0, 0.0], "gradient of padding");
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(2);
    // The sums are computed in a different order.
    let sums = Tolerance { absolute: 1e-5, relative: 2e-5 };
    for n in [1, 63, 64, 65, 1001] {
        for reduction in [Reduction::Mean, Reduction::Sum] {
            let forward = BceWithLogits { n, reduction, pos_weight: 1.5 };
            let given = given(&mut random, n);
            gpu_equals_twin_within(&forward.loss(), &given, sums);
            gpu_equals_twin(&forward.grad(), &grad_given(&forward, &given));
        }
    }
}

#[test]
fn nan_reaches_the_loss_and_its_own_gradient() {
    let forward = BceWithLogits { n: 3, reduction: Reduction::Mean, pos_weight: 1.0 };
    let given = [words(&[0.5, f32::NAN, -0.5]), words(&[1.0, 0.0, 0.0]), words(&[1.0; 3])];
    assert!(twin_floats(&forward.loss(), &given)[0].is_nan(), "the loss");
    gpu_equals_twin(&forward.loss(), &given);
    // As if the loss above were one of several.
    let given = [words(&[1.0]), given[0].clone(), given[1].clone(), given[2].clone(), words(&[1.0, 3.0])];
    let grad_logits = twin_floats(&forward.grad(), &given);
    assert!(grad_logits[1].is_nan() && grad_logits[0].is_finite() && grad_logits[2].is_finite(), "{grad_logits:?}");
    gpu_equals_twin(&forward.grad(), &given);
}

#[test]
fn bits_do_not_depend_on_threads() {
    let forward = BceWithLogits { n: 40_001, reduction: Reduction::Mean, pos_weight: 1.5 };
    let given = given(&mut Random::new(3), 40_001);
    same_bits_on_any_pool(&forward.loss(), &given);
    same_bits_on_any_pool(&forward.grad(), &grad_given(&forward, &given));
}
