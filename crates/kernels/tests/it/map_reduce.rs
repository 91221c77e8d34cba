//! Reductions of expressions: sums and maxima over any dimensions compared with `f64`, GPU compared with twin.

use brisk_kernels::expr::Expr;
use brisk_kernels::*;

use crate::close::{Tolerance, assert_close};
use crate::map_samples::{OPS, x};
use crate::random::Random;
use crate::run::*;

/// Compares the twin with a sum, or a maximum, in `f64` of the elements that [`Map`] computes.
#[track_caller]
fn twin_reduces(reduction: &MapReduce, given: &[Words]) {
    let outputs = vec![MapOutput { expr: reduction.exprs[0].clone(), dtype: DType::F32 }];
    let map = Map { shape: reduction.shape.clone(), inputs: reduction.inputs.clone(), outputs };
    let kept = MapInput::new(&reduction.kept_shape(), DType::F32);
    let n_kept = kept.len;
    let n = map.len();
    let mut expected = vec![Vec::new(); n_kept];
    for (i, element) in twin_floats(&map, given).into_iter().enumerate() {
        expected[crate::map::index(&reduction.shape, &kept, i)].push(f64::from(element));
    }
    let expected: Vec<f32> = expected
        .into_iter()
        .map(|values| match reduction.op {
            Reducer::Sum => values.iter().sum::<f64>() as f32,
            Reducer::Mean => (values.iter().sum::<f64>() / values.len() as f64) as f32,
            Reducer::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max) as f32,
            Reducer::Min => values.iter().copied().fold(f64::INFINITY, f64::min) as f32,
            _ => values.iter().map(|v| v * v).sum::<f64>().sqrt() as f32,
        })
        .collect();
    let found = twin_floats(reduction, given);
    assert_close(&format!("{reduction:?}"), &found, &expected, Tolerance::of_sum(n / n_kept));
}

#[track_caller]
fn check(op: Reducer, expr: &Expr, inputs: &[&[usize]], dims: &[usize]) {
    let reduction = MapReduce::new(op, expr.clone(), inputs, dims).unwrap_or_else(|error| panic!("{error}"));
    let mut random = Random::new(1);
    let given: Vec<_> = inputs.iter().map(|shape| words(&random.floats(shape.iter().product()))).collect();
    twin_reduces(&reduction, &given);
    let n: usize = reduction.shape.iter().product();
    gpu_equals_twin_within(&reduction, &given, Tolerance::of_sum(n));
}

#[test]
fn any_dimensions_are_reduced() {
    for op in OPS {
        for dims in [&[][..], &[0], &[1], &[2], &[3], &[0, 1], &[0, 3], &[1, 2], &[3, 1], &[0, 1, 2], &[0, 1, 2, 3]] {
            check(op, &(x(0) * x(1) + 0.25), &[&[3, 4, 5, 7], &[5, 1]], dims);
        }
    }
}

#[test]
fn inputs_have_any_strides() {
    let permuted = MapInput::new(&[3, 4, 40], DType::F32).permuted(&[2, 0, 1]).expect("a permutation");
    let narrowed = permuted.narrowed(0, 5..30).expect("elements are left");
    let mut reduction = MapReduce::new(Reducer::Sum, x(0) * x(1), &[&narrowed.shape, &[3, 1]], &[0]).expect("they broadcast");
    reduction.inputs[0] = narrowed;
    let mut random = Random::new(2);
    for dims in [&[0][..], &[1], &[2], &[0, 2], &[0, 1, 2]] {
        reduction.dims = dims.to_vec();
        let given = [words(&random.floats(480)), words(&random.floats(3))];
        twin_reduces(&reduction, &given);
        gpu_equals_twin(&reduction, &given);
    }
}

