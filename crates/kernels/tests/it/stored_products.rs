//! Products and convolutions over arguments in f16 and bf16, with each family that has a form for them.

use brisk_kernels::expr::Expr;
use brisk_kernels::*;

use crate::close::{Tolerance, assert_close, tolerance};
use crate::random::Random;
use crate::run::*;
use crate::samples::output_grad;

const TRANSPOSES: [Transpose; 4] = [Transpose::None, Transpose::A, Transpose::B, Transpose::Both];

/// A kernel whose adapter is declared differently from the one that it runs on.
#[derive(Debug)]
struct On {
    family: MatmulFamily,
    kernel: Box<dyn Kernel>,
}

impl Kernel for On {
    fn signature(&self) -> Signature {
        self.kernel.signature()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let adapter = adapter.clone();
        self.kernel.dispatches(&match self.family {
            MatmulFamily::Direct => {
                let features = adapter.features - wgpu::Features::SUBGROUP;
                adapter.with_features(features)
            }
            MatmulFamily::Tiled => adapter.with_kind(AdapterKind::Hardware).with_coop(None),
            _ => adapter,
        })
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.kernel.twin(args);
    }
}

/// The results of the families on a software adapter and on hardware for `kernel` stored as `dtypes`; the sums are over `n`
/// products.
#[track_caller]
fn check(random: &mut Random, kernel: impl Kernel + Clone, dtypes: &[DType], n: usize) {
    let args = kernel.args();
    let reads: Vec<_> = args.iter().zip(dtypes).filter(|(arg, _)| arg.access == Access::Read).collect();
    let given: Vec<Words> = reads
        .iter()
        .map(|&(arg, &dtype)| {
            let floats = random.floats(arg.len);
            if dtype == DType::F32 { words(&floats) } else { half_words(dtype, &floats) }
        })
        .collect();
    let rounded: Vec<Words> =
        reads.iter().zip(&given).map(|((arg, dtype), given)| words(&floats_of(**dtype, given, arg.len))).collect();
    let low = stored(kernel.clone(), dtypes).unwrap_or_else(|error| panic!("{error}"));
    let (found, expected) = (run_twin(&*low, &given), run_twin(&kernel, &rounded));
    let y = args.iter().position(|arg| arg.access == Access::Write).expect("a result");
    let close = if dtypes[y] == DType::F32 { Tolerance::of_sum(n) } else { tolerance(dtypes[y]) };
    assert_close(&format!("{low:?}"), &floats_of(dtypes[y], &found[0], args[y].len), floats(&expected[0]), close);
    for family in [MatmulFamily::Direct, MatmulFamily::Tiled] {
        let kernel = stored(kernel.clone(), dtypes).unwrap_or_else(|error| panic!("{error}"));
        gpu_equals_twin_within(&On { family, kernel }, &given, Tolerance::of_sum(n));
    }
}

#[track_caller]
fn has_form(kernel: impl Kernel, dtypes: &[DType], expected: &str) {
    let low = format!("{:?}", stored(kernel, dtypes).unwrap_or_else(|error| panic!("{error}")));
    assert!(low.starts_with(expected), "{low}, expected {expected}");
}

#[test]
fn products_equal_twin() {
    use DType::{Bf16, F16, F32};
    let mut random = Random::new(1);
    let bias = Epilogue::bias(&Activation::relu());
    let product = |transpose, m, n, k, epilogue| Matmul { n_batch: 1, m, n, k, transpose, epilogue };
    let grad = output_grad(&Activation::tanh());
    // Drivers of software adapters create pipelines slowly, so each transpose has one combination of types.
    for (product, dtypes) in [
        (product(Transpose::None, 36, 40, 20, bias.clone()), [F16, F16, F32, F16]),
        (product(Transpose::A, 4, 4, 4, bias.clone()), [Bf16, Bf16, Bf16, Bf16]),
        (product(Transpose::B, 20, 36, 8, bias), [F32, F16, F16, F32]),
        (product(Transpose::Both, 12, 20, 28, grad), [F16, Bf16, F32, F16]),
    ] {
        has_form(product.clone(), &dtypes, "Stored { kernel: Matmul");
        check(&mut random, product.clone(), &dtypes, product.k);
    }
}

