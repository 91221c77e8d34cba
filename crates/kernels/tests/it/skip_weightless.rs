use brisk_kernels::{Kernel, SkipWeightless};

use crate::run::*;

/// The sum and `skip` after the batch `batch` with this weight, starting with a sum of `sum`.
#[track_caller]
fn check(kernel: SkipWeightless, batch: u32, (weight, sum): (f32, f32), expected: f32, skip: u32) {
    let given = [words(&[weight]), words(&[sum]), vec![batch, 7, 0, 3]];
    let expected = [words(&[expected]), vec![batch, 7, skip, 3]];
    assert_eq!(run_twin(&kernel, &given), expected, "batch {batch} of {kernel:?}");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn a_group_is_skipped_if_all_of_its_weights_are_0() {
    let kernel = SkipWeightless { every: 3, n_batches: 0 };
    // The sum is that of the group; the previous content does not matter.
    check(kernel, 0, (0.0, 5.0), 0.0, 0);
    check(kernel, 1, (0.0, 0.0), 0.0, 0);
    check(kernel, 2, (0.0, 0.0), 0.0, 2);
    check(kernel, 2, (0.0, 0.25), 0.25, 0);
    check(kernel, 5, (0.5, 0.0), 0.5, 0);
    check(kernel, 3, (0.5, 4.0), 0.5, 0);
}

#[test]
fn a_group_ends_with_the_epoch() {
    let kernel = SkipWeightless { every: 4, n_batches: 6 };
    check(kernel, 4, (0.0, 1.0), 0.0, 0);
    check(kernel, 5, (0.0, 0.0), 0.0, 2);
    check(kernel, 5, (0.0, 1.0), 1.0, 0);
}

#[test]
fn a_group_of_one_is_every_batch() {
    let kernel = SkipWeightless { every: 1, n_batches: 0 };
    check(kernel, 5, (0.0, 9.0), 0.0, 2);
    check(kernel, 5, (1e-30, 0.0), 1e-30, 0);
    check(kernel, 6, (f32::INFINITY, 0.0), f32::INFINITY, 0);
}

#[test]
fn a_step_that_is_skipped_already_stays_so() {
    let given = [words(&[1.0]), words(&[0.0]), vec![0, 0, 2, 0]];
    assert_eq!(run_twin(&SkipWeightless { every: 1, n_batches: 0 }, &given)[1][2], 2);
}

#[test]
fn groups_of_none_are_refused() {
    assert!(SkipWeightless { every: 0, n_batches: 0 }.check().is_err(), "there would be no step");
}
