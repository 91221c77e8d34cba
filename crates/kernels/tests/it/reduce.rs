use brisk_kernels::{Kernel, Reduce, ReduceGrad, ReduceMask, ReduceOp};

use crate::close::{DEFAULT, GRADIENT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

const OPS: [ReduceOp; 6] = [ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max, ReduceOp::Min, ReduceOp::Norm, ReduceOp::NonFinite];
/// Rows, columns and all, around the run of an invocation and the widths of a pass.
const SHAPES: [[usize; 3]; 14] = [
    [1, 1, 1],
    [1, 63, 1],
    [1, 64, 1],
    [1, 65, 1],
    [3, 100, 1],
    [70, 5, 1],
    [2, 1025, 1],
    [1, 40_003, 1],
    [1, 9, 7],
    [1, 65, 64],
    [1, 1000, 33],
    [3, 130, 5],
    [2, 3, 1500],
    [1, 600, 100],
];

#[track_caller]
fn check(op: ReduceOp, [n_outer, n, n_inner]: [usize; 3], expected: &[f32]) {
    let x = words(&[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]);
    assert_close(&format!("{op:?}"), &twin_floats(&Reduce { n_outer, n, n_inner, op }, &[x]), expected, DEFAULT);
}

#[test]
fn twin_equals_hand_worked_numbers() {
    check(ReduceOp::Sum, [2, 3, 1], &[2.0, 3.0]);
    check(ReduceOp::Sum, [1, 2, 3], &[5.0, 3.0, -3.0]);
    check(ReduceOp::Mean, [1, 6, 1], &[5.0 / 6.0]);
    check(ReduceOp::Max, [2, 3, 1], &[3.0, 5.0]);
    check(ReduceOp::Min, [1, 2, 3], &[1.0, -2.0, -6.0]);
    check(ReduceOp::Norm, [3, 1, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    check(ReduceOp::Norm, [1, 6, 1], &[91.0_f32.sqrt()]);
    check(ReduceOp::NonFinite, [2, 3, 1], &[0.0, 0.0]);
}

/// By the definition, in f64.
fn by_definition(kernel: &Reduce, x: &[f32]) -> Vec<f32> {
    let Reduce { n_outer, n, n_inner, op } = *kernel;
    let mut y = Vec::new();
    for (outer, inner) in (0..n_outer).flat_map(|outer| (0..n_inner).map(move |inner| (outer, inner))) {
        let of = (0..n).map(|k| f64::from(x[(outer * n + k) * n_inner + inner]));
        y.push(match op {
            ReduceOp::Sum => of.sum::<f64>(),
            ReduceOp::Mean => of.sum::<f64>() / n as f64,
            ReduceOp::Max => of.fold(f64::NEG_INFINITY, f64::max),
            ReduceOp::Min => of.fold(f64::INFINITY, f64::min),
            ReduceOp::Norm => of.map(|x| x * x).sum::<f64>().sqrt(),
            ReduceOp::NonFinite => f64::from(u8::from(of.into_iter().any(|x: f64| !x.is_finite()))),
        } as f32);
    }
    y
}

#[test]
fn twin_equals_the_definition_and_gpu_the_twin() {
    let mut random = Random::new(1);
    for [n_outer, n, n_inner] in SHAPES {
        let x = random.floats(n_outer * n * n_inner);
        for op in OPS {
            let kernel = Reduce { n_outer, n, n_inner, op };
            let sums = Tolerance::of_sum(n);
            assert_close(&format!("{kernel:?}"), &twin_floats(&kernel, &[words(&x)]), &by_definition(&kernel, &x), sums);
            gpu_equals_twin_within(&kernel, &[words(&x)], sums);
        }
    }
}

#[test]
fn a_sum_of_many_does_not_drown_its_parts() {
    // One running f32 sum would stop growing at 2^24 times the smallest.
    let n = 3_000_000;
    let x = words(&vec![0.1; n]);
    let sum = twin_floats(&Reduce::all(n, ReduceOp::Sum), std::slice::from_ref(&x))[0];
    assert!((sum - 300_000.0).abs() < 0.5, "{sum}");
    gpu_equals_twin(&Reduce::all(n, ReduceOp::Sum), &[x]);
}

#[test]
fn what_is_not_finite_is_found_and_passed_on() {
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (n, at) in [(1, 0), (100, 99), (2000, 1234)] {
            let mut x = Random::new(2).floats(n);
            x[at] = bad;
            let given = [words(&x)];
            assert_eq!(twin_floats(&Reduce::all(n, ReduceOp::NonFinite), &given), [1.0], "{bad} at {at} of {n}");
            gpu_equals_twin(&Reduce::all(n, ReduceOp::NonFinite), &given);
            if bad.is_nan() {
                for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::Norm] {
                    assert!(twin_floats(&Reduce::all(n, op), &given)[0].is_nan(), "{op:?} with NaN at {at} of {n}");
                    gpu_equals_twin(&Reduce::all(n, op), &given);
                }
            }
        }
    }
    let largest = [words(&[f32::MAX, f32::MIN, f32::MIN_POSITIVE, -0.0])];
    assert_eq!(twin_floats(&Reduce::all(4, ReduceOp::NonFinite), &largest), [0.0], "the largest numbers are finite");
    gpu_equals_twin(&Reduce::all(4, ReduceOp::NonFinite), &largest);
}

fn grad_given(forward: &Reduce, x: &[f32], grad_y: &[f32]) -> Vec<Words> {
    let y = run_twin(forward, &[words(x)]).remove(0);
    match forward.op {
        ReduceOp::Norm => vec![words(grad_y), words(x), y],
        ReduceOp::Max | ReduceOp::Min => {
            let mask = run_twin(&ReduceMask { forward: *forward }, &[words(x), y]).remove(0);
            let n_equal = run_twin(&Reduce { op: ReduceOp::Sum, ..*forward }, std::slice::from_ref(&mask)).remove(0);
            vec![words(grad_y), mask, n_equal]
        }
        _ => vec![words(grad_y)],
    }
}

#[test]
fn gradient_equals_a_finite_difference() {
    let mut random = Random::new(3);
    for op in &OPS[..5] {
        for [n_outer, n, n_inner] in [[4, 5, 1], [1, 6, 5], [2, 3, 4], [1, 30, 1]] {
            let forward = Reduce { n_outer, n, n_inner, op: *op };
            let (x, grad_y) = (random.floats(n_outer * n * n_inner), random.floats(n_outer * n_inner));
            let direction = random.floats(x.len());
            let expected = slope_along(&x, &direction, 1e-3, |x| dot(&twin_floats(&forward, &[words(x)]), &grad_y));
            let grad_x = twin_floats(&ReduceGrad { forward }, &grad_given(&forward, &x, &grad_y));
            assert!(
                GRADIENT.holds(dot(&grad_x, &direction), expected),
                "{forward:?}: {} != {expected}",
                dot(&grad_x, &direction)
            );
        }
    }
}

#[test]
fn equals_share_the_gradient_and_a_norm_of_zero_has_none() {
    let max = Reduce { n_outer: 2, n: 3, n_inner: 1, op: ReduceOp::Max };
    let x = [1.0, 3.0, 3.0, 5.0, 0.0, 0.0];
    assert_eq!(twin_floats(&ReduceGrad { forward: max }, &grad_given(&max, &x, &[1.0, 2.0])), [0.0, 0.5, 0.5, 2.0, 0.0, 0.0]);
    let norm = Reduce { op: ReduceOp::Norm, ..max };
    let x = [0.0, 0.0, 0.0, 3.0, 0.0, 4.0];
    assert_eq!(twin_floats(&ReduceGrad { forward: norm }, &grad_given(&norm, &x, &[1.0, 1.0])), [0.0, 0.0, 0.0, 0.6, 0.0, 0.8]);
}

#[test]
fn gradients_on_the_gpu_agree() {
    let mut random = Random::new(4);
    for [n_outer, n, n_inner] in SHAPES {
        // Few different values, so that several are the greatest.
        let x: Vec<f32> = (0..n_outer * n * n_inner).map(|_| random.below(8) as f32 - 3.0).collect();
        let grad_y = random.floats(n_outer * n_inner);
        for op in &OPS[..5] {
            let forward = Reduce { n_outer, n, n_inner, op: *op };
            gpu_equals_twin(&ReduceGrad { forward }, &grad_given(&forward, &x, &grad_y));
            let y = run_twin(&forward, &[words(&x)]).remove(0);
            gpu_equals_twin(&ReduceMask { forward }, &[words(&x), y]);
        }
    }
}

#[test]
fn a_flag_has_no_gradient() {
    let error = ReduceGrad { forward: Reduce::all(3, ReduceOp::NonFinite) }.check().expect_err("it is constant");
    let message = "reduce_grad: a flag of what is not finite is not supported, expected a reduction that has a gradient";
    assert_eq!(error.to_string(), message);
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(5);
    for [n_outer, n, n_inner] in [[1, 200_003, 1], [9001, 17, 1], [1, 3000, 70], [3, 100, 2000]] {
        let x = random.floats(n_outer * n * n_inner);
        for op in [ReduceOp::Sum, ReduceOp::Norm] {
            same_bits_on_any_pool(&Reduce { n_outer, n, n_inner, op }, &[words(&x)]);
        }
        let forward = Reduce { n_outer, n, n_inner, op: ReduceOp::Max };
        same_bits_on_any_pool(&ReduceGrad { forward }, &grad_given(&forward, &x, &random.floats(n_outer * n_inner)));
    }
}
