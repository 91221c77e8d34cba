use brisk_kernels::*;

use crate::close::GRADIENT;
use crate::random::Random;
use crate::run::*;

pub(crate) fn shape(x: [usize; 4], window: Window, rounding: Rounding) -> PoolShape {
    let [n_images, height, width, n_channels] = x;
    PoolShape { x: Images { n_images, height, width, n_channels }, window, rounding }
}

fn window(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Window {
    Window { kernel, stride, padding }
}

/// Windows that touch, overlap, or leave pixels out; padded; reaching beyond the image; covering all of it.
pub(crate) fn shapes() -> Vec<PoolShape> {
    let mut shapes = Vec::new();
    for rounding in [Rounding::Down, Rounding::Up] {
        for (x, window) in [
            ([1, 1, 1, 1], window([1, 1], [1, 1], [0, 0])),
            ([2, 4, 6, 3], window([2, 2], [2, 2], [0, 0])),
            ([2, 7, 5, 4], window([2, 2], [2, 2], [0, 0])),
            ([1, 7, 8, 5], window([3, 3], [2, 2], [1, 1])),
            ([2, 9, 6, 2], window([3, 2], [1, 3], [0, 1])),
            ([1, 8, 8, 1], window([2, 2], [3, 5], [1, 0])),
            ([3, 5, 5, 17], window([4, 4], [4, 4], [2, 2])),
            ([2, 4, 3, 64], window([2, 2], [1, 1], [1, 1])),
        ] {
            shapes.push(shape(x, window, rounding));
        }
    }
    shapes.push(PoolShape::global(Images { n_images: 3, height: 5, width: 4, n_channels: 21 }));
    shapes
}

/// The results of the forward twin: the maxima, and their taps.
fn forward(shape: PoolShape, x: &[f32]) -> (Vec<f32>, Words) {
    let mut results = run_twin(&MaxPool2d { shape }, &[words(x)]);
    let taps = results.remove(1);
    (floats(&results[0]).to_vec(), taps)
}

#[test]
fn twin_equals_hand_worked_numbers() {
    let halves = window([2, 2], [2, 2], [0, 0]);
    let x = [1.0, 5.0, 2.0, 3.0, 4.0, 9.0, -1.0, -2.0, 7.0];
    assert_eq!(forward(shape([1, 3, 3, 1], halves, Rounding::Down), &x), (vec![5.0], vec![1]), "one window");
    let up = shape([1, 3, 3, 1], halves, Rounding::Up);
    assert_eq!(forward(up, &x), (vec![5.0, 9.0, -1.0, 7.0], vec![1, 2, 0, 0]), "windows that reach beyond the image");
    let grad_x = twin_floats(&MaxPool2dGrad { shape: up }, &[words(&[1.0, 2.0, 3.0, 4.0]), vec![1, 2, 0, 0]]);
    assert_eq!(grad_x, [0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.0, 4.0], "grad_x");
    let padded = shape([1, 3, 3, 1], window([2, 2], [2, 2], [1, 1]), Rounding::Down);
    assert_eq!(forward(padded, &x), (vec![1.0, 5.0, 3.0, 9.0], vec![3, 2, 1, 1]), "padding never wins");
}

#[test]
fn the_first_of_equal_values_wins_and_a_nan_wins_over_all_before_it() {
    let row = |x: &[f32]| {
        let shape = shape([1, 1, 4, 1], window([1, 4], [1, 1], [0, 0]), Rounding::Down);
        gpu_equals_twin(&MaxPool2d { shape }, &[words(x)]);
        let (y, taps) = forward(shape, x);
        // The same in vectors.
        let wide = PoolShape { x: Images { n_channels: 16, ..shape.x }, ..shape };
        let x: Vec<f32> = x.iter().flat_map(|x| [*x; 16]).collect();
        let (wide_y, wide_taps) = forward(wide, &x);
        assert_eq!((words(&wide_y), wide_taps), (words(&[y[0]; 16]), vec![taps[0]; 16]), "16 channels of {x:?}");
        (y[0], taps[0])
    };
    let low = f32::NEG_INFINITY;
    assert_eq!(row(&[1.0, 3.0, 3.0, 3.0]), (3.0, 1));
    assert_eq!(row(&[0.0, -0.0, 0.0, -0.0]), (0.0, 0));
    assert_eq!(row(&[low, low, low, low]), (low, 0));
    let (y, tap) = row(&[1.0, f32::NAN, 5.0, 2.0]);
    assert!(y.is_nan() && tap == 1, "{y} at {tap}");
    let (y, tap) = row(&[f32::NAN, 1.0, f32::NAN, 2.0]);
    assert!(y.is_nan() && tap == 2, "{y} at {tap}");
}

#[test]
fn a_global_pool_is_the_largest_of_each_channel() {
    let shape = PoolShape::global(Images { n_images: 1, height: 2, width: 2, n_channels: 2 });
    let (y, taps) = forward(shape, &[1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 2.0, 5.0]);
    assert_eq!((y, taps), (vec![3.0, 8.0], vec![2, 0]));
}

/// Within a region where the same taps win, pooling is linear.
#[test]
fn gradient_equals_a_finite_difference() {
    let mut random = Random::new(1);
    for shape in shapes() {
        let n = shape.x.len();
        // Values far apart, so that a step does not change the taps.
        let mut x: Vec<f32> = (0..n).map(|i| i as f32 * 0.1).collect();
        (0..n).for_each(|i| x.swap(i, random.below(n as u32) as usize));
        let (_, taps) = forward(shape, &x);
        let (grad_y, along) = (random.floats(shape.y().len()), random.floats(n));
        let grad_x = twin_floats(&MaxPool2dGrad { shape }, &[words(&grad_y), taps]);
        let expected = slope_along(&x, &along, 0.02, |x| dot(&grad_y, &forward(shape, x).0));
        assert!(GRADIENT.holds(dot(&grad_x, &along), expected), "{shape:?}: {} != {expected}", dot(&grad_x, &along));
    }
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(2);
    for shape in shapes() {
        // Whole numbers, so that there are ties.
        let x: Vec<f32> = (0..shape.x.len()).map(|_| random.below(6) as f32).collect();
        let grad_y = random.floats(shape.y().len());
        let (_, taps) = forward(shape, &x);
        gpu_equals_twin(&MaxPool2d { shape }, &[words(&x)]);
        gpu_equals_twin(&MaxPool2dGrad { shape }, &[words(&grad_y), taps]);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(3);
    let shape = shape([9, 30, 31, 16], window([3, 3], [2, 2], [1, 1]), Rounding::Up);
    let x = random.floats(shape.x.len());
    same_bits_on_any_pool(&MaxPool2d { shape }, &[words(&x)]);
    let (grad_y, taps) = (random.floats(shape.y().len()), forward(shape, &x).1);
    same_bits_on_any_pool(&MaxPool2dGrad { shape }, &[words(&grad_y), taps]);
}

#[test]
fn sizes_are_those_of_torch() {
    // torch.nn.functional.max_pool2d(torch.zeros(1, 1, *size), kernel, stride, padding, ceil_mode=True), and without.
    let along = |size, kernel, stride, padding, rounding| {
        shape([1, size, size, 1], window([kernel; 2], [stride; 2], [padding; 2]), rounding).y().height
    };
    for (size, kernel, stride, padding, down, up) in [
        (5, 2, 2, 0, 2, 3),
        (5, 2, 2, 1, 3, 3),
        (6, 3, 2, 1, 3, 4),
        (4, 2, 3, 1, 2, 2),
        (8, 2, 5, 0, 2, 2),
        (7, 3, 3, 1, 3, 3),
        (2, 2, 3, 1, 1, 1),
    ] {
        assert_eq!(along(size, kernel, stride, padding, Rounding::Down), down, "{size} {kernel} {stride} {padding}");
        assert_eq!(along(size, kernel, stride, padding, Rounding::Up), up, "{size} {kernel} {stride} {padding}, up");
    }
}

#[test]
fn padding_beyond_half_a_window_is_refused() {
    let shape = shape([1, 8, 8, 1], window([3, 2], [1, 1], [1, 2]), Rounding::Down);
    let error = MaxPool2d { shape }.check().expect_err("a window that lies in the padding");
    let expected =
        "max_pool2d: padding is 2, expected at most half of the window's length, so that no window is entirely in the padding";
    assert_eq!(error.to_string(), expected);
    assert!(MaxPool2dGrad { shape }.check().is_err(), "nor its gradient");
    let small = PoolShape { window: window([9, 2], [1, 1], [0, 0]), ..shape };
    assert!(AvgPool2d { shape: small, divisor: PoolDivisor::Padded }.check().is_err(), "a window that does not fit");
}
