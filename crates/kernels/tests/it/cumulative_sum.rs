use brisk_kernels::{CumulativeSum, DType, SumOrder, stored};

use crate::close::{GRADIENT, Tolerance};
use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let kernel = CumulativeSum { n_outer: 2, n: 3, n_inner: 2, order: SumOrder::Forward };
    let x = words(&[1.0, 10.0, 2.0, 20.0, 3.0, 30.0, -1.0, 0.5, 0.0, 0.0, 1.0, 0.5]);
    assert_eq!(twin_floats(&kernel, std::slice::from_ref(&x)), [1.0, 10.0, 3.0, 30.0, 6.0, 60.0, -1.0, 0.5, -1.0, 0.5, 0.0, 1.0]);
    assert_eq!(twin_floats(&kernel.grad(), &[x]), [6.0, 60.0, 5.0, 50.0, 3.0, 30.0, 0.0, 1.0, 1.0, 0.5, 1.0, 0.5]);
}

/// Around the number of elements of an invocation and of a workgroup, and both forms; also stored in 16 bits.
#[test]
fn gpu_agrees_and_the_gradient_is_that_of_a_linear_map() {
    let mut random = Random::new(1);
    for (n_outer, n, n_inner) in
        [(1, 1, 1), (3, 2, 5), (70, 64, 1), (1, 65, 1), (2, 255, 1), (2, 256, 3), (1, 257, 2), (3, 1000, 1), (100, 70, 50)]
    {
        for order in [SumOrder::Forward, SumOrder::Reverse] {
            let kernel = CumulativeSum { n_outer, n, n_inner, order };
            let (x, grad_y) = (random.floats(n_outer * n * n_inner), random.floats(n_outer * n * n_inner));
            gpu_equals_twin_within(&kernel, &[words(&x)], Tolerance::of_sum(n));
            let grad_x = twin_floats(&kernel.grad(), &[words(&grad_y)]);
            let (found, expected) = (dot(&grad_x, &x), dot(&twin_floats(&kernel, &[words(&x)]), &grad_y));
            assert!(GRADIENT.holds(found, expected), "{kernel:?}: {found} != {expected}");
            for dtypes in [[DType::F16, DType::F32], [DType::Bf16, DType::Bf16]] {
                let low = stored(kernel, &dtypes).expect("it takes floats of 16 bits");
                gpu_equals_twin_within(&*low, &[half_words(dtypes[0], &x)], Tolerance::of_sum(n));
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let kernel = CumulativeSum { n_outer: 50, n: 300, n_inner: 7, order: SumOrder::Forward };
    same_bits_on_any_pool(&kernel, &[words(&Random::new(2).floats(50 * 300 * 7))]);
}
