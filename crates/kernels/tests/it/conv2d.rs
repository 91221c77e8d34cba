use brisk_kernels::expr::Expr;
use brisk_kernels::*;

use crate::close::{GRADIENT, Tolerance, assert_close};
use crate::gpu::gpu;
use crate::random::Random;
use crate::run::*;
use crate::samples::output_grad;

fn shape(x: [usize; 4], n_out: usize, window: Window) -> ConvShape {
    let [n_images, height, width, n_channels] = x;
    ConvShape::dense(Images { n_images, height, width, n_channels }, n_out, window)
}

fn window(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2]) -> Window {
    Window { kernel, stride, padding }
}

/// Kernels, strides and paddings that are equal or different along the axes; strides larger than the kernel, windows entirely in
/// the padding, a single pixel.
fn shapes() -> Vec<ConvShape> {
    vec![
        shape([1, 1, 1, 1], 1, Window::square(1, 0)),
        shape([2, 5, 7, 3], 4, Window::square(1, 0)),
        shape([1, 1, 1, 1], 1, Window::square(3, 1)),
        shape([2, 5, 7, 3], 4, Window::square(3, 1)),
        shape([1, 4, 4, 4], 8, Window::square(3, 0)),
        shape([3, 8, 6, 8], 12, window([3, 3], [2, 2], [1, 1])),
        shape([2, 9, 7, 5], 3, window([5, 2], [3, 2], [2, 0])),
        shape([2, 9, 11, 2], 3, window([2, 2], [3, 4], [0, 0])),
        shape([1, 6, 5, 4], 4, window([1, 3], [1, 1], [0, 2])),
        shape([1, 3, 4, 2], 2, window([2, 3], [2, 1], [3, 4])),
        shape([2, 7, 7, 1], 17, window([7, 7], [1, 1], [0, 0])),
        shape([1, 2, 2, 3], 2, window([2, 2], [5, 3], [0, 0])),
        shape([1, 8, 8, 3], 5, window([1, 1], [2, 2], [0, 0])),
        shape([5, 4, 4, 4], 4, window([4, 4], [4, 4], [0, 0])),
    ]
}

