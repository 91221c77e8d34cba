use brisk_kernels::{Affine, LayerNorm, LayerNormGrad, MapReduce, Reducer};

use crate::close::{DEFAULT, GRADIENT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

const AFFINES: [Affine; 3] = [Affine::None, Affine::Weight, Affine::WeightAndBias];

fn layer_norm(n_rows: usize, n_cols: usize, affine: Affine) -> LayerNorm {
    LayerNorm { n_rows, n_cols, eps: 1e-5, affine }
}

#[test]
fn twin_equals_hand_worked_numbers() {
    // Mean 2 and variance 2/3, so with ε = 1/3 the deviations of the row are -1, 0, 1; the second row is constant.
    let x = words(&[1.0, 2.0, 3.0, 5.0, 5.0, 5.0]);
    let (weight, bias) = (words(&[2.0, 3.0, 4.0]), words(&[10.0, 20.0, 30.0]));
    let check = |affine, given: &[Words], expected: &[f32]| {
        let kernel = LayerNorm { eps: 1.0 / 3.0, ..layer_norm(2, 3, affine) };
        let [y, stats]: [Words; 2] = run_twin(&kernel, given).try_into().expect("two results");
        assert_close("y", floats(&y), expected, DEFAULT);
        assert_close("stats", floats(&stats), &[2.0, 1.0, 5.0, 1.732_050_8], DEFAULT);
    };
    check(Affine::None, std::slice::from_ref(&x), &[-1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    check(Affine::Weight, &[x.clone(), weight.clone()], &[-2.0, 0.0, 4.0, 0.0, 0.0, 0.0]);
    check(Affine::WeightAndBias, &[x, weight, bias], &[8.0, 20.0, 34.0, 10.0, 20.0, 30.0]);
}

#[test]
fn rows_have_mean_zero_and_variance_one() {
    let mut random = Random::new(1);
    for n_cols in [2, 16, 37, 1000] {
        // Far from zero, where a sum of squares would lose all digits if the mean were not subtracted first.
        let x: Vec<f32> = random.floats(3 * n_cols).iter().map(|x| x + 1000.0).collect();
        let y = twin_floats(&layer_norm(3, n_cols, Affine::None), &[words(&x)]);
        for row in y.chunks_exact(n_cols) {
            let mean = row.iter().map(|&y| f64::from(y)).sum::<f64>() / n_cols as f64;
            let variance = row.iter().map(|&y| f64::from(y) * f64::from(y)).sum::<f64>() / n_cols as f64;
            assert!(mean.abs() < 1e-3 && (variance - 1.0).abs() < 1e-3, "{n_cols} columns: {mean}, {variance}");
        }
    }
}

/// `x`, and the weight and bias if the form has them.
fn given(random: &mut Random, kernel: &LayerNorm) -> Vec<Words> {
    let mut given = vec![words(&random.wide_floats(kernel.n_rows * kernel.n_cols))];
    for _ in 0..AFFINES.iter().position(|&affine| affine == kernel.affine).unwrap_or(0) {
        given.push(words(&random.floats(kernel.n_cols)));
    }
    given
}

fn grad_given(forward: &LayerNorm, grad_y: &[f32], given: &[Words]) -> Vec<Words> {
    let stats = run_twin(forward, given).remove(1);
    let mut all = vec![words(grad_y), given[0].clone()];
    if forward.affine != Affine::None {
        all.push(given[1].clone());
    }
    all.push(stats);
    all
}

fn weight_grad_given(forward: &LayerNorm, grad_y: &[f32], given: &[Words]) -> Vec<Words> {
    let stats = run_twin(forward, given).remove(1);
    vec![words(grad_y), given[0].clone(), stats.clone(), stats]
}

#[test]
fn gradients_equal_finite_differences() {
    let mut random = Random::new(2);
    for affine in AFFINES {
        for (n_rows, n_cols) in [(5, 7), (70, 3), (3, 40)] {
            let forward = layer_norm(n_rows, n_cols, affine);
            let mut given = given(&mut random, &forward);
            given[0] = words(&random.floats(n_rows * n_cols));
            let grad_y = random.floats(n_rows * n_cols);
            let check = |argument: usize, gradient: &[f32], random: &mut Random| {
                let direction = random.floats(gradient.len());
                let loss = |values: &[f32]| {
                    let mut moved = given.clone();
                    moved[argument] = words(values);
                    dot(&twin_floats(&forward, &moved), &grad_y)
                };
                let expected = slope_along(floats(&given[argument]), &direction, 2e-3, loss);
                let found = dot(gradient, &direction);
                assert!(GRADIENT.holds(found, expected), "{forward:?} in argument {argument}: {found} != {expected}");
            };
            check(0, &twin_floats(&LayerNormGrad { forward }, &grad_given(&forward, &grad_y, &given)), &mut random);
            if affine != Affine::None {
                let found = twin_floats(&forward.weight_grad(), &weight_grad_given(&forward, &grad_y, &given));
                check(1, &found, &mut random);
            }
            if affine == Affine::WeightAndBias {
                check(2, &twin_floats(&MapReduce::of(Reducer::Sum, &[n_rows, n_cols], &[0]), &[words(&grad_y)]), &mut random);
            }
        }
    }
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(3);
    for affine in AFFINES {
        for (n_rows, n_cols) in [(1, 1), (63, 10), (65, 31), (3, 33), (2, 64), (130, 65), (2, 1300)] {
            let forward = layer_norm(n_rows, n_cols, affine);
            let given = given(&mut random, &forward);
            let grad_y = random.floats(n_rows * n_cols);
            // The result is divided by a sum of squares, and multiplied with values that may be large.
            let sums = Tolerance { relative: 1e-4, ..Tolerance::of_sum(n_cols.max(100)) };
            both_forms_equal_twin_within(&forward, &given, sums);
            both_forms_equal_twin_within(&LayerNormGrad { forward }, &grad_given(&forward, &grad_y, &given), sums);
            let weight_given = weight_grad_given(&forward, &grad_y, &given);
            gpu_equals_twin_within(&forward.weight_grad(), &weight_given, Tolerance::of_sum(n_rows.max(100)));
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(4);
    for (n_rows, n_cols) in [(9001, 10), (70, 1001)] {
        let forward = layer_norm(n_rows, n_cols, Affine::WeightAndBias);
        let given = given(&mut random, &forward);
        let grad_y = random.floats(n_rows * n_cols);
        same_bits_on_any_pool(&forward, &given);
        same_bits_on_any_pool(&LayerNormGrad { forward }, &grad_given(&forward, &grad_y, &given));
        same_bits_on_any_pool(&forward.weight_grad(), &weight_grad_given(&forward, &grad_y, &given));
    }
}
