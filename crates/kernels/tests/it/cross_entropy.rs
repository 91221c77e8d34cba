use brisk_kernels::{ClassWeights, CrossEntropy, CrossEntropyGrad, Kernel, Reduction};

use crate::close::{DEFAULT, GRADIENT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

/// Two rows of logits whose probabilities are 1/4, 3/4 and 1/2, 1/2.
const LOGITS: [f32; 4] = [0.0, 1.098_612_3, 2.0, 2.0];
const LN_2: f32 = std::f32::consts::LN_2;
const LN_4: f32 = 2.0 * LN_2;
const LN_4_3: f32 = 0.287_682_07;

#[track_caller]
fn check(kernel: CrossEntropy, class_weight: Option<[f32; 2]>, expected: [f32; 2]) {
    let mut given = vec![words(&LOGITS), vec![0, 1], words(&[1.0, 0.5])];
    given.extend(class_weight.map(|weights| words(&weights)));
    assert_close("loss, divisor", &twin_floats(&kernel, &given), &expected, DEFAULT);
    both_forms_equal_twin_within(&kernel, &given, DEFAULT);
}

#[test]
fn twin_equals_hand_worked_numbers() {
    let mean = CrossEntropy::new(2, 2);
    let sum = CrossEntropy { reduction: Reduction::Sum, ..mean };
    check(sum, None, [LN_4 + 0.5 * LN_2, 1.0]);
    check(mean, None, [(LN_4 + 0.5 * LN_2) / 1.5, 1.5]);
    // 0.8 of the target's loss, and a tenth of each class's.
    let smoothed = CrossEntropy { label_smoothing: 0.2, ..sum };
    check(smoothed, None, [0.9 * LN_4 + 0.1 * LN_4_3 + 0.5 * LN_2, 1.0]);
    let ignoring = CrossEntropy { ignored: Some(0), ..mean };
    check(ignoring, None, [LN_2, 0.5]);
    let weighted = CrossEntropy { class_weights: ClassWeights::Given, ..mean };
    check(weighted, Some([3.0, 2.0]), [(3.0 * LN_4 + LN_2) / 4.0, 4.0]);
    let all = CrossEntropy { label_smoothing: 0.2, ..weighted };
    check(
        all,
        Some([3.0, 2.0]),
        [(0.9 * 3.0 * LN_4 + 0.1 * 2.0 * LN_4_3 + 0.5 * 2.0 * 0.9 * LN_2 + 0.5 * 0.1 * 3.0 * LN_2) / 4.0, 4.0],
    );
}

#[test]
fn far_logits_stay_finite() {
    let given = [words(&[1e4, -1e4, 30.0, -1e4, 1e4, 30.0]), vec![0, 0], words(&[1.0; 2])];
    let kernel = CrossEntropy { reduction: Reduction::Sum, ..CrossEntropy::new(2, 3) };
    assert_close("one right, one wrong by 20000", &twin_floats(&kernel, &given), &[2e4, 1.0], DEFAULT);
    both_forms_equal_twin_within(&kernel, &given, DEFAULT);
}

#[test]
fn a_target_that_is_no_class_makes_the_loss_nan() {
    let given = [words(&LOGITS), vec![0, 2], words(&[1.0, 1.0])];
    let kernel = CrossEntropy::new(2, 2);
    assert!(twin_floats(&kernel, &given)[0].is_nan(), "class 2 of 2");
    both_forms_equal_twin_within(&kernel, &given, DEFAULT);
    let grad = CrossEntropyGrad { forward: kernel };
    let grad_x = twin_floats(&grad, &grad_given(&kernel, &given));
    assert!(grad_x[2..].iter().all(|grad_x| grad_x.is_nan()), "and its gradient: {grad_x:?}");
}

#[test]
fn a_mean_over_nothing_is_nan_as_pytorchs() {
    let given = [words(&LOGITS), vec![1, 1], words(&[1.0, 1.0])];
    let kernel = CrossEntropy { ignored: Some(1), ..CrossEntropy::new(2, 2) };
    assert!(twin_floats(&kernel, &given)[0].is_nan(), "0 / 0");
}

#[test]
fn a_smoothing_beyond_one_is_refused() {
    let kernel = CrossEntropy { label_smoothing: 1.5, ..CrossEntropy::new(2, 2) };
    let message = |name: &str| format!("{name}: label_smoothing = 1.5 is not supported, expected a number from 0 to 1");
    assert_eq!(kernel.check().expect_err("more than all").to_string(), message("cross_entropy"));
    assert_eq!(CrossEntropyGrad { forward: kernel }.check().expect_err("too").to_string(), message("cross_entropy_grad"));
}

/// All variants for one shape.
fn forms(n_rows: usize, n_classes: usize) -> Vec<CrossEntropy> {
    let mut forms = Vec::new();
    for reduction in [Reduction::Mean, Reduction::Sum] {
        for class_weights in [ClassWeights::Equal, ClassWeights::Given] {
            for (label_smoothing, ignored) in [(0.0, None), (0.0, Some(1)), (0.2, None), (0.1, Some(0))] {
                forms.push(CrossEntropy { n_rows, n_classes, reduction, label_smoothing, class_weights, ignored });
            }
        }
    }
    forms
}

fn given(random: &mut Random, kernel: &CrossEntropy) -> Vec<Words> {
    let CrossEntropy { n_rows, n_classes, .. } = *kernel;
    let target = (0..n_rows).map(|_| random.below(n_classes as u32)).collect();
    let weight: Vec<f32> = (0..n_rows).map(|_| random.below(4) as f32 * 0.5 + 0.25).collect();
    let mut given = vec![words(&random.wide_floats(n_rows * n_classes)), target, words(&weight)];
    if kernel.class_weights == ClassWeights::Given {
        given.push(words(&random.floats(n_classes).iter().map(|w| w.abs() + 0.1).collect::<Vec<_>>()));
    }
    given
}

fn grad_given(forward: &CrossEntropy, given: &[Words]) -> Vec<Words> {
    let mut all = vec![words(&[0.7])];
    all.extend_from_slice(given);
    all.extend(run_twin(forward, given));
    all
}

#[test]
fn gradient_equals_a_finite_difference() {
    let mut random = Random::new(1);
    for forward in forms(9, 5).into_iter().chain(forms(4, 21)) {
        let given = given(&mut random, &forward);
        let x: Vec<f32> = floats(&given[0]).iter().map(|x| x / 4.0).collect();
        let given = [&[words(&x)], &given[1..]].concat();
        let direction = random.floats(x.len());
        let loss = |x: &[f32]| 0.7 * f64::from(twin_floats(&forward, &[&[words(x)], &given[1..]].concat())[0]);
        let expected = slope_along(&x, &direction, 0.02, loss);
        let grad_x = twin_floats(&CrossEntropyGrad { forward }, &grad_given(&forward, &given));
        assert!(GRADIENT.holds(dot(&grad_x, &direction), expected), "{forward:?}: {} != {expected}", dot(&grad_x, &direction));
    }
}

#[test]
fn rows_of_weight_zero_count_for_nothing() {
    let forward = CrossEntropy { label_smoothing: 0.1, ..CrossEntropy::new(3, 2) };
    let padded = [words(&[0.3, -1.2, 0.5, 0.6, 9.0, 8.0]), vec![1, 0, 1], words(&[1.0, 1.0, 0.0])];
    let bare = [words(&[0.3, -1.2, 0.5, 0.6]), vec![1, 0], words(&[1.0, 1.0])];
    assert_eq!(twin_floats(&forward, &padded), twin_floats(&CrossEntropy { n_rows: 2, ..forward }, &bare), "loss");
    let grad_x = twin_floats(&CrossEntropyGrad { forward }, &grad_given(&forward, &padded));
    assert_eq!(grad_x[4..], [0.0, 0.0], "gradient of padding");
}

#[test]
fn a_rows_gradient_sums_to_zero() {
    let forward = CrossEntropy { label_smoothing: 0.1, ..CrossEntropy::new(7, 19) };
    let grad_x = twin_floats(&CrossEntropyGrad { forward }, &grad_given(&forward, &given(&mut Random::new(2), &forward)));
    for row in grad_x.chunks_exact(19) {
        let sum: f32 = row.iter().sum();
        assert!(sum.abs() < 1e-6, "moving all logits of a row changes nothing, but its gradient sums to {sum}");
    }
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(3);
    // The GPU adds the rows in f32, one chain per invocation, while the twin adds in f64.
    let sums = Tolerance { absolute: 1e-5, relative: 2e-5 };
    for (n_rows, n_classes) in [(1, 1), (63, 10), (65, 2), (300, 3), (3, 33), (2, 64), (2, 1100)] {
        for forward in forms(n_rows, n_classes) {
            // If all rows have the ignored class, the mean is 0 / 0.
            if n_classes == 1 && forward.ignored == Some(0) {
                continue;
            }
            let given = given(&mut random, &forward);
            both_forms_equal_twin_within(&forward, &given, sums);
            gpu_equals_twin_within(&CrossEntropyGrad { forward }, &grad_given(&forward, &given), sums);
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(4);
    for (n_rows, n_classes) in [(9001, 10), (70, 1001)] {
        let forward = CrossEntropy { label_smoothing: 0.1, ..CrossEntropy::new(n_rows, n_classes) };
        let given = given(&mut random, &forward);
        same_bits_on_any_pool(&forward, &given);
        same_bits_on_any_pool(&CrossEntropyGrad { forward }, &grad_given(&forward, &given));
    }
}
