use brisk_kernels::{ArgMax, DType, stored};

use crate::random::Random;
use crate::run::*;

const NAN: f32 = f32::NAN;

#[track_caller]
fn check(x: &[f32], expected: u32) {
    let kernel = ArgMax { n_outer: 1, n: x.len(), n_inner: 1 };
    assert_eq!(run_twin(&kernel, &[words(x)])[0], [expected], "{x:?}");
    gpu_equals_twin(&kernel, &[words(x)]);
}

#[test]
fn the_first_of_equal_ones_and_nan_before_all() {
    check(&[1.0, 3.0, 2.0], 1);
    check(&[1.0, 3.0, 3.0], 1);
    check(&[-0.0, 0.0], 0);
    check(&[f32::NEG_INFINITY; 3], 0);
    check(&[1.0, NAN, f32::INFINITY, NAN], 1);
    // With a whole workgroup, and the maximum at each position.
    for at in [0, 1, 63, 64, 65, 199] {
        let mut x = vec![0.5; 200];
        x[at] = 0.75;
        check(&x, at as u32);
        x[at] = NAN;
        check(&x, at as u32);
    }
    check(&[2.5; 300], 0);
}

#[test]
fn along_the_middle_of_three_dimensions() {
    let kernel = ArgMax { n_outer: 2, n: 3, n_inner: 2 };
    let x = [1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 3.0, 7.0, 9.0, 8.0, 2.0, 8.0];
    assert_eq!(run_twin(&kernel, &[words(&x)])[0], [2, 0, 1, 1]);
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for (n_outer, n, n_inner) in [(1, 1, 1), (3, 5, 7), (70, 64, 1), (1, 65, 1), (2, 129, 3), (1, 5000, 1), (5000, 70, 1)] {
        let kernel = ArgMax { n_outer, n, n_inner };
        let x = random.floats(n_outer * n * n_inner);
        gpu_equals_twin(&kernel, &[words(&x)]);
        for dtype in [DType::F16, DType::Bf16] {
            let low = stored(kernel, &[dtype, DType::U32]).expect("it takes floats of 16 bits");
            gpu_equals_twin(&*low, &[half_words(dtype, &x)]);
        }
    }
    same_bits_on_any_pool(&ArgMax { n_outer: 5000, n: 70, n_inner: 1 }, &[words(&random.floats(350_000))]);
}
