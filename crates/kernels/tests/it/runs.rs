use brisk_kernels::{GatherRuns, Kernel, Runs, ScaleRuns};

use crate::close::{DEFAULT, assert_close};
use crate::random::Random;
use crate::run::*;

/// Ranges of length `len` with gaps of different lengths before, between and after.
pub(crate) fn runs(n_runs: usize, len: usize) -> Runs {
    let mut n = 3;
    let mut starts = Vec::new();
    for run in 0..n_runs {
        starts.push(n);
        n += len + run % 3;
    }
    Runs { n: n + 5, starts, len }
}

/// A step that is taken, and one that is skipped.
pub(crate) const STATES: [[u32; 4]; 2] = [[7, 9, 0, 0], [7, 9, 1, 2]];

#[test]
fn twins_equal_hand_worked_numbers() {
    let runs = Runs { n: 7, starts: vec![1, 4], len: 2 };
    let x = words(&[9.0, 1.0, 2.0, 9.0, 3.0, 4.0, 9.0]);
    assert_eq!(twin_floats(&GatherRuns { runs: runs.clone() }, std::slice::from_ref(&x)), [1.0, 2.0, 3.0, 4.0]);
    // The second norm is less than ε.
    let kernel = ScaleRuns { runs, to: 6.0, eps: 0.5 };
    let given = |state: [u32; 4]| [words(&[3.0, 0.25]), state.to_vec(), x.clone()];
    assert_eq!(twin_floats(&kernel, &given(STATES[0])), [9.0, 2.0, 4.0, 9.0, 36.0, 48.0, 9.0]);
    assert_eq!(twin_floats(&kernel, &given(STATES[1])), floats(&x), "a step that is skipped");
}

#[test]
fn nan_in_a_norm_reaches_its_run_and_no_other() {
    let kernel = ScaleRuns { runs: Runs { n: 4, starts: vec![0, 2], len: 2 }, to: 1.0, eps: 1e-7 };
    let given = [words(&[f32::NAN, 2.0]), STATES[0].to_vec(), words(&[1.0, 2.0, 3.0, 4.0])];
    let x = twin_floats(&kernel, &given);
    assert!(x[0].is_nan() && x[1].is_nan(), "{x:?}");
    assert_close("the other", &x[2..], &[1.5, 2.0], DEFAULT);
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for (n_runs, len) in [(1, 1), (3, 63), (2, 64), (5, 65), (2, 40_003)] {
        let runs = runs(n_runs, len);
        let (x, norms) = (words(&random.floats(runs.n)), words(&random.floats(n_runs)));
        gpu_equals_twin(&GatherRuns { runs: runs.clone() }, std::slice::from_ref(&x));
        for state in STATES {
            gpu_equals_twin(&ScaleRuns { runs: runs.clone(), to: 2.0, eps: 0.1 }, &[norms.clone(), state.to_vec(), x.clone()]);
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let runs = runs(3, 40_003);
    let x = words(&Random::new(2).floats(runs.n));
    same_bits_on_any_pool(&GatherRuns { runs: runs.clone() }, std::slice::from_ref(&x));
    same_bits_on_any_pool(&ScaleRuns { runs, to: 2.0, eps: 0.1 }, &[words(&[3.0, 0.7, 1.3]), STATES[0].to_vec(), x]);
}

#[test]
fn runs_that_overlap_or_do_not_fit_are_refused() {
    let refuses = |starts: &[usize], expected: &str| {
        let kernel = GatherRuns { runs: Runs { n: 10, starts: starts.to_vec(), len: 4 } };
        let error = kernel.check().expect_err("they do not fit").to_string();
        assert_eq!(error, format!("gather_runs: {expected}"));
    };
    let why = "expected ascending starts of ranges that do not overlap and end within the buffer";
    refuses(&[0, 3], &format!("start of a run is 3, {why}"));
    refuses(&[4, 0], &format!("start of a run is 0, {why}"));
    refuses(&[7], &format!("start of a run is 7, {why}"));
    refuses(&[usize::MAX], &format!("start of a run is {}, {why}", usize::MAX));
    refuses(&[], "number of runs is 0, expected 1 to 2^32 - 1");
    let runs = Runs { n: 10, starts: vec![0], len: 4 };
    for (to, eps, expected) in [(0.0, 1e-7, "to = 0"), (f32::NAN, 1e-7, "to = NaN"), (1.0, 0.0, "eps = 0")] {
        let error = ScaleRuns { runs: runs.clone(), to, eps }.check().expect_err("no norm").to_string();
        assert_eq!(error, format!("scale_runs: {expected} is not supported, expected a finite number above 0"));
    }
}
