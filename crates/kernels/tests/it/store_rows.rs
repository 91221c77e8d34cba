use brisk_kernels::StoreRows;

use crate::random::Random;
use crate::run::*;

const BEYOND: [f32; 6] = [0.0, 0.0, 0.0, 0.0, 0.0, f32::NAN];

#[track_caller]
fn check(batch: u32, expected: &[f32]) {
    let kernel = StoreRows { n: 2, n_cols: 2, n_total: 3 };
    let given = [words(&[1.0, 2.0, 3.0, 4.0]), vec![batch, 9, 0, 0], vec![0; 6]];
    // By their bits, since NaN differs from itself.
    assert_eq!(words(&twin_floats(&kernel, &given)), words(expected), "batch {batch}");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn the_end_of_the_result_cuts_the_batch() {
    check(0, &[1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
    check(1, &[0.0, 0.0, 0.0, 0.0, 1.0, 2.0]);
    check(2, &BEYOND);
}

#[test]
fn a_batch_far_beyond_the_end_does_not_wrap_round() {
    // 2^30 batches of 4 elements are 2^32 elements, 0 in u32.
    check(1 << 30, &BEYOND);
    check(u32::MAX, &BEYOND);
}

#[test]
fn gpu_equals_twin_at_many_sizes() {
    let mut random = Random::new(1);
    for (n, n_cols, n_total, batch) in [(1, 1, 1, 0), (63, 1, 100, 1), (64, 1, 64, 0), (65, 3, 200, 2), (100, 10, 1000, 9)] {
        let given = [words(&random.floats(n * n_cols)), vec![batch, 0, 0, 0], words(&random.floats(n_total * n_cols))];
        gpu_equals_twin(&StoreRows { n, n_cols, n_total }, &given);
    }
}
