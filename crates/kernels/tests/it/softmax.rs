use brisk_kernels::{Softmax, SoftmaxForm, SoftmaxGrad};

use crate::close::{DEFAULT, GRADIENT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

const FORMS: [SoftmaxForm; 2] = [SoftmaxForm::Probability, SoftmaxForm::Log];

fn softmax(n_rows: usize, n_cols: usize, form: SoftmaxForm) -> Softmax {
    Softmax { n_rows, n_cols, form }
}

#[test]
fn twin_equals_hand_worked_numbers() {
    let x = [0.0, 3.0_f32.ln(), 2.0, 2.0];
    let p = twin_floats(&softmax(2, 2, SoftmaxForm::Probability), &[words(&x)]);
    assert_close("probabilities", &p, &[0.25, 0.75, 0.5, 0.5], DEFAULT);
    let log = twin_floats(&softmax(2, 2, SoftmaxForm::Log), &[words(&x)]);
    assert_close("logarithms", &log, &[0.25_f32.ln(), 0.75_f32.ln(), 0.5_f32.ln(), 0.5_f32.ln()], DEFAULT);
}

#[test]
fn far_values_stay_finite() {
    let x = words(&[1e4, 1e4, -1e4, f32::NEG_INFINITY]);
    check_far(SoftmaxForm::Probability, &x, &[0.5, 0.5, 0.0, 0.0]);
    check_far(SoftmaxForm::Log, &x, &[0.5_f32.ln(), 0.5_f32.ln(), -20_000.693, f32::NEG_INFINITY]);
}

#[track_caller]
fn check_far(form: SoftmaxForm, x: &Words, expected: &[f32]) {
    let kernel = softmax(1, 4, form);
    assert_close(&format!("{form:?}"), &twin_floats(&kernel, std::slice::from_ref(x)), expected, DEFAULT);
    both_forms_equal_twin_within(&kernel, std::slice::from_ref(x), DEFAULT);
}

#[test]
fn a_row_with_nan_or_nothing_finite_is_nan_and_no_other() {
    for form in FORMS {
        for bad in [[1.0, f32::NAN, 0.0], [f32::NEG_INFINITY; 3], [0.0, f32::INFINITY, 0.0]] {
            let x = [[0.0, 1.0, 2.0], bad, [0.0, 1.0, 2.0]].concat();
            let y = twin_floats(&softmax(3, 3, form), &[words(&x)]);
            assert!(y[3..6].iter().all(|y| y.is_nan()), "{form:?} of {bad:?}: {y:?}");
            assert!(y[..3].iter().chain(&y[6..]).all(|y| y.is_finite()), "{form:?}: rows beside {bad:?}: {y:?}");
        }
    }
}

#[test]
fn rows_sum_to_one_and_do_not_change_with_a_shift() {
    let mut random = Random::new(1);
    for (n_rows, n_cols) in [(5, 1), (7, 10), (3, 16), (4, 37), (2, 5000)] {
        let x = random.wide_floats(n_rows * n_cols);
        let kernel = softmax(n_rows, n_cols, SoftmaxForm::Probability);
        let y = twin_floats(&kernel, &[words(&x)]);
        for row in y.chunks_exact(n_cols) {
            let sum: f64 = row.iter().map(|&y| f64::from(y)).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{n_cols} columns: a row sums to {sum}");
        }
        // By a power of two, so that no digit is lost.
        let shifted: Vec<f32> = x.iter().map(|x| (x * 64.0).round() / 64.0 + 16.0).collect();
        let back: Vec<f32> = shifted.iter().map(|x| x - 16.0).collect();
        assert_eq!(twin_floats(&kernel, &[words(&shifted)]), twin_floats(&kernel, &[words(&back)]), "{n_cols} columns");
    }
}

#[test]
fn the_logarithm_is_that_of_the_probability() {
    let x = words(&Random::new(2).floats(6 * 33));
    let p = twin_floats(&softmax(6, 33, SoftmaxForm::Probability), std::slice::from_ref(&x));
    let log = twin_floats(&softmax(6, 33, SoftmaxForm::Log), &[x]);
    let expected: Vec<f32> = p.iter().map(|p| p.ln()).collect();
    assert_close("log", &log, &expected, DEFAULT);
}

#[test]
fn gradient_equals_a_finite_difference() {
    let mut random = Random::new(3);
    for form in FORMS {
        for (n_rows, n_cols) in [(4, 7), (3, 40)] {
            let n = n_rows * n_cols;
            let forward = softmax(n_rows, n_cols, form);
            let (x, grad_y, direction) = (random.floats(n), random.floats(n), random.floats(n));
            let expected = slope_along(&x, &direction, 0.01, |x| dot(&twin_floats(&forward, &[words(x)]), &grad_y));
            let y = run_twin(&forward, &[words(&x)]).remove(0);
            let grad_x = twin_floats(&SoftmaxGrad { forward }, &[words(&grad_y), y]);
            assert!(
                GRADIENT.holds(dot(&grad_x, &direction), expected),
                "{forward:?}: {} != {expected}",
                dot(&grad_x, &direction)
            );
        }
    }
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(4);
    for form in FORMS {
        for (n_rows, n_cols) in [(1, 1), (63, 10), (64, 3), (65, 31), (3, 33), (2, 63), (2, 64), (2, 65), (3, 1300)] {
            let forward = softmax(n_rows, n_cols, form);
            let (x, grad_y) = (words(&random.wide_floats(n_rows * n_cols)), words(&random.floats(n_rows * n_cols)));
            // Exponentials differ by a few ulp, and each result contains a sum of them.
            let sums = Tolerance::of_sum(n_cols);
            both_forms_equal_twin_within(&forward, std::slice::from_ref(&x), sums);
            let y = run_twin(&forward, &[x]).remove(0);
            both_forms_equal_twin_within(&SoftmaxGrad { forward }, &[grad_y, y], sums);
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(5);
    for form in FORMS {
        for (n_rows, n_cols) in [(9001, 10), (70, 1001)] {
            let forward = softmax(n_rows, n_cols, form);
            let (x, grad_y) = (words(&random.floats(n_rows * n_cols)), words(&random.floats(n_rows * n_cols)));
            same_bits_on_any_pool(&forward, std::slice::from_ref(&x));
            let y = run_twin(&forward, &[x]).remove(0);
            same_bits_on_any_pool(&SoftmaxGrad { forward }, &[grad_y, y]);
        }
    }
}
