use brisk_kernels::{MapReduce, Reducer};

use crate::close::Tolerance;
use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let y = twin_floats(&MapReduce::of(Reducer::Sum, &[3, 2], &[0]), &[words(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
    assert_eq!(y, [9.0, 12.0], "sums of columns");
    let ones = vec![1.0; 1000];
    assert_eq!(twin_floats(&MapReduce::of(Reducer::Sum, &[1000, 1], &[0]), &[words(&ones)]), [1000.0], "one column, many parts");
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for (n_rows, n_cols) in [(1, 1), (63, 3), (64, 64), (65, 65), (129, 7), (1001, 33)] {
        let x = words(&random.floats(n_rows * n_cols));
        gpu_equals_twin_within(&MapReduce::of(Reducer::Sum, &[n_rows, n_cols], &[0]), &[x], Tolerance::of_sum(n_rows));
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(2);
    for (n_rows, n_cols) in [(1024, 256), (8192, 33), (100_003, 1)] {
        same_bits_on_any_pool(&MapReduce::of(Reducer::Sum, &[n_rows, n_cols], &[0]), &[words(&random.floats(n_rows * n_cols))]);
    }
}