/// With AMX, products of this size are computed from two parts of each number in bf16.
#[test]
fn large_products_in_f16_equal_those_in_f32() {
    use DType::F16;
    let mut random = Random::new(8);
    for transpose in TRANSPOSES {
        for [m, n, k] in [[64, 64, 64], [70, 101, 137], [97, 66, 65], [64, 96, 1500]] {
            let kernel = Matmul { n_batch: 1, m, n, k, transpose, epilogue: Epilogue::none() };
            let mut given = [m * k, k * n].map(|len| half_words(F16, &random.floats(len)));
            let low = stored(kernel.clone(), &[F16; 3]).unwrap_or_else(|error| panic!("{error}"));
            let found = |given: &[Words; 2]| floats_of(F16, &run_twin(&*low, given)[0], m * n);
            let rounded = |given: &[Words; 2]| [0, 1].map(|i| words(&floats_of(F16, &given[i], [m * k, k * n][i])));
            let expected = |given: &[Words; 2]| {
                let y = run_twin(&kernel, &rounded(given)).remove(0);
                floats_of(F16, &half_words(F16, floats(&y)), m * n)
            };
            let what = format!("{transpose:?} [{m}, {n}, {k}]");
            let check = |given: &[Words; 2]| {
                let (found, expected) = (found(given), expected(given));
                assert_close(&what, &found, &expected, tolerance(F16));
                let n_equal =
                    found.iter().zip(&expected).filter(|(found, expected)| found.to_bits() == expected.to_bits()).count();
                assert!(10 * n_equal > 9 * m * n, "{what}: only {n_equal} of {} results have the same bits", m * n);
                found
            };
            check(&given);
            let mut with_infinity = floats_of(F16, &given[0], m * k);
            with_infinity[k + 3] = f32::NEG_INFINITY;
            given[0] = half_words(F16, &with_infinity);
            assert!(check(&given).iter().any(|y| y.is_infinite()), "{what}: no infinity");
        }
    }
}

#[test]
fn gradients_of_weights_are_summed_in_f32() {
    use DType::{Bf16, F16, F32};
    let mut random = Random::new(2);
    let grad = Matmul { n_batch: 1, m: 12, n: 8, k: 520, transpose: Transpose::A, epilogue: Epilogue::none() };
    for half in [F16, Bf16] {
        has_form(grad.clone(), &[half, half, F32], "Stored { kernel: Matmul");
        has_form(grad.clone(), &[half, half, half], "Converted { kernel: Stored { kernel: Matmul");
        check(&mut random, grad.clone(), &[half, half, F32], 520);
    }
}

#[test]
fn thin_and_odd_products_equal_twin() {
    use DType::{Bf16, F16, F32};
    let mut random = Random::new(5);
    let (bias, grad) = (Epilogue::bias(&Activation::tanh()), output_grad(&Activation::relu()));
    let product = |transpose, m, n, k, epilogue| Matmul { n_batch: 1, m, n, k, transpose, epilogue };
    for (product, dtypes) in [
        // A layer with one output: forward, with and without vectors, and the gradient of its input.
        (product(Transpose::B, 131, 1, 40, bias.clone()), [F16, F16, F32, F16]),
        (product(Transpose::B, 6, 1, 39, bias.clone()), [Bf16, F32, F32, Bf16]),
        (product(Transpose::None, 67, 36, 1, grad.clone()), [F16, F16, F16, F16]),
        // Rows of three that end within a word, the last of which has padding; rows that start within a word.
        (product(Transpose::B, 7, 3, 12, bias.clone()), [F16, Bf16, F16, F16]),
        (product(Transpose::A, 5, 7, 9, grad.clone()), [Bf16, F16, Bf16, F16]),
        (product(Transpose::None, 1, 11, 5, bias.clone()), [F16, F16, Bf16, Bf16]),
        // Ten classes, and as many inputs.
        (product(Transpose::B, 19, 10, 12, bias.clone()), [F16, F16, F32, F16]),
        (product(Transpose::None, 19, 12, 10, grad.clone()), [Bf16, Bf16, F16, Bf16]),
        (product(Transpose::Both, 9, 20, 7, grad), [F16, Bf16, F16, F32]),
        (product(Transpose::B, 9, 12, 10, bias), [F16, F16, F16, F16]),
    ] {
        has_form(product.clone(), &dtypes, "Stored { kernel: Matmul");
        check(&mut random, product.clone(), &dtypes, product.k);
    }
}

