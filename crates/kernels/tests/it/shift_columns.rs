use brisk_kernels::ShiftColumns;

use crate::close::GRADIENT;
use crate::random::Random;
use crate::run::*;

#[track_caller]
fn check(n_y_cols: usize, shift: isize, expected: &[f32]) {
    let kernel = ShiftColumns { n_rows: 2, n_x_cols: 3, n_y_cols, shift };
    let given = [words(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])];
    assert_eq!(twin_floats(&kernel, &given), expected, "{kernel:?}");
    gpu_equals_twin(&kernel, &given);
}

#[test]
fn columns_are_cut_out_and_put_back() {
    check(2, 1, &[2.0, 3.0, 5.0, 6.0]);
    check(1, 0, &[1.0, 4.0]);
    check(3, 0, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    check(5, -1, &[0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 4.0, 5.0, 6.0, 0.0]);
    check(2, -1, &[0.0, 1.0, 0.0, 4.0]);
    check(3, 2, &[3.0, 0.0, 0.0, 6.0, 0.0, 0.0]);
}

#[test]
fn where_nothing_overlaps_there_are_zeros() {
    check(2, 3, &[0.0; 4]);
    check(2, -2, &[0.0; 4]);
    check(1, 1000, &[0.0; 2]);
    check(1, -1000, &[0.0; 2]);
}

#[test]
fn gpu_agrees_and_the_gradient_is_that_of_a_linear_map() {
    let mut random = Random::new(1);
    for (n_rows, n_x_cols, n_y_cols, shift) in [(1, 1, 1, 0), (64, 5, 3, 1), (65, 3, 64, -60), (33, 40, 13, 27)] {
        let kernel = ShiftColumns { n_rows, n_x_cols, n_y_cols, shift };
        let (x, grad_y) = (random.floats(n_rows * n_x_cols), random.floats(n_rows * n_y_cols));
        gpu_equals_twin(&kernel, &[words(&x)]);
        let grad_x = twin_floats(&kernel.grad(), &[words(&grad_y)]);
        let (found, expected) = (dot(&grad_x, &x), dot(&twin_floats(&kernel, &[words(&x)]), &grad_y));
        assert!(GRADIENT.holds(found, expected), "{kernel:?}: {found} != {expected}");
    }
}
