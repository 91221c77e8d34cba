use brisk_kernels::{MapReduce, Reducer};

use crate::close::{DEFAULT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

const OPS: [Reducer; 6] = [Reducer::Sum, Reducer::Mean, Reducer::Max, Reducer::Min, Reducer::Norm, Reducer::NonFinite];
/// Rows, columns and all elements, around the chain length of an invocation and the widths of a pass.
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
fn check(op: Reducer, [n_outer, n, n_inner]: [usize; 3], expected: &[f32]) {
    let x = words(&[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]);
    assert_close(&format!("{op:?}"), &twin_floats(&MapReduce::of(op, &[n_outer, n, n_inner], &[1]), &[x]), expected, DEFAULT);
}

#[test]
fn twin_equals_hand_worked_numbers() {
    check(Reducer::Sum, [2, 3, 1], &[2.0, 3.0]);
    check(Reducer::Sum, [1, 2, 3], &[5.0, 3.0, -3.0]);
    check(Reducer::Mean, [1, 6, 1], &[5.0 / 6.0]);
    check(Reducer::Max, [2, 3, 1], &[3.0, 5.0]);
    check(Reducer::Min, [1, 2, 3], &[1.0, -2.0, -6.0]);
    check(Reducer::Norm, [3, 1, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    check(Reducer::Norm, [1, 6, 1], &[91.0_f32.sqrt()]);
    check(Reducer::NonFinite, [2, 3, 1], &[0.0, 0.0]);
}

/// By the definition, in f64.
fn by_definition(op: Reducer, [n_outer, n, n_inner]: [usize; 3], x: &[f32]) -> Vec<f32> {
    let mut y = Vec::new();
    for (outer, inner) in (0..n_outer).flat_map(|outer| (0..n_inner).map(move |inner| (outer, inner))) {
        let of = (0..n).map(|k| f64::from(x[(outer * n + k) * n_inner + inner]));
        y.push(match op {
            Reducer::Sum => of.sum::<f64>(),
            Reducer::Mean => of.sum::<f64>() / n as f64,
            Reducer::Max => of.fold(f64::NEG_INFINITY, f64::max),
            Reducer::Min => of.fold(f64::INFINITY, f64::min),
            Reducer::Norm => of.map(|x| x * x).sum::<f64>().sqrt(),
            _ => f64::from(u8::from(of.into_iter().any(|x: f64| !x.is_finite()))),
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
            let kernel = MapReduce::of(op, &[n_outer, n, n_inner], &[1]);
            let sums = Tolerance::of_sum(n);
            assert_close(
                &format!("{kernel:?}"),
                &twin_floats(&kernel, &[words(&x)]),
                &by_definition(op, [n_outer, n, n_inner], &x),
                sums,
            );
            gpu_equals_twin_within(&kernel, &[words(&x)], sums);
        }
    }
}

#[test]
fn a_sum_of_many_does_not_drown_its_parts() {
    // A single running f32 sum would stop growing at 2^24 times the smallest.
    let n = 3_000_000;
    let x = words(&vec![0.1; n]);
    let sum = twin_floats(&MapReduce::of(Reducer::Sum, &[n], &[0]), std::slice::from_ref(&x))[0];
    assert!((sum - 300_000.0).abs() < 0.5, "{sum}");
    gpu_equals_twin(&MapReduce::of(Reducer::Sum, &[n], &[0]), &[x]);
}

#[test]
fn what_is_not_finite_is_found_and_passed_on() {
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (n, at) in [(1, 0), (100, 99), (2000, 1234)] {
            let mut x = Random::new(2).floats(n);
            x[at] = bad;
            let given = [words(&x)];
            assert_eq!(twin_floats(&MapReduce::of(Reducer::NonFinite, &[n], &[0]), &given), [1.0], "{bad} at {at} of {n}");
            gpu_equals_twin(&MapReduce::of(Reducer::NonFinite, &[n], &[0]), &given);
            if bad.is_nan() {
                for op in [Reducer::Sum, Reducer::Max, Reducer::Min, Reducer::Norm] {
                    assert!(twin_floats(&MapReduce::of(op, &[n], &[0]), &given)[0].is_nan(), "{op:?} with NaN at {at} of {n}");
                    gpu_equals_twin(&MapReduce::of(op, &[n], &[0]), &given);
                }
            }
        }
    }
    let largest = [words(&[f32::MAX, f32::MIN, f32::MIN_POSITIVE, -0.0])];
    assert_eq!(twin_floats(&MapReduce::of(Reducer::NonFinite, &[4], &[0]), &largest), [0.0], "the largest numbers are finite");
    gpu_equals_twin(&MapReduce::of(Reducer::NonFinite, &[4], &[0]), &largest);
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(5);
    for [n_outer, n, n_inner] in [[1, 200_003, 1], [9001, 17, 1], [1, 3000, 70], [3, 100, 2000]] {
        let x = random.floats(n_outer * n * n_inner);
        for op in [Reducer::Sum, Reducer::Norm] {
            same_bits_on_any_pool(&MapReduce::of(op, &[n_outer, n, n_inner], &[1]), &[words(&x)]);
        }
    }
}