#[test]
fn rows_of_many_columns_that_end_within_a_word_are_f32_first() {
    use DType::{Bf16, F16, F32};
    let mut random = Random::new(6);
    let product =
        Matmul { n_batch: 1, m: 9, n: 11, k: 10, transpose: Transpose::B, epilogue: Epilogue::bias(&Activation::relu()) };
    has_form(product.clone(), &[F16, F16, F16, F32], "Stored { kernel: Matmul");
    has_form(product.clone(), &[F16, F16, F16, F16], "Converted { kernel: Stored { kernel: Matmul");
    check(&mut random, product.clone(), &[F16, Bf16, F32, F32], 10);
    check(&mut random, product, &[Bf16, F16, Bf16, F16], 10);
}

#[test]
fn thin_gradients_of_weights_are_summed_in_runs() {
    use DType::{Bf16, F16, F32};
    let mut random = Random::new(7);
    for (m, n, transpose, dtypes) in [
        (1, 36, Transpose::A, [F16, F16, F32]),
        (1, 260, Transpose::None, [Bf16, F16, F32]),
        (10, 12, Transpose::A, [Bf16, Bf16, F32]),
        (3, 8, Transpose::A, [F16, F32, F32]),
        (1, 20, Transpose::A, [F16, F16, F16]),
    ] {
        let grad = Matmul { n_batch: 1, m, n, k: 1029, transpose, epilogue: Epilogue::none() };
        let n_scratch = grad.args().iter().filter(|arg| arg.access == Access::Scratch).count();
        assert_eq!(n_scratch, 1, "room for the runs of {grad:?}");
        check(&mut random, grad, &dtypes, 1029);
    }
}

#[test]
fn batches_equal_twin() {
    use DType::{Bf16, F16, F32};
    let mut random = Random::new(3);
    let mixtures = [[F16, F16, F16], [Bf16, F16, F32], [F32, Bf16, Bf16], [Bf16, Bf16, F16]];
    for (transpose, dtypes) in TRANSPOSES.into_iter().zip(mixtures) {
        let batch = Matmul { n_batch: 3, m: 20, n: 36, k: 12, transpose, epilogue: Epilogue::none() };
        has_form(batch.clone(), &dtypes, "Stored { kernel: Matmul");
        check(&mut random, batch.clone(), &dtypes, 12);
        let [a, b, y] = dtypes;
        let residual = Epilogue::with_matrix(Expr::input(0) + Expr::input(1));
        check(&mut random, Matmul { epilogue: residual, ..batch }, &[a, b, F16, y], 12);
        let odd = Matmul { n_batch: 3, m: 5, n: 18, k: 7, transpose, epilogue: Epilogue::none() };
        has_form(odd.clone(), &dtypes, "Stored { kernel: Matmul");
        check(&mut random, odd, &dtypes, 7);
    }
    let odd = Matmul { n_batch: 3, m: 5, n: 9, k: 7, transpose: Transpose::B, epilogue: Epilogue::none() };
    has_form(odd.clone(), &[F16, Bf16, F16], "Converted { kernel: Stored { kernel: Matmul");
    check(&mut random, odd, &[F16, Bf16, F16], 7);
}

