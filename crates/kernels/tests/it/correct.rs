use brisk_kernels::Correct;

use crate::close::DEFAULT;
use crate::random::Random;
use crate::run::*;

const LOWEST: f32 = f32::NEG_INFINITY;

#[track_caller]
fn check(x: &[f32; 3], target: u32, expected: f32) {
    let kernel = Correct { n_rows: 1, n_classes: 3 };
    let given = [words(x), vec![target]];
    assert_eq!(twin_floats(&kernel, &given), [expected], "{x:?} for class {target}");
    both_forms_equal_twin_within(&kernel, &given, DEFAULT);
}

#[test]
fn the_first_greatest_counts() {
    check(&[0.0, 2.0, 1.0], 1, 1.0);
    check(&[0.0, 2.0, 1.0], 0, 0.0);
    check(&[2.0, 1.0, 2.0], 0, 1.0);
    check(&[2.0, 1.0, 2.0], 2, 0.0);
    check(&[LOWEST, LOWEST, -1e30], 2, 1.0);
    check(&[LOWEST; 3], 0, 1.0);
}

#[test]
fn nan_is_passed_over_and_no_class_is_wrong() {
    check(&[f32::NAN, 0.0, 1.0], 2, 1.0);
    check(&[f32::NAN, 0.0, 1.0], 0, 0.0);
    check(&[f32::NAN; 3], 0, 0.0);
    check(&[0.0, 2.0, 1.0], 3, 0.0);
    check(&[f32::NAN; 3], u32::MAX, 0.0);
}

#[test]
fn gpu_agrees_and_bits_do_not_depend_on_threads() {
    let mut random = Random::new(1);
    for (n_rows, n_classes) in [(1, 1), (63, 10), (65, 2), (300, 3), (3, 33), (2, 64), (40, 65), (2, 1100), (9001, 10)] {
        let target = (0..n_rows).map(|_| random.below(n_classes as u32)).collect();
        // Few different values, so that many are equal.
        let x: Vec<f32> = (0..n_rows * n_classes).map(|_| random.below(4) as f32).collect();
        let (kernel, given) = (Correct { n_rows, n_classes }, [words(&x), target]);
        both_forms_equal_twin_within(&kernel, &given, DEFAULT);
        same_bits_on_any_pool(&kernel, &given);
    }
}
