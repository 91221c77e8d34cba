use brisk_kernels::*;

use crate::close::{DEFAULT, GRADIENT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

const EPS: f32 = 1e-5;

fn shape(n_rows: usize, n_channels: usize, n_groups: usize) -> BatchNormShape {
    BatchNormShape { n_rows, n_channels, n_groups }
}

fn stats_of(shape: BatchNormShape, x: &[f32]) -> Vec<Words> {
    let kernel = BatchNormStats { shape, n_weights: 0, eps: EPS, momentum: 0.25 };
    run_twin(&kernel, &[words(x), words(&vec![0.0; shape.n_channels]), words(&vec![1.0; shape.n_channels])])
}

fn normalised(shape: BatchNormShape, x: &[f32], weight: &[f32], bias: &[f32], activation: Activation) -> Vec<f32> {
    let stats = stats_of(shape, x).remove(2);
    twin_floats(&shape.normalise(&activation), &[words(x), stats.clone(), stats, words(weight), words(bias)])
}

#[test]
fn twin_equals_hand_worked_numbers() {
    // Two groups of two rows of one channel: means 2 and 10, variances 1 and 16, unbiased 2 and 32.
    let (shape, x) = (shape(4, 1, 2), [1.0, 3.0, 6.0, 14.0]);
    let results = stats_of(shape, &x);
    assert_close("running mean", floats(&results[0]), &[0.25 * 6.0], DEFAULT);
    assert_close("running var", floats(&results[1]), &[0.75 + 0.25 * 17.0], DEFAULT);
    assert_close("stats", floats(&results[2]), &[2.0, 1.0, 10.0, 0.25], Tolerance { absolute: 0.0, relative: 1e-5 });
    let y = normalised(shape, &x, &[2.0], &[0.5], Activation::identity());
    assert_close("y", &y, &[-1.5, 2.5, -1.5, 2.5], Tolerance { absolute: 1e-4, relative: 0.0 });
    let y = normalised(shape, &x, &[2.0], &[0.5], Activation::relu());
    assert_close("relu", &y, &[0.0, 2.5, 0.0, 2.5], Tolerance { absolute: 1e-4, relative: 0.0 });
}

/// The variance of numbers far from 0 does not lose digits, even over many parts.
#[test]
fn a_mean_far_from_zero_costs_no_digits() {
    let n = 100_000;
    let x: Vec<f32> = (0..n).map(|i| 4096.0 + (i % 5) as f32 * 0.25).collect();
    let results = stats_of(shape(n, 1, 1), &x);
    assert_close("running var", floats(&results[1]), &[0.75 + 0.25 * 0.125 * n as f32 / (n - 1) as f32], DEFAULT);
}

#[test]
fn statistics_equal_the_definition() {
    let mut random = Random::new(1);
    for shape in [shape(2, 1, 1), shape(63, 3, 1), shape(65, 2, 1), shape(390, 17, 3), shape(40_000, 2, 1), shape(6000, 3, 750)] {
        let x = random.floats(shape.len());
        let results = stats_of(shape, &x);
        let (c, rows) = (shape.n_channels, shape.n_rows / shape.n_groups);
        for channel in 0..c {
            let mut new = [0.0, 0.0];
            for group in 0..shape.n_groups {
                let values = (0..rows).map(|row| f64::from(x[(group * rows + row) * c + channel]));
                let mean = values.clone().sum::<f64>() / rows as f64;
                let squares: f64 = values.map(|x| (x - mean) * (x - mean)).sum();
                let inv_std = 1.0 / (squares / rows as f64 + f64::from(EPS)).sqrt();
                let found = floats(&results[2])[2 * group * c + channel];
                assert!(DEFAULT.holds(f64::from(found), mean), "{shape:?}: mean {found}, expected {mean}");
                let found = floats(&results[2])[(2 * group + 1) * c + channel];
                assert!(
                    Tolerance { absolute: 0.0, relative: 2e-5 }.holds(f64::from(found), inv_std),
                    "{shape:?}: {found}, expected {inv_std}"
                );
                new[0] += mean / shape.n_groups as f64;
                new[1] += squares / (rows - 1) as f64 / shape.n_groups as f64;
            }
            let (mean, var) = (floats(&results[0])[channel], floats(&results[1])[channel]);
            assert!(DEFAULT.holds(f64::from(mean), 0.25 * new[0]), "{shape:?}: running mean {mean}");
            assert!(DEFAULT.holds(f64::from(var), 0.75 + 0.25 * new[1]), "{shape:?}: running var {var}");
        }
    }
}

/// The loss `Σ grad_y y` of a batch normalisation, and its three gradients.
#[test]
fn gradients_equal_finite_differences() {
    let mut random = Random::new(2);
    for shape in [shape(24, 5, 1), shape(24, 5, 3), shape(200, 2, 2)] {
        let (x, grad_y) = (random.floats(shape.len()), random.floats(shape.len()));
        let (weight, bias) = (random.floats(shape.n_channels), random.floats(shape.n_channels));
        let y = |x: &[f32], weight: &[f32], bias: &[f32]| normalised(shape, x, weight, bias, Activation::identity());
        let stats = stats_of(shape, &x).remove(2);
        let sums = run_twin(&shape.grad_sums(), &[words(&grad_y), words(&x), stats.clone(), stats.clone()]).remove(0);
        let given = [words(&grad_y), words(&x), stats.clone(), stats, words(&weight), sums.clone(), sums.clone()];
        let grad_x = twin_floats(&shape.grad_x(), &given);
        let [grad_bias, grad_weight] =
            [shape.grad_bias(), shape.grad_weight()].map(|kernel| twin_floats(&kernel, std::slice::from_ref(&sums)));
        let step = 0.005;
        let (along_x, along) = (random.floats(shape.len()), random.floats(shape.n_channels));
        let pairs = [
            ("grad_x", dot(&grad_x, &along_x), slope_along(&x, &along_x, step, |x| dot(&grad_y, &y(x, &weight, &bias)))),
            ("grad_weight", dot(&grad_weight, &along), slope_along(&weight, &along, step, |w| dot(&grad_y, &y(&x, w, &bias)))),
            ("grad_bias", dot(&grad_bias, &along), slope_along(&bias, &along, step, |bias| dot(&grad_y, &y(&x, &weight, bias)))),
        ];
        for (what, found, expected) in pairs {
            assert!(GRADIENT.holds(found, expected), "{what} of {shape:?}: {found} != {expected}");
        }
    }
}

/// Weights of 0 and 1 give the statistics and gradients of the rows of weight 1, whatever the others contain; a common factor of
/// the weights has no effect.
#[test]
fn weights_select_rows() {
    let mut random = Random::new(5);
    for (n_real, n_weights, weight_rows, factor) in
        [(13, 16, 1, 1.0), (5, 8, 30, 1.0), (3, 8, 25, 0.25), (150, 200, 2, 3.0), (2, 70, 40, 1.0)]
    {
        let (whole, real) = (shape(n_weights * weight_rows, 3, 1), shape(n_real * weight_rows, 3, 1));
        let mut x = random.floats(whole.len());
        x[real.len()..].fill(1e9);
        let (grad_y, weight) = (random.floats(real.len()), words(&random.floats(3)));
        let weights: Vec<f32> = (0..n_weights).map(|i| if i < n_real { factor } else { 0.0 }).collect();
        let running = [words(&[0.5; 3]), words(&[2.0; 3])];
        let stats = |shape, n_weights| BatchNormStats { shape, n_weights, eps: EPS, momentum: 0.25 };
        let given = [words(&x), words(&weights), running[0].clone(), running[1].clone()];
        let weighted = run_twin(&stats(whole, n_weights), &given);
        gpu_equals_twin_within(&stats(whole, n_weights), &given, Tolerance { absolute: 5e-5, relative: 5e-5 });
        let plain = run_twin(&stats(real, 0), &[words(&x[..real.len()]), running[0].clone(), running[1].clone()]);
        for (result, name) in ["running_mean", "running_var", "stats"].into_iter().enumerate() {
            assert_close(name, floats(&weighted[result]), floats(&plain[result]), DEFAULT);
        }
        let padded = [&grad_y[..], &vec![0.0; whole.len() - real.len()]].concat();
        let shares: Vec<f32> = weights.iter().map(|weight| weight / (factor * n_real as f32)).collect();
        let sums = |shape: BatchNormShape, grad_y: &[f32], stats: &Words| {
            run_twin(&shape.grad_sums(), &[words(grad_y), words(&x[..shape.len()]), stats.clone(), stats.clone()]).remove(0)
        };
        let (of_whole, of_real) = (sums(whole, &padded, &weighted[2]), sums(real, &grad_y, &plain[2]));
        let factors = whole.weighted_grad_factors(n_weights);
        let factors = run_twin(&factors, &[weighted[2].clone(), weight.clone(), of_whole.clone(), of_whole]);
        let given = [&[words(&padded), words(&x), words(&shares), weighted[2].clone()], &factors[..]].concat();
        let grad_x = twin_floats(&whole.weighted_grad_x(n_weights), &given);
        gpu_equals_twin_within(&whole.weighted_grad_x(n_weights), &given, Tolerance { absolute: 5e-5, relative: 5e-5 });
        let stats = plain[2].clone();
        let given = [words(&grad_y), words(&x[..real.len()]), stats.clone(), stats, weight, of_real.clone(), of_real];
        assert_close("grad_x", &grad_x[..real.len()], &twin_floats(&real.grad_x(), &given), GRADIENT);
        assert_eq!(grad_x[real.len()..], vec![0.0; whole.len() - real.len()], "absent rows");
    }
}

/// A group without a row has statistics of 0; one with a single row normalises by a variance of 0. Neither moves the running
/// statistics.
#[test]
fn groups_without_a_variance_move_nothing() {
    let shape = shape(6, 1, 3);
    let kernel = BatchNormStats { shape, n_weights: 6, eps: 0.25, momentum: 0.5 };
    let given = [words(&[1.0, 3.0, 5.0, 9.0, 7.0, 7.0]), words(&[1.0, 1.0, 0.0, 2.0, 0.0, 0.0]), words(&[0.0]), words(&[1.0])];
    let results = run_twin(&kernel, &given);
    assert_close("running mean", floats(&results[0]), &[1.0], DEFAULT);
    assert_close("running var", floats(&results[1]), &[1.5], DEFAULT);
    assert_close("stats", floats(&results[2]), &[2.0, 1.25_f32.sqrt().recip(), 9.0, 2.0, 0.0, 0.0], DEFAULT);
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn running_statistics_normalise_without_changing() {
    let (mean, var) = (words(&[1.0, -2.0]), words(&[4.0, 0.25]));
    let frozen = BatchNormFrozenStats { n_channels: 2, eps: 0.0 };
    let stats = run_twin(&frozen, &[mean.clone(), var.clone()]).remove(0);
    assert_eq!(floats(&stats), [1.0, -2.0, 0.5, 2.0]);
    let shape = shape(2, 2, 1);
    let (x, weight) = (words(&[3.0, -1.0, 1.0, -2.0]), words(&[2.0, 1.0]));
    let y = twin_floats(
        &shape.normalise(&Activation::identity()),
        &[x, stats.clone(), stats.clone(), weight.clone(), words(&[0.0, 10.0])],
    );
    assert_eq!(y, [2.0, 12.0, 0.0, 10.0]);
    let grad_x = twin_floats(&shape.frozen_grad_x(), &[words(&[1.0, 1.0, 2.0, 3.0]), stats, weight]);
    assert_eq!(grad_x, [1.0, 2.0, 2.0, 6.0]);
    gpu_equals_twin(&frozen, &[mean, var]);
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(3);
    // A deviation may be small, and the quotient then has its relative error.
    let divided = Tolerance { absolute: 5e-5, relative: 5e-5 };
    for shape in [
        shape(2, 1, 1),
        shape(63, 5, 1),
        shape(64, 64, 1),
        shape(65, 3, 1),
        shape(390, 17, 3),
        shape(4000, 3, 2),
        shape(64 * 33 + 5, 3, 1),
        shape(64 * 80, 2, 2),
        shape(40_000, 1, 1),
    ] {
        let (x, grad_y) = (random.floats(shape.len()), random.floats(shape.len()));
        let (weight, bias) = (words(&random.floats(shape.n_channels)), words(&random.floats(shape.n_channels)));
        let running = [words(&random.floats(shape.n_channels)), words(&vec![0.7; shape.n_channels])];
        let (x, grad_y) = (words(&x), words(&grad_y));
        let kernel = BatchNormStats { shape, n_weights: 0, eps: EPS, momentum: 0.1 };
        gpu_equals_twin_within(&kernel, &[x.clone(), running[0].clone(), running[1].clone()], divided);
        let stats = stats_of(shape, floats(&x)).remove(2);
        for activation in [Activation::identity(), Activation::celu(0.3), Activation::gelu()] {
            let given = [x.clone(), stats.clone(), stats.clone(), weight.clone(), bias.clone()];
            gpu_equals_twin_within(&shape.normalise(&activation), &given, divided);
            if !activation.is_identity() {
                let given = [std::slice::from_ref(&grad_y), &given[..]].concat();
                gpu_equals_twin_within(&shape.activation_grad(&activation), &given, divided);
            }
        }
        let given = [grad_y.clone(), x.clone(), stats.clone(), stats.clone()];
        gpu_equals_twin_within(&shape.grad_sums(), &given, Tolerance::of_sum(shape.n_rows));
        let sums = run_twin(&shape.grad_sums(), &given).remove(0);
        for kernel in [shape.grad_bias(), shape.grad_weight()] {
            gpu_equals_twin(&kernel, std::slice::from_ref(&sums));
        }
        let given = [grad_y.clone(), x, stats.clone(), stats.clone(), weight.clone(), sums.clone(), sums];
        gpu_equals_twin_within(&shape.grad_x(), &given, divided);
        if shape.n_groups == 1 {
            gpu_equals_twin(&shape.frozen_grad_x(), &[grad_y, stats, weight]);
        }
    }
}

#[test]
fn nan_passes_through_saturating_activations() {
    let shape = shape(2, 2, 1);
    let (x, stats) = (words(&[f32::NAN, 1.0, 2.0, 3.0]), words(&[0.0, 0.0, 1.0, 1.0]));
    for activation in [Activation::sigmoid(), Activation::tanh()] {
        gpu_equals_twin(
            &shape.normalise(&activation),
            &[x.clone(), stats.clone(), stats.clone(), words(&[1.0; 2]), words(&[0.0; 2])],
        );
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(4);
    let shape = shape(9000, 12, 3);
    let (x, grad_y) = (words(&random.floats(shape.len())), words(&random.floats(shape.len())));
    let (weight, running) = (words(&random.floats(12)), words(&[1.0; 12]));
    same_bits_on_any_pool(
        &BatchNormStats { shape, n_weights: 0, eps: EPS, momentum: 0.1 },
        &[x.clone(), running.clone(), running],
    );
    let stats = stats_of(shape, floats(&x)).remove(2);
    same_bits_on_any_pool(
        &shape.normalise(&Activation::relu()),
        &[x.clone(), stats.clone(), stats.clone(), weight.clone(), weight],
    );
    same_bits_on_any_pool(&shape.grad_sums(), &[grad_y, x, stats.clone(), stats]);
}

#[test]
fn groups_that_make_no_sense_are_refused() {
    #[track_caller]
    fn refuses(kernel: impl Kernel, expected: &str) {
        let error = kernel.check().expect_err("a shape that makes no sense");
        assert_eq!(error.to_string(), expected, "{kernel:?}");
    }
    let stats = |shape| BatchNormStats { shape, n_weights: 0, eps: EPS, momentum: 0.1 };
    refuses(stats(shape(7, 1, 2)), "batch_norm_stats: n_groups is 2, expected a divisor of the number of rows");
    refuses(stats(shape(7, 1, 0)), "batch_norm_stats: n_groups is 0, expected 1 to 2^32 - 1");
    let few = "expected at least 2, for a variance; use larger batches or fewer groups";
    refuses(stats(shape(1, 9, 1)), &format!("batch_norm_stats: rows of a group is 1, {few}"));
    refuses(stats(shape(4, 9, 4)), &format!("batch_norm_stats: rows of a group is 1, {few}"));
    let weighted = BatchNormStats { n_weights: 4, ..stats(shape(6, 1, 1)) };
    refuses(weighted, "batch_norm_stats: n_weights is 4, expected a divisor of the number of rows");
}