/// Calls `f(y's index, x's index, weight's index)` for each product of the convolution.
fn each_product(shape: &ConvShape, mut f: impl FnMut(usize, usize, usize)) {
    let (x, y, window) = (shape.x, shape.y(), shape.window);
    let source = |axis: usize, at: usize, tap: usize, size: usize| {
        (at * window.stride[axis] + tap).checked_sub(window.padding[axis]).filter(|&at| at < size)
    };
    for image in 0..y.n_images {
        for (i, j) in (0..y.height).flat_map(|i| (0..y.width).map(move |j| (i, j))) {
            for (u, v) in (0..window.kernel[0]).flat_map(|u| (0..window.kernel[1]).map(move |v| (u, v))) {
                let (Some(h), Some(w)) = (source(0, i, u, x.height), source(1, j, v, x.width)) else { continue };
                for (o, c) in (0..shape.n_out).flat_map(|o| (0..x.n_channels).map(move |c| (o, c))) {
                    let y_at = ((image * y.height + i) * y.width + j) * shape.n_out + o;
                    let x_at = ((image * x.height + h) * x.width + w) * x.n_channels + c;
                    f(y_at, x_at, ((o * window.kernel[0] + u) * window.kernel[1] + v) * x.n_channels + c);
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

struct Given {
    x: Vec<f32>,
    weight: Vec<f32>,
    grad_y: Vec<f32>,
    bias: Vec<f32>,
}

fn given(random: &mut Random, shape: &ConvShape) -> Given {
    Given {
        x: random.floats(shape.x.len()),
        weight: random.floats(shape.n_weights()),
        grad_y: random.floats(shape.y().len()),
        bias: random.floats(shape.n_out),
    }
}

#[test]
fn twin_equals_hand_worked_numbers() {
    // One channel, and a kernel that computes the difference of the right and the left neighbour.
    let shape = shape([1, 2, 3, 1], 1, window([1, 3], [1, 1], [0, 1]));
    let (x, weight) = (words(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), words(&[-1.0, 0.0, 1.0]));
    let conv = Conv2d { shape, epilogue: Epilogue::none() };
    assert_eq!(twin_floats(&conv, &[x.clone(), weight.clone()]), [2.0, 3.0, -2.0, 16.0, 24.0, -16.0], "y");
    let relu = Conv2d { shape, epilogue: Epilogue::bias(&Activation::relu()) };
    assert_eq!(twin_floats(&relu, &[x.clone(), weight.clone(), words(&[1.0])]), [3.0, 4.0, 0.0, 17.0, 25.0, 0.0], "relu(y + 1)");
    let grad_y = words(&[1.0, 10.0, 100.0, 0.0, 0.0, 1000.0]);
    let grad_x = Conv2dGradInput { shape, epilogue: Epilogue::none() };
    assert_eq!(twin_floats(&grad_x, &[grad_y.clone(), weight]), [-10.0, -99.0, 10.0, 0.0, -1000.0, 0.0], "grad_x");
    let grad_weight = twin_floats(&Conv2dGradWeight { shape }, &[grad_y, x]);
    assert_eq!(grad_weight, [10.0 + 200.0 + 16000.0, 1.0 + 20.0 + 400.0 + 32000.0, 2.0 + 40.0], "grad_weight");
}

#[test]
fn twins_equal_the_definition() {
    let mut random = Random::new(1);
    for shape in shapes() {
        let Given { x, weight, grad_y, .. } = given(&mut random, &shape);
        let [y, grad_x, grad_weight] = by_definition(&shape, &x, &weight, &grad_y);
        let (x, weight, grad_y) = (words(&x), words(&weight), words(&grad_y));
        let tolerance = Tolerance::of_sum(shape.n_patch().max(shape.y().n_pixels()));
        let check = |what: &str, kernel: &dyn Kernel, given: &[Words], expected: &[f32]| {
            assert_close(&format!("{what} of {shape:?}"), &twin_floats(kernel, given), expected, tolerance);
        };
        check("y", &Conv2d { shape, epilogue: Epilogue::none() }, &[x.clone(), weight.clone()], &y);
        check("grad_x", &Conv2dGradInput { shape, epilogue: Epilogue::none() }, &[grad_y.clone(), weight], &grad_x);
        check("grad_weight", &Conv2dGradWeight { shape }, &[grad_y, x], &grad_weight);
    }
}

/// Patches made in several steps, tasks that end within an image, sums of several parts in several blocks of taps.
#[test]
fn twins_equal_the_definition_where_work_is_cut() {
    let mut random = Random::new(2);
    for shape in [
        shape([3, 40, 33, 2], 5, window([3, 3], [2, 1], [1, 1])),
        shape([9, 11, 13, 16], 40, Window::square(5, 2)),
        // Lines that are multiplied in place: padded, not padded, with a stride, with rows of taps beyond the image.
        shape([3, 7, 20, 24], 9, Window::square(3, 1)),
        shape([2, 5, 19, 32], 16, Window::square(3, 0)),
        shape([2, 9, 40, 40], 5, window([3, 2], [2, 2], [2, 1])),
        shape([2, 3, 17, 16], 16, window([6, 5], [1, 1], [5, 2])),
        shape([1, 3, 700, 8], 3, window([3, 60], [1, 1], [1, 30])),
        shape([2, 6, 6, 160], 130, Window::square(3, 1)),
    ] {
        let Given { x, weight, grad_y, .. } = given(&mut random, &shape);
        let [y, grad_x, grad_weight] = by_definition(&shape, &x, &weight, &grad_y);
        let (x, weight, grad_y) = (words(&x), words(&weight), words(&grad_y));
        let of_sum = |n| Tolerance::of_sum(4 * n);
        let found = twin_floats(&Conv2d { shape, epilogue: Epilogue::none() }, &[x.clone(), weight.clone()]);
        assert_close(&format!("y of {shape:?}"), &found, &y, of_sum(shape.n_patch()));
        let found = twin_floats(&Conv2dGradInput { shape, epilogue: Epilogue::none() }, &[grad_y.clone(), weight]);
        assert_close(&format!("grad_x of {shape:?}"), &found, &grad_x, of_sum(shape.window.n_taps() * shape.n_out));
        let found = twin_floats(&Conv2dGradWeight { shape }, &[grad_y, x]);
        assert_close(&format!("grad_weight of {shape:?}"), &found, &grad_weight, of_sum(shape.y().n_pixels()));
    }
}

/// A convolution is linear in its input and in its weights, so the slope of `Σ grad_y y` can be computed without a finite step.
#[test]
fn gradients_equal_slopes() {
    let mut random = Random::new(3);
    for shape in shapes() {
        let Given { x, weight, grad_y, .. } = given(&mut random, &shape);
        let y = |x: &[f32], w: &[f32]| twin_floats(&Conv2d { shape, epilogue: Epilogue::none() }, &[words(x), words(w)]);
        let grad_x = twin_floats(&Conv2dGradInput { shape, epilogue: Epilogue::none() }, &[words(&grad_y), words(&weight)]);
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
fn epilogues_are_those_of_a_product() {
    let mut random = Random::new(4);
    for shape in [shape([2, 5, 7, 3], 4, Window::square(3, 1)), shape([2, 5, 7, 3], 4, Window::square(1, 0))] {
        let Given { x, weight, grad_y, bias } = given(&mut random, &shape);
        let (x, weight, grad_y, bias) = (words(&x), words(&weight), words(&grad_y), words(&bias));
        let bare = twin_floats(&Conv2d { shape, epilogue: Epilogue::none() }, &[x.clone(), weight.clone()]);
        let biased: Vec<f32> = bare.iter().enumerate().map(|(i, y)| y + floats(&bias)[i % shape.n_out]).collect();
        let act = Activation::celu(0.5);
        let activated = |z: &[f32]| twin_floats(&Map::flat(z.len(), act.forward.clone()), &[words(z)]);
        let found = twin_floats(&Conv2d { shape, epilogue: Epilogue::bias(&act) }, &[x.clone(), weight.clone(), bias]);
        assert_close("act(y + bias)", &found, &activated(&biased), Tolerance::of_sum(shape.n_patch()));
        let found = twin_floats(&Conv2d { shape, epilogue: Epilogue::activation(&act) }, &[x.clone(), weight.clone()]);
        assert_close("act(y)", &found, &activated(&bare), Tolerance::of_sum(shape.n_patch()));

        let grad_x = twin_floats(&Conv2dGradInput { shape, epilogue: Epilogue::none() }, &[grad_y.clone(), weight.clone()]);
        let through = Map::flat(grad_x.len(), act.grad_from_output().expect("it follows from the output"));
        let through = twin_floats(&through, &[words(&grad_x), x.clone()]);
        let found = twin_floats(&Conv2dGradInput { shape, epilogue: output_grad(&act) }, &[grad_y, weight, x]);
        assert_close("grad_x act'", &found, &through, Tolerance::of_sum(shape.n_patch()));
    }
}

#[test]
fn nan_reaches_the_windows_that_cover_it_and_no_others() {
    let shape = shape([1, 4, 4, 1], 1, Window::square(3, 1));
    let mut x = vec![1.0; 16];
    x[0] = f32::NAN;
    for kernel in
        [&Conv2d { shape, epilogue: Epilogue::none() } as &dyn Kernel, &Conv2dGradInput { shape, epilogue: Epilogue::none() }]
    {
        let given = [words(&x), words(&[1.0; 9])];
        let y = twin_floats(kernel, &given);
        let covered = [0, 1, 4, 5];
        assert!((0..16).all(|i| y[i].is_nan() == covered.contains(&i)), "{kernel:?}: {y:?}");
        gpu_equals_twin(kernel, &given);
    }
}

#[test]
fn nan_passes_through_saturating_epilogues_of_each_family() {
    for family in [MatmulFamily::Direct, MatmulFamily::Tiled] {
        // With invocations of one column, and of vectors.
        for shape in [shape([1, 4, 4, 1], 1, Window::square(3, 1)), shape([1, 4, 4, 4], 4, Window::square(3, 1))] {
            let mut x = vec![1.0; shape.x.len()];
            x[0] = f32::NAN;
            for act in [Activation::sigmoid(), Activation::tanh()] {
                let kernel = By(family, Conv2d { shape, epilogue: Epilogue::activation(&act) }, Conv2d::dispatches_by);
                gpu_equals_twin(&kernel, &[words(&x), words(&vec![0.1; shape.n_weights()])]);
            }
        }
    }
}

/// A convolution or a gradient with one family of dispatches, whatever the adapter.
#[derive(Debug)]
struct By<K>(MatmulFamily, K, fn(&K, MatmulFamily, &Adapter) -> Result<Vec<Dispatch>, Error>);

impl<K: Kernel> Kernel for By<K> {
    fn signature(&self) -> Signature {
        self.1.signature()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        (self.2)(&self.1, self.0, adapter)
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.1.twin(args);
    }
}

fn check_gpu(random: &mut Random, family: MatmulFamily, shape: ConvShape, act: Activation) {
    if gpu().is_none() {
        return;
    }
    let Given { x, weight, grad_y, bias } = given(random, &shape);
    let (x, weight, grad_y, bias) = (words(&x), words(&weight), words(&grad_y), words(&bias));
    let tolerance = Tolerance::of_sum(shape.n_patch().max(shape.y().n_pixels()));
    // A residual that is added before the activation.
    let residual = Epilogue::with_matrix(act.forward.substitute(&[Expr::input(0) + Expr::input(1)]));
    for epilogue in [Epilogue::none(), Epilogue::bias(&act), residual] {
        let mut given = vec![x.clone(), weight.clone()];
        given.extend(
            epilogue.operand().map(|operand| if operand == EpilogueOperand::Row { bias.clone() } else { grad_y.clone() }),
        );
        let kernel = By(family, Conv2d { shape, epilogue }, Conv2d::dispatches_by);
        gpu_equals_twin_within(&kernel, &given, tolerance);
    }
    for epilogue in [Epilogue::none(), output_grad(&act)] {
        let mut given = vec![grad_y.clone(), weight.clone()];
        given.extend((epilogue != Epilogue::none()).then(|| x.clone()));
        let kernel = By(family, Conv2dGradInput { shape, epilogue }, Conv2dGradInput::dispatches_by);
        gpu_equals_twin_within(&kernel, &given, tolerance);
    }
    let kernel = By(family, Conv2dGradWeight { shape }, Conv2dGradWeight::dispatches_by);
    gpu_equals_twin_within(&kernel, &[grad_y, x], tolerance);
}

#[test]
fn direct_equals_twin() {
    let mut random = Random::new(5);
    for shape in shapes() {
        check_gpu(&mut random, MatmulFamily::Direct, shape, Activation::relu());
    }
    for act in [Activation::celu(0.3), Activation::tanh(), Activation::sigmoid()] {
        check_gpu(&mut random, MatmulFamily::Direct, shape([1, 3, 3, 2], 3, Window::square(3, 1)), act);
    }
    // More columns than a workgroup has, and not a multiple of its invocations.
    for n_out in [4, 60, 64, 68, 132] {
        check_gpu(&mut random, MatmulFamily::Direct, shape([2, 5, 5, 4], n_out, Window::square(3, 1)), Activation::relu());
    }
    for n_out in [15, 17, 33] {
        check_gpu(&mut random, MatmulFamily::Direct, shape([2, 5, 5, 3], n_out, Window::square(3, 1)), Activation::relu());
    }
}

/// Several parts of the pixels for the gradient of the weights.
#[test]
fn direct_equals_twin_at_the_size_of_a_layer() {
    let mut random = Random::new(6);
    check_gpu(&mut random, MatmulFamily::Direct, shape([5, 20, 20, 8], 16, Window::square(3, 1)), Activation::relu());
    check_gpu(&mut random, MatmulFamily::Direct, shape([4, 24, 24, 3], 10, window([3, 3], [2, 2], [1, 1])), Activation::relu());
}

/// Barriers are extremely slow on a software adapter, so there are few and small cases.
#[test]
fn tiled_equals_twin() {
    let mut random = Random::new(7);
    for shape in [
        shape([2, 5, 7, 3], 4, Window::square(3, 1)),
        shape([3, 6, 6, 8], 66, window([3, 3], [2, 2], [1, 1])),
        shape([1, 3, 4, 2], 2, window([2, 3], [2, 1], [3, 4])),
        shape([1, 2, 2, 3], 2, window([2, 2], [5, 3], [0, 0])),
        shape([2, 9, 11, 5], 3, window([2, 2], [3, 4], [0, 0])),
        shape([4, 12, 12, 3], 5, Window::square(3, 1)),
    ] {
        check_gpu(&mut random, MatmulFamily::Tiled, shape, Activation::tanh());
    }
}

/// Tiles of every size: a tap that ends within a depth, the phases of a stride, several parts of the pixels.
#[test]
fn tiles_of_every_size_equal_twin() {
    let mut random = Random::new(9);
    let other = Tiles { invocations: [8, 16], blocks: [1, 2], depth: 8 };
    for tiles in [Tiles::SMALL, Tiles::MEDIUM, Tiles::LARGE, other] {
        check_gpu(&mut random, MatmulFamily::TiledBy(tiles), shape([2, 5, 7, 4], 8, Window::square(3, 1)), Activation::relu());
    }
    for shape in [
        shape([2, 6, 6, 12], 36, window([3, 2], [2, 2], [1, 1])),
        shape([1, 9, 11, 20], 4, window([2, 2], [3, 4], [0, 0])),
        shape([4, 12, 12, 8], 4, Window::square(3, 1)),
        // Windows of one pixel are plain products; with two parts of the pixels, or of the channels.
        shape([3, 15, 12, 8], 4, Window::square(1, 0)),
        shape([1, 3, 2, 520], 4, Window::square(1, 0)),
    ] {
        check_gpu(&mut random, MatmulFamily::TiledBy(Tiles::SMALL), shape, Activation::relu());
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(8);
    for shape in [
        shape([8, 32, 32, 16], 32, Window::square(3, 1)),
        shape([3, 33, 31, 8], 8, window([3, 5], [2, 3], [1, 2])),
        shape([64, 4, 4, 64], 64, Window::square(3, 1)),
    ] {
        let Given { x, weight, grad_y, bias } = given(&mut random, &shape);
        let (x, weight, grad_y, bias) = (words(&x), words(&weight), words(&grad_y), words(&bias));
        same_bits_on_any_pool(
            &Conv2d { shape, epilogue: Epilogue::bias(&Activation::relu()) },
            &[x.clone(), weight.clone(), bias],
        );
        same_bits_on_any_pool(&Conv2dGradInput { shape, epilogue: Epilogue::none() }, &[grad_y.clone(), weight]);
        same_bits_on_any_pool(&Conv2dGradWeight { shape }, &[grad_y, x]);
    }
}

#[test]
fn windows_that_do_not_fit_are_refused() {
    #[track_caller]
    fn refuses(kernel: impl Kernel, expected: &str) {
        let error = kernel.check().expect_err("a shape that makes no sense");
        assert_eq!(error.to_string(), expected, "{kernel:?}");
    }
    let none = Epilogue::none();
    let conv = |x, n_out, window| Conv2d { shape: shape(x, n_out, window), epilogue: none.clone() };
    let too_small = "expected at least the window's, padding included; pad more or take a smaller window";
    refuses(conv([1, 4, 2, 1], 1, Window::square(3, 0)), &format!("conv2d: width is 2, {too_small}"));
    refuses(conv([1, 1, 9, 1], 1, window([4, 1], [1, 1], [1, 0])), &format!("conv2d: height is 1, {too_small}"));
    refuses(conv([1, 4, 4, 1], 1, window([3, 3], [1, 0], [1, 1])), "conv2d: stride is 0, expected 1 to 2^29");
    refuses(conv([1, 4, 4, 1], 1, window([0, 3], [1, 1], [1, 1])), "conv2d: kernel is 0, expected 1 to 2^29");
    refuses(conv([0, 4, 4, 1], 1, Window::square(3, 1)), "conv2d: n_images is 0, expected 1 to 2^32 - 1");
    refuses(conv([1, 4, 4, 1], 0, Window::square(3, 1)), "conv2d: n_out is 0, expected 1 to 2^32 - 1");
    let huge = shape([usize::MAX, 1 << 20, 1 << 20, usize::MAX], 1, Window::square(3, 1));
    refuses(Conv2dGradWeight { shape: huge }, &format!("conv2d_grad_weight: n_images is {}, expected 1 to 2^32 - 1", usize::MAX));
    let many = shape([1 << 12, 1 << 12, 1 << 12, 1], 1, Window::square(3, 1));
    refuses(
        Conv2dGradInput { shape: many, epilogue: none.clone() },
        "conv2d_grad_input: pixels of x is 68719476736, expected 1 to 2^32 - 1",
    );
    refuses(
        Conv2d { epilogue: Epilogue::map(Expr::input(1)), ..conv([1, 4, 4, 1], 1, Window::square(3, 1)) },
        "conv2d: the epilogue `x1` (number of inputs: 1) is not supported, expected an expression of the sum, x0, and of all further inputs",
    );
}