#[test]
fn results_are_right_at_every_size() {
    for n in [1, 2, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 5000, 70_001, 300_000] {
        check(Reducer::Sum, &(x(0) * x(0)), &[&[n]], &[0]);
        check(Reducer::Max, &x(0), &[&[n]], &[0]);
    }
    for (rows, cols) in [(2000, 3), (3, 2000), (70, 1500), (1500, 70), (1, 9), (9, 1), (40_000, 2), (2, 40_000)] {
        for dims in [&[0][..], &[1]] {
            check(Reducer::Mean, &(x(0) - x(1)), &[&[rows, cols], &[cols]], dims);
            check(Reducer::Min, &(x(0) - x(1)), &[&[rows, cols], &[rows, 1]], dims);
        }
    }
    check(Reducer::Sum, &x(0), &[&[30, 50, 40]], &[0, 2]);
    check(Reducer::Sum, &x(0), &[&[30, 50, 40]], &[1]);
    check(Reducer::Sum, &x(0), &[&[2, 70, 2, 70]], &[0, 2]);
}

#[test]
fn long_sums_keep_their_digits() {
    let n = 1 << 20;
    let reduction = MapReduce::new(Reducer::Sum, x(0), &[&[n]], &[0]).expect("it is right");
    let found = twin_floats(&reduction, &[words(&vec![0.1; n])])[0];
    let expected = f64::from(0.1_f32) * n as f64;
    assert!((f64::from(found) - expected).abs() < 1e-6 * expected, "{found}, expected {expected}; one chain is off by a tenth");
}

#[test]
fn inputs_and_results_are_stored_in_16_bits() {
    let mut random = Random::new(2);
    for dtype in [DType::F16, DType::Bf16] {
        let plain = MapReduce::new(Reducer::Sum, x(0) * x(1), &[&[9, 11], &[11]], &[1]).expect("they broadcast");
        let given = [half_words(dtype, &random.floats(99)), half_words(dtype, &random.floats(11))];
        let read = stored(plain.clone(), &[dtype, dtype, DType::F32]).expect("floats");
        assert_eq!(read.args().len(), 3, "no copies");
        gpu_equals_twin(&*read, &given);
        let all = stored(plain, &[dtype, dtype, dtype]).expect("floats");
        gpu_equals_twin(&*all, &given);
        let rounded = floats_of(dtype, &half_words(dtype, floats(&run_twin(&*read, &given)[0])), 9);
        assert_eq!(floats_of(dtype, &run_twin(&*all, &given)[0], 9), rounded);
    }
}

#[test]
fn nan_goes_through() {
    for op in OPS {
        for (at, dims) in [(0, &[0, 1][..]), (77, &[0, 1]), (1199, &[1]), (600, &[0])] {
            let mut values = vec![1.0; 1200];
            values[at] = f32::NAN;
            let reduction = MapReduce::new(op, x(0), &[&[2, 600]], dims).expect("it is right");
            let found = twin_floats(&reduction, &[words(&values)]);
            assert_eq!(found.iter().filter(|y| y.is_nan()).count(), 1, "{op:?} over {dims:?}: {found:?}");
            gpu_equals_twin(&reduction, &[words(&values)]);
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(3);
    for dims in [&[0][..], &[1], &[0, 1]] {
        let reduction = MapReduce::new(Reducer::Sum, x(0).exp(), &[&[700, 300]], dims).expect("it is right");
        same_bits_on_any_pool(&reduction, &[words(&random.floats(210_000))]);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |op, expr: Expr, inputs: &[&[usize]], dims: &[usize], expected: &str| {
        let error = MapReduce::new(op, expr, inputs, dims).expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(Reducer::Sum, x(0), &[&[3, 4]], &[2], "dimension 2 of shape [3, 4]");
    refused(Reducer::Sum, x(0), &[&[3, 4]], &[1, 0, 1], "the list of dimensions [1, 0, 1] is not supported");
    refused(Reducer::Sum, x(1), &[&[3]], &[0], "the expression `x1` (number of inputs: 1) is not supported");
    refused(Reducer::Sum, x(1), &[&[3], &[3]], &[0], "input x0, which no expression reads");
    refused(Reducer::Sum, x(0), &[&[0]], &[0], "number of elements is 0");
    refused(Reducer::Sum, x(0) + x(1), &[&[3], &[4]], &[0], "equal or 1");
    let sum = (0..6).map(x).reduce(|a, b| a + b).expect("six");
    refused(Reducer::Sum, sum, &[&[3][..]; 6], &[0], "a kernel with 6 inputs is not supported");
}
