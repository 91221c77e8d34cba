use brisk_kernels::{Gather, GatherGrad, GatherIndex};

use crate::close::GRADIENT;
use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let kernel = Gather { n_outer: 2, n_x: 3, n: 2, n_inner: 2, index: GatherIndex::Each };
    let x = words(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
    let index = vec![2, 0, 2, 1, 0, 99, 1, u32::MAX];
    assert_eq!(twin_floats(&kernel, &[x, index.clone()]), [4.0, 1.0, 4.0, 3.0, 6.0, 7.0, 8.0, 7.0], "99 is read as 0");
    let grad_y = words(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let grad_x = twin_floats(&GatherGrad { forward: kernel }, &[grad_y, index]);
    assert_eq!(grad_x, [0.0, 2.0, 0.0, 4.0, 4.0, 0.0, 5.0, 14.0, 7.0, 0.0, 0.0, 0.0]);
}

#[test]
fn shared_indices_equal_hand_worked_numbers() {
    let kernel = Gather { n_outer: 2, n_x: 3, n: 4, n_inner: 2, index: GatherIndex::Shared };
    let x = words(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
    let index = vec![2, 99, 2, 1];
    let y = [4.0, 5.0, 0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 10.0, 11.0, 6.0, 7.0, 10.0, 11.0, 8.0, 9.0];
    assert_eq!(twin_floats(&kernel, &[x, index.clone()]), y, "99 is read as 0");
    let grad_y: Vec<f32> = (1..=16).map(|i| i as f32).collect();
    let grad_x = twin_floats(&GatherGrad { forward: kernel }, &[words(&grad_y), index]);
    assert_eq!(grad_x, [3.0, 4.0, 7.0, 8.0, 6.0, 8.0, 11.0, 12.0, 15.0, 16.0, 22.0, 24.0]);
}

#[test]
fn gpu_agrees_and_the_gradient_is_that_of_a_linear_map() {
    let mut random = Random::new(1);
    let sizes = [(1, 1, 1, 1), (5, 3, 1, 1), (2, 7, 9, 3), (70, 10, 1, 1), (1, 2, 100, 5), (3, 40, 30, 2)];
    for (sizes, index) in sizes.into_iter().flat_map(|sizes| [GatherIndex::Each, GatherIndex::Shared].map(|index| (sizes, index)))
    {
        let (n_outer, n_x, n, n_inner) = sizes;
        let kernel = Gather { n_outer, n_x, n, n_inner, index };
        let n_indices = if index == GatherIndex::Each { n_outer * n * n_inner } else { n };
        // Some of them beyond the last element.
        let index: Words = (0..n_indices).map(|_| random.below(n_x as u32 + 2)).collect();
        let (x, grad_y) = (random.floats(n_outer * n_x * n_inner), random.floats(n_outer * n * n_inner));
        gpu_equals_twin(&kernel, &[words(&x), index.clone()]);
        gpu_equals_twin(&GatherGrad { forward: kernel }, &[words(&grad_y), index.clone()]);
        let grad_x = twin_floats(&GatherGrad { forward: kernel }, &[words(&grad_y), index.clone()]);
        let (found, expected) = (dot(&grad_x, &x), dot(&twin_floats(&kernel, &[words(&x), index]), &grad_y));
        assert!(GRADIENT.holds(found, expected), "{kernel:?}: {found} != {expected}");
    }
}
