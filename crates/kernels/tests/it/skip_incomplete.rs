use brisk_kernels::{Kernel, SkipIncomplete};

use crate::run::*;

#[track_caller]
fn check(every: u32, n_batches: u32, batch: u32, skip: u32) {
    let kernel = SkipIncomplete { every, n_batches };
    let given = [vec![batch, 7, 0, 3]];
    assert_eq!(run_twin(&kernel, &given), [vec![batch, 7, skip, 3]], "batch {batch} of {n_batches}");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn only_the_last_batch_of_a_group_and_of_the_epoch_have_a_step() {
    for (batch, skip) in [(0, 2), (1, 2), (2, 2), (3, 0), (4, 2)] {
        check(4, 0, batch, skip);
    }
    check(4, 7, 6, 0);
    check(4, 5, 4, 0);
    check(4, 7, 5, 2);
    check(1, 0, 5, 0);
    assert!(SkipIncomplete { every: 0, n_batches: 0 }.check().is_err(), "there would be no step");
}
