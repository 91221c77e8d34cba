//! Convolutions with groups and dilation, and their gradients.

use brisk_kernels::expr::Expr;
use brisk_kernels::*;

use crate::close::{GRADIENT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;
use crate::samples::output_grad;

/// Stride, padding and dilation along each axis.
type Steps = [[usize; 2]; 3];

const PLAIN: Steps = [[1, 1], [0, 0], [1, 1]];

fn shape(x: [usize; 4], n_out: usize, kernel: [usize; 2], [stride, padding, dilation]: Steps, n_groups: usize) -> ConvShape {
    let [n_images, height, width, n_channels] = x;
    let x = Images { n_images, height, width, n_channels };
    ConvShape { x, n_out, window: Window { kernel, stride, padding }, dilation, n_groups }
}

/// Groups of one channel, of several and of all; dilations that are equal or different along the axes, with strides that divide
/// them or do not; even and odd channels; windows entirely in the padding.
fn shapes() -> Vec<ConvShape> {
    vec![
        shape([1, 1, 1, 1], 1, [1, 1], PLAIN, 1),
        shape([2, 4, 5, 6], 6, [3, 3], [[1, 1], [1, 1], [1, 1]], 6),
        shape([2, 4, 5, 3], 3, [3, 3], [[2, 2], [1, 1], [1, 1]], 3),
        shape([1, 4, 5, 3], 6, [2, 3], [[1, 2], [1, 0], [1, 1]], 3),
        shape([2, 5, 4, 4], 6, [3, 2], [[1, 1], [1, 1], [1, 1]], 2),
        shape([2, 5, 4, 6], 4, [1, 1], PLAIN, 2),
        shape([1, 7, 9, 3], 4, [3, 3], [[1, 1], [2, 2], [2, 2]], 1),
        shape([2, 7, 9, 3], 5, [3, 2], [[2, 3], [2, 1], [3, 2]], 1),
        shape([2, 8, 7, 4], 4, [2, 3], [[2, 2], [0, 3], [2, 3]], 4),
        shape([1, 9, 8, 6], 3, [2, 2], [[3, 2], [1, 4], [4, 2]], 3),
        shape([1, 3, 2, 4], 8, [2, 2], [[1, 1], [4, 3], [2, 1]], 2),
    ]
}

/// Calls `f(y's index, x's index, weight's index)` for each product of the convolution.
fn each_product(shape: &ConvShape, mut f: impl FnMut(usize, usize, usize)) {
    let ConvShape { x, n_out, window, dilation, n_groups } = *shape;
    let (y, n_in) = (shape.y(), x.n_channels / n_groups);
    let source = |axis: usize, at: usize, tap: usize, size: usize| {
        (at * window.stride[axis] + tap * dilation[axis]).checked_sub(window.padding[axis]).filter(|&at| at < size)
    };
    for image in 0..y.n_images {
        for (i, j) in (0..y.height).flat_map(|i| (0..y.width).map(move |j| (i, j))) {
            for (u, v) in (0..window.kernel[0]).flat_map(|u| (0..window.kernel[1]).map(move |v| (u, v))) {
                let (Some(h), Some(w)) = (source(0, i, u, x.height), source(1, j, v, x.width)) else { continue };
                for (o, c) in (0..n_out).flat_map(|o| (0..n_in).map(move |c| (o, c))) {
                    let group = o / (n_out / n_groups);
                    let y_at = ((image * y.height + i) * y.width + j) * n_out + o;
                    let x_at = ((image * x.height + h) * x.width + w) * x.n_channels + group * n_in + c;
                    f(y_at, x_at, ((o * window.kernel[0] + u) * window.kernel[1] + v) * n_in + c);
                }
            }
        }
    }
}

/// The three products by their definition, in f64: `y`, `grad_x`, `grad_weight`.
fn by_definition(shape: &ConvShape, x: &[f32], weight: &[f32], grad_y: &[f32]) -> [Vec<f32>; 3] {
    let mut sums = [vec![0.0_f64; grad_y.len()], vec![0.0; x.len()], vec![0.0; weight.len()]];
    each_product(shape, |y_at, x_at, w_at| {
        let (x, w, grad_y) = (f64::from(x[x_at]), f64::from(weight[w_at]), f64::from(grad_y[y_at]));
        sums[0][y_at] += x * w;
        sums[1][x_at] += grad_y * w;
        sums[2][w_at] += grad_y * x;
    });
    sums.map(|sums| sums.iter().map(|&sum| sum as f32).collect())
}

fn forward(shape: ConvShape) -> Conv2d {
    Conv2d { shape, epilogue: Epilogue::none() }
}

fn grad_input(shape: ConvShape) -> Conv2dGradInput {
    Conv2dGradInput { shape, epilogue: Epilogue::none() }
}

/// Random `x`, `weight` and `grad_y`.
fn given(random: &mut Random, shape: &ConvShape) -> [Vec<f32>; 3] {
    [shape.x.len(), shape.n_weights(), shape.y().len()].map(|n| random.floats(n))
}

fn tolerance(shape: &ConvShape) -> Tolerance {
    let n_group_channels = shape.x.n_channels.max(shape.n_out) / shape.n_groups;
    Tolerance::of_sum(4 * (shape.window.n_taps() * n_group_channels).max(shape.y().n_pixels()))
}

#[test]
fn twins_equal_the_definition() {
    let mut random = Random::new(1);
    // The last two have several parts of pixels.
    let large = [
        shape([5, 33, 20, 4], 4, [3, 3], [[1, 1], [1, 1], [1, 1]], 4),
        shape([4, 24, 24, 6], 8, [3, 3], [[1, 2], [2, 0], [2, 3]], 2),
    ];
    for shape in shapes().into_iter().chain(large) {
        let [x, weight, grad_y] = given(&mut random, &shape);
        let [y, grad_x, grad_weight] = by_definition(&shape, &x, &weight, &grad_y);
        let [x, weight, grad_y] = [x, weight, grad_y].map(|values| words(&values));
        let check = |what: &str, kernel: &dyn Kernel, given: &[Words], expected: &[f32]| {
            assert_close(&format!("{what} of {shape:?}"), &twin_floats(kernel, given), expected, tolerance(&shape));
        };
        check("y", &forward(shape), &[x.clone(), weight.clone()], &y);
        check("grad_x", &grad_input(shape), &[grad_y.clone(), weight], &grad_x);
        check("grad_weight", &Conv2dGradWeight { shape }, &[grad_y, x], &grad_weight);
    }
}

/// Numbers such as -5, 2 and 4, so that all sums are exact.
fn integers(n: usize, step: usize, modulus: usize) -> Words {
    let half = (modulus / 2) as f32;
    words(&(0..n).map(|i| (step * i % modulus) as f32 - half).collect::<Vec<_>>())
}

/// The values of `torch.nn.functional.conv2d` and of its gradients, in NHWC and OHWI.
#[test]
fn twins_equal_pytorch() {
    let check = |shape: ConvShape, y: &[f32], grad_x: &[f32], grad_weight: &[f32]| {
        let (x, weight) = (integers(shape.x.len(), 7, 11), integers(shape.n_weights(), 5, 7));
        let grad_y = integers(shape.y().len(), 3, 5);
        let bias = words(&(0..shape.n_out).map(|o| o as f32).collect::<Vec<_>>());
        let biased = Conv2d { shape, epilogue: Epilogue::bias(&Activation::identity()) };
        assert_eq!(twin_floats(&biased, &[x.clone(), weight.clone(), bias]), y, "y of {shape:?}");
        assert_eq!(twin_floats(&grad_input(shape), &[grad_y.clone(), weight]), grad_x, "grad_x of {shape:?}");
        let kernel = Conv2dGradWeight { shape };
        assert_eq!(twin_floats(&kernel, &[grad_y, x]), grad_weight, "grad_weight of {shape:?}");
    };
    check(
        shape([1, 3, 4, 4], 4, [2, 2], [[1, 2], [1, 0], [2, 1]], 2),
        &[
            -5.0, -17.0, 4.0, -9.0, -5.0, -18.0, 2.0, -12.0, 9.0, -29.0, 2.0, 8.0, 17.0, 6.0, 24.0, -27.0, 19.0, -14.0, -3.0,
            -16.0, 16.0, -11.0, -1.0, -15.0,
        ],
        &[
            -6.0, 4.0, -2.0, 7.0, 0.0, -4.0, -5.0, -3.0, 7.0, -2.0, 4.0, -6.0, -4.0, 8.0, -2.0, 2.0, -10.0, -1.0, -5.0, 3.0, 1.0,
            3.0, 4.0, -2.0, 6.0, -2.0, -2.0, 3.0, 4.0, 3.0, 1.0, -1.0, 6.0, 2.0, -1.0, 8.0, -2.0, -6.0, -4.0, -2.0, -1.0, -3.0,
            6.0, -4.0, -5.0, 7.0, 0.0, 4.0,
        ],
        &[
            -5.0, -5.0, -5.0, -5.0, 4.0, -14.0, 9.0, 2.0, -7.0, 7.0, 5.0, -3.0, 1.0, -14.0, -15.0, 3.0, 3.0, -15.0, -14.0, 1.0,
            -3.0, 5.0, 7.0, -7.0, 2.0, 9.0, -14.0, 4.0, -5.0, -5.0, -5.0, -5.0,
        ],
    );
    // Depthwise, with two output channels for each input channel.
    check(
        shape([1, 4, 3, 2], 4, [3, 1], [[2, 1], [2, 0], [2, 1]], 2),
        &[
            -10.0, -12.0, -8.0, -7.0, -4.0, 0.0, -11.0, -4.0, 2.0, 1.0, 19.0, 21.0, 19.0, 17.0, 6.0, 7.0, 16.0, 20.0, -6.0, 1.0,
            -9.0, -10.0, -7.0, -5.0,
        ],
        &[
            -2.0, -1.0, -7.0, -3.0, 8.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 8.0, -3.0, -7.0, -1.0, -2.0, 0.0, 0.0, 0.0, 0.0,
            0.0, 0.0,
        ],
        &[1.0, 21.0, -10.0, -7.0, -5.0, -8.0, 13.0, 7.0, -5.0, -10.0, 8.0, -1.0],
    );
}

/// A convolution is linear in its input and in its weights, so the slope of `Σ grad_y y` needs no finite step.
#[test]
fn gradients_equal_slopes() {
    let mut random = Random::new(3);
    for shape in shapes() {
        let [x, weight, grad_y] = given(&mut random, &shape);
        let y = |x: &[f32], w: &[f32]| twin_floats(&forward(shape), &[words(x), words(w)]);
        let grad_x = twin_floats(&grad_input(shape), &[words(&grad_y), words(&weight)]);
        let grad_weight = twin_floats(&Conv2dGradWeight { shape }, &[words(&grad_y), words(&x)]);
        let (along_x, along_w) = (random.floats(x.len()), random.floats(weight.len()));
        let pairs = [
            ("grad_x", dot(&grad_x, &along_x), dot(&grad_y, &y(&along_x, &weight))),
            ("grad_weight", dot(&grad_weight, &along_w), dot(&grad_y, &y(&x, &along_w))),
        ];
        for (what, found, expected) in pairs {
            assert!(GRADIENT.holds(found, expected), "{what} of {shape:?}: {found} != {expected}");
        }
    }
}

#[test]
fn the_gpu_agrees() {
    let mut random = Random::new(4);
    let act = Activation::celu(0.3);
    let residual = || Epilogue::with_matrix(act.forward.substitute(&[Expr::input(0) + Expr::input(1)]));
    let several_parts = shape([5, 20, 20, 4], 4, [3, 3], [[1, 1], [1, 1], [1, 1]], 4);
    for shape in shapes().into_iter().chain([several_parts]) {
        let [x, weight, grad_y] = given(&mut random, &shape).map(|values| words(&values));
        let bias = words(&random.floats(shape.n_out));
        let within = tolerance(&shape);
        gpu_equals_twin_within(&forward(shape), &[x.clone(), weight.clone()], within);
        let biased = Conv2d { shape, epilogue: Epilogue::bias(&act) };
        gpu_equals_twin_within(&biased, &[x.clone(), weight.clone(), bias], within);
        let added = Conv2d { shape, epilogue: residual() };
        gpu_equals_twin_within(&added, &[x.clone(), weight.clone(), grad_y.clone()], within);
        gpu_equals_twin_within(&grad_input(shape), &[grad_y.clone(), weight.clone()], within);
        let through = Conv2dGradInput { shape, epilogue: output_grad(&act) };
        gpu_equals_twin_within(&through, &[grad_y.clone(), weight, x.clone()], within);
        gpu_equals_twin_within(&Conv2dGradWeight { shape }, &[grad_y, x], within);
    }
}

#[test]
fn nan_reaches_the_windows_and_channels_that_read_it_and_no_others() {
    let shape = shape([1, 5, 5, 2], 2, [3, 3], [[1, 1], [2, 2], [2, 2]], 2);
    let mut x = vec![1.0; 50];
    x[0] = f32::NAN;
    let given = [words(&x), words(&[1.0; 18])];
    let y = twin_floats(&forward(shape), &given);
    // The first channel of the pixels 0 or 2 down and across.
    let reads = |i: usize| i.is_multiple_of(2) && [0, 2].contains(&(i / 10)) && [0, 2].contains(&(i / 2 % 5));
    assert!((0..50).all(|i| y[i].is_nan() == reads(i)), "{y:?}");
    gpu_equals_twin(&forward(shape), &given);
}

#[test]
fn groups_and_dilations_that_mean_nothing_are_refused() {
    let refuses = |shape: ConvShape, message: &str| {
        let kernels: [(&dyn Kernel, &str); 3] = [
            (&forward(shape), "conv2d"),
            (&grad_input(shape), "conv2d_grad_input"),
            (&Conv2dGradWeight { shape }, "conv2d_grad_weight"),
        ];
        for (kernel, name) in kernels {
            let error = kernel.check().expect_err("it means nothing").to_string();
            assert_eq!(error, format!("{name}: {message}"));
        }
    };
    let valid = shape([1, 5, 5, 6], 4, [3, 3], PLAIN, 2);
    refuses(ConvShape { n_groups: 4, ..valid }, "n_channels is 6, expected a multiple of n_groups");
    refuses(ConvShape { n_groups: 3, ..valid }, "n_out is 4, expected a multiple of n_groups");
    refuses(ConvShape { n_groups: 0, ..valid }, "n_groups is 0, expected at least 1; 1 for a convolution without groups");
    refuses(ConvShape { dilation: [1, 0], ..valid }, "dilation is 0, expected 1 to 2^29; 1 for windows without gaps");
    refuses(
        ConvShape { dilation: [3, 1], ..valid },
        "height is 5, expected at least the window's, padding included; pad more or take a smaller window",
    );
    let huge = ConvShape { dilation: [usize::MAX / 4; 2], ..valid };
    assert!(matches!(forward(huge).check(), Err(Error::Size { size: "dilation", .. })));
    let huge = ConvShape { n_out: usize::MAX - 1, ..valid };
    assert!(matches!(forward(huge).check(), Err(Error::Size { .. })));
}
