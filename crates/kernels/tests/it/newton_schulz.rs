use brisk_kernels::{Epilogue, Matmul, NewtonSchulzFactor, Transpose};

use crate::close::{Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

/// The authors' coefficients: steep at 0, and near 1 for most of the interval from 0 to 1.
const QUINTIC: [f32; 3] = [3.4445, -4.7750, 2.0315];

#[test]
fn twin_equals_hand_worked_numbers() {
    let kernel = NewtonSchulzFactor { n_batch: 2, n: 2, coefficients: [100.0, 10.0, 1.0] };
    let gram = words(&[1.0, 2.0, 3.0, 4.0, 0.0, 1.0, 0.0, 0.0]);
    let square = words(&[0.5, 0.0, -1.0, 0.0, 7.0, 7.0, 7.0, 7.0]);
    let expected = [110.5, 20.0, 29.0, 140.0, 107.0, 17.0, 7.0, 107.0];
    assert_eq!(twin_floats(&kernel, &[gram, square]), expected);
}

/// One step maps a singular value `s` to `a s + b s³ + c s⁵`; if the rows of a matrix are orthogonal, the singular values are the
/// rows' lengths.
#[test]
fn a_step_is_the_polynomial_of_the_singular_values() {
    let (lengths, n_cols) = ([0.01, 0.3, 1.0], 5);
    let mut x = vec![0.0; 3 * n_cols];
    for (row, length) in lengths.into_iter().enumerate() {
        x[row * n_cols + row + 1] = length;
    }
    let product = |m, n, k, transpose| Matmul { n_batch: 1, m, n, k, transpose, epilogue: Epilogue::none() };
    let gram = twin_floats(&product(3, 3, n_cols, Transpose::B), &[words(&x), words(&x)]);
    let square = twin_floats(&product(3, 3, 3, Transpose::None), &[words(&gram), words(&gram)]);
    let factor = NewtonSchulzFactor { n_batch: 1, n: 3, coefficients: QUINTIC };
    let factor = twin_floats(&factor, &[words(&gram), words(&square)]);
    let y = twin_floats(&product(3, n_cols, 3, Transpose::None), &[words(&factor), words(&x)]);
    let [a, b, c] = QUINTIC;
    for (row, s) in lengths.into_iter().enumerate() {
        let expected = a * s + b * s.powi(3) + c * s.powi(5);
        assert_close("length", &[y[row * n_cols + row + 1]], &[expected], Tolerance { absolute: 1e-6, relative: 1e-5 });
    }
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for (n_batch, n) in [(1, 1), (1, 8), (3, 7), (2, 9), (5, 33), (1, 70)] {
        let kernel = NewtonSchulzFactor { n_batch, n, coefficients: QUINTIC };
        let given = [0, 1].map(|_| words(&random.floats(n_batch * n * n)));
        gpu_equals_twin(&kernel, &given);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(2);
    let kernel = NewtonSchulzFactor { n_batch: 3, n: 200, coefficients: QUINTIC };
    let given = [0, 1].map(|_| words(&random.floats(3 * 200 * 200)));
    same_bits_on_any_pool(&kernel, &given);
}