#[test]
fn convolutions_equal_twin() {
    use DType::{Bf16, F16, F32};
    let mut random = Random::new(4);
    let shape = |[n_images, height, width, n_channels]: [usize; 4], n_out, window| {
        ConvShape::dense(Images { n_images, height, width, n_channels }, n_out, window)
    };
    for (shape, [x, weight, y]) in [
        (shape([2, 5, 6, 4], 8, Window::square(3, 1)), [F16, F16, F16]),
        (shape([1, 6, 7, 12], 4, Window { stride: [2, 1], ..Window::square(3, 1) }), [Bf16, F32, F32]),
        (shape([2, 4, 4, 8], 12, Window::square(1, 0)), [F32, Bf16, Bf16]),
    ] {
        let (n, n_pixels) = (shape.n_patch(), shape.y().n_pixels());
        let conv = Conv2d { shape, epilogue: Epilogue::bias(&Activation::relu()) };
        has_form(conv.clone(), &[x, weight, F32, y], "Stored { kernel: Conv2d");
        check(&mut random, conv, &[x, weight, F32, y], n);
        let grad_x = Conv2dGradInput { shape, epilogue: output_grad(&Activation::relu()) };
        has_form(grad_x.clone(), &[y, weight, x, x], "Stored { kernel: Conv2dGradInput");
        check(&mut random, grad_x, &[y, weight, x, x], n);
        let grad_weight = Conv2dGradWeight { shape };
        has_form(grad_weight, &[y, x, F32], "Stored { kernel: Conv2dGradWeight");
        check(&mut random, grad_weight, &[y, x, F32], n_pixels);
    }
    let grad_weight = Conv2dGradWeight { shape: shape([1, 4, 4, 4], 4, Window::square(3, 1)) };
    check(&mut random, grad_weight, &[Bf16, F32, Bf16], 16);
}

#[test]
fn convolutions_of_odd_channels_equal_twin() {
    use DType::{Bf16, F16, F32};
    let mut random = Random::new(8);
    let shape = |[n_images, height, width, n_channels]: [usize; 4], n_out, window| {
        ConvShape::dense(Images { n_images, height, width, n_channels }, n_out, window)
    };
    let strided = Window { stride: [2, 1], ..Window::square(3, 1) };
    for (shape, [x, weight, y]) in [
        // Images with three colours; then two channels per word in the backward pass as well; single pixels, a column and nine of
        // them.
        (shape([2, 5, 6, 3], 8, Window::square(3, 1)), [F16, F16, F16]),
        (shape([1, 6, 7, 6], 10, strided), [Bf16, Bf16, F16]),
        (shape([1, 5, 5, 10], 3, Window::square(2, 0)), [F32, Bf16, Bf16]),
        (shape([3, 4, 3, 6], 1, Window::square(1, 0)), [F16, F16, F16]),
        (shape([3, 4, 3, 1], 9, Window::square(1, 0)), [Bf16, F16, Bf16]),
    ] {
        let (n, n_pixels) = (shape.n_patch(), shape.y().n_pixels());
        let conv = Conv2d { shape, epilogue: Epilogue::bias(&Activation::relu()) };
        let is_whole = shape.n_out.is_multiple_of(2) || shape.n_out == 1;
        has_form(
            conv.clone(),
            &[x, weight, F32, y],
            if is_whole { "Stored { kernel: Conv2d" } else { "Converted { kernel: Stored { kernel: Conv2d" },
        );
        check(&mut random, conv.clone(), &[x, weight, F32, y], n);
        check(&mut random, conv, &[x, weight, y, F32], n);
        let grad_x = Conv2dGradInput { shape, epilogue: output_grad(&Activation::relu()) };
        check(&mut random, grad_x, &[y, weight, x, x], shape.window.n_taps() * shape.n_out);
        let grad_weight = Conv2dGradWeight { shape };
        has_form(grad_weight, &[y, x, F32], "Stored { kernel: Conv2dGradWeight");
        check(&mut random, grad_weight, &[y, x, F32], n_pixels);
    }
}
