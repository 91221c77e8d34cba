use brisk_kernels::{AccumulateBatches, Kernel};

use crate::random::Random;
use crate::run::*;

/// Gradients, sum and `skip` after the batch `batch`, starting with gradients 6 and -3, and sums 100 and 50.
#[track_caller]
fn check(every: u32, n_batches: u32, batch: u32, grads: [f32; 2], sum: [f32; 2], skip: u32) {
    let kernel = AccumulateBatches { n: 2, every, n_batches };
    let given = [words(&[6.0, -3.0]), words(&[100.0, 50.0]), vec![batch, 7, 0, 3]];
    let expected = [words(&grads), words(&sum), vec![batch, 7, skip, 3]];
    assert_eq!(run_twin(&kernel, &given), expected, "batch {batch} of {n_batches}");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn a_group_ends_in_its_mean() {
    check(4, 0, 0, [6.0, -3.0], [6.0, -3.0], 2);
    check(4, 0, 1, [6.0, -3.0], [106.0, 47.0], 2);
    check(4, 0, 2, [6.0, -3.0], [106.0, 47.0], 2);
    check(4, 0, 3, [26.5, 11.75], [100.0, 50.0], 0);
    check(4, 0, 4, [6.0, -3.0], [6.0, -3.0], 2);
}

#[test]
fn the_epochs_last_batch_ends_a_group() {
    // The third batch of four, and the first.
    check(4, 7, 6, [26.5, 11.75], [100.0, 50.0], 0);
    check(4, 5, 4, [1.5, -0.75], [100.0, 50.0], 0);
    check(4, 7, 5, [6.0, -3.0], [106.0, 47.0], 2);
}

#[test]
fn a_group_of_one_is_every_batch() {
    check(1, 0, 5, [6.0, -3.0], [100.0, 50.0], 0);
}

#[test]
fn gpu_agrees_and_bits_do_not_depend_on_threads() {
    let mut random = Random::new(1);
    for n in [1, 63, 64, 65, 40_003] {
        for batch in 0..3 {
            let given = [words(&random.floats(n)), words(&random.floats(n)), vec![batch, 0, 0, 0]];
            let kernel = AccumulateBatches { n, every: 3, n_batches: 0 };
            gpu_equals_twin(&kernel, &given);
            same_bits_on_any_pool(&kernel, &given);
        }
    }
}

#[test]
fn groups_of_none_are_refused() {
    assert!(AccumulateBatches { n: 1, every: 0, n_batches: 0 }.check().is_err(), "there would be no step");
}
