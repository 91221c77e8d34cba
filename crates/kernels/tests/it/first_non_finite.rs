use brisk_kernels::{FirstNonFinite, Kernel};

use crate::run::*;

#[track_caller]
fn check(place: u32, found: f32, before: [u32; 2], expected: [u32; 2]) {
    let (kernel, given) = (FirstNonFinite { place }, [words(&[found]), before.to_vec()]);
    assert_eq!(run_twin(&kernel, &given), [expected.to_vec()], "place {place}, found {found}, after {before:?}");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn the_first_place_is_noted_and_stays() {
    check(0, 0.0, [0, 0], [0, 1]);
    check(3, 0.0, [0, 1], [0, 1]);
    check(3, 1.0, [0, 1], [4, 1]);
    check(0, 1.0, [0, 6], [1, 7]);
    // Later values change nothing, and replays are no longer counted.
    check(1, 1.0, [4, 7], [4, 7]);
    check(0, 1.0, [4, 7], [4, 7]);
    check(0, 0.0, [0, u32::MAX], [0, 0]);
}

#[test]
fn a_place_without_a_number_is_refused() {
    let error = FirstNonFinite { place: u32::MAX }.check().expect_err("0 stands for none");
    assert_eq!(error.to_string(), "first_non_finite: place is 4294967295, expected less than 2^32 - 1");
}
