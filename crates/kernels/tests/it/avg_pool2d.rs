use brisk_kernels::*;

use crate::close::{DEFAULT, GRADIENT, assert_close};
use crate::max_pool2d::{shape, shapes};
use crate::random::Random;
use crate::run::*;

const DIVISORS: [PoolDivisor; 2] = [PoolDivisor::Padded, PoolDivisor::Inside];

#[test]
fn twin_equals_hand_worked_numbers() {
    let x = words(&[1.0, 5.0, 2.0, 3.0, 4.0, 9.0, -1.0, -2.0, 7.0]);
    let window = Window { kernel: [2, 2], stride: [2, 2], padding: [0, 0] };
    let up = shape([1, 3, 3, 1], window, Rounding::Up);
    for divisor in DIVISORS {
        // Pixels beyond the image are not padding, so both divisors are the same.
        let y = twin_floats(&AvgPool2d { shape: up, divisor }, std::slice::from_ref(&x));
        assert_close("y", &y, &[13.0 / 4.0, 11.0 / 2.0, -1.5, 7.0], DEFAULT);
    }
    let padded = shape([1, 3, 3, 1], Window { padding: [1, 1], ..window }, Rounding::Down);
    let y = twin_floats(&AvgPool2d { shape: padded, divisor: PoolDivisor::Padded }, std::slice::from_ref(&x));
    assert_close("padded", &y, &[0.25, 7.0 / 4.0, 0.5, 18.0 / 4.0], DEFAULT);
    let y = twin_floats(&AvgPool2d { shape: padded, divisor: PoolDivisor::Inside }, &[x]);
    assert_close("inside", &y, &[1.0, 7.0 / 2.0, 1.0, 18.0 / 4.0], DEFAULT);
}

#[test]
fn a_global_pool_is_the_mean_of_each_channel() {
    let shape = PoolShape::global(Images { n_images: 1, height: 2, width: 2, n_channels: 2 });
    let forward = AvgPool2d { shape, divisor: PoolDivisor::Padded };
    assert_eq!(twin_floats(&forward, &[words(&[1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 2.0, 5.0])]), [2.0, 6.5]);
    assert_eq!(twin_floats(&AvgPool2dGrad { forward }, &[words(&[4.0, 8.0])]), [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
}

#[test]
fn gradient_equals_a_slope() {
    let mut random = Random::new(1);
    for (shape, divisor) in shapes().into_iter().flat_map(|shape| DIVISORS.map(|divisor| (shape, divisor))) {
        let forward = AvgPool2d { shape, divisor };
        let (grad_y, along) = (random.floats(shape.y().len()), random.floats(shape.x.len()));
        let grad_x = twin_floats(&AvgPool2dGrad { forward }, &[words(&grad_y)]);
        // Average pooling is linear.
        let expected = dot(&grad_y, &twin_floats(&forward, &[words(&along)]));
        assert!(GRADIENT.holds(dot(&grad_x, &along), expected), "{forward:?}: {} != {expected}", dot(&grad_x, &along));
    }
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(2);
    for (shape, divisor) in shapes().into_iter().flat_map(|shape| DIVISORS.map(|divisor| (shape, divisor))) {
        let forward = AvgPool2d { shape, divisor };
        gpu_equals_twin(&forward, &[words(&random.floats(shape.x.len()))]);
        gpu_equals_twin(&AvgPool2dGrad { forward }, &[words(&random.floats(shape.y().len()))]);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(3);
    let window = Window { kernel: [3, 3], stride: [2, 2], padding: [1, 1] };
    let forward = AvgPool2d { shape: shape([9, 30, 31, 16], window, Rounding::Up), divisor: PoolDivisor::Inside };
    same_bits_on_any_pool(&forward, &[words(&random.floats(forward.shape.x.len()))]);
    same_bits_on_any_pool(&AvgPool2dGrad { forward }, &[words(&random.floats(forward.shape.y().len()))]);
}
