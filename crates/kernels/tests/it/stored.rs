//! Kernels whose arguments are stored in f16 or bf16.

use brisk_kernels::*;

use crate::close::{DEFAULT, Tolerance, assert_close, tolerance};
use crate::random::Random;
use crate::run::*;
use crate::samples::output_grad;

const HALVES: [DType; 2] = [DType::F16, DType::Bf16];

/// Checks that the twin of `kernel` stored as `dtypes` gives the same as that of `kernel` for the same numbers, up to the
/// rounding of the results, and that the GPU agrees. `given` are f32 for every argument that is read, or the bits of its
/// integers.
#[track_caller]
fn stored_equals_f32(kernel: impl Kernel + Clone, dtypes: &[DType], given: &[Vec<f32>]) {
    stored_equals_f32_within(kernel, dtypes, given, DEFAULT);
}

/// The same, with a different tolerance for f32.
#[track_caller]
fn stored_equals_f32_within(kernel: impl Kernel + Clone, dtypes: &[DType], given: &[Vec<f32>], f32_tolerance: Tolerance) {
    let low = stored(kernel.clone(), dtypes).unwrap_or_else(|error| panic!("{error}"));
    let args = kernel.args();
    let reads = args.iter().zip(dtypes).filter(|(arg, _)| matches!(arg.access, Access::Read | Access::ReadWrite));
    let packed: Vec<Words> = reads
        .zip(given)
        .map(|((_, &dtype), floats)| if dtype.is_half() { half_words(dtype, floats) } else { words(floats) })
        .collect();
    // The numbers after they have been stored.
    let reads = args.iter().zip(dtypes).filter(|(arg, _)| matches!(arg.access, Access::Read | Access::ReadWrite));
    let rounded: Vec<Words> =
        reads.zip(&packed).map(|((arg, &dtype), packed)| words(&floats_of(dtype, packed, arg.len))).collect();
    let (found, expected) = (run_twin(&*low, &packed), run_twin(&kernel, &rounded));
    let results = args.iter().zip(dtypes).filter(|(arg, _)| matches!(arg.access, Access::Write | Access::ReadWrite));
    for (((arg, &dtype), found), expected) in results.zip(&found).zip(&expected) {
        let what = format!("{low:?}: {}", arg.name);
        if !dtype.is_float() {
            assert_eq!(found, expected, "{what}");
            continue;
        }
        let allowed = if dtype == DType::F32 { f32_tolerance } else { tolerance(dtype) };
        assert_close(&what, &floats_of(dtype, found, arg.len), floats(expected), allowed);
    }
    gpu_equals_twin_within(&*low, &packed, f32_tolerance);
}

/// Around invocations and workgroups that process one element and two.
const LENGTHS: [usize; 10] = [1, 2, 63, 64, 65, 127, 128, 129, 1001, 20_002];

/// Whether a kernel has a specialised form for the types, or at least for some of them.
#[track_caller]
fn has_form(kernel: impl Kernel, dtypes: &[DType], expected: &str) {
    let low = format!("{:?}", stored(kernel, dtypes).unwrap_or_else(|error| panic!("{error}")));
    assert!(low.starts_with(expected), "{low}, expected {expected}");
}

#[test]
fn casts_around_a_kernel_are_seen_by_nobody() {
    let mut random = Random::new(1);
    for half in HALVES {
        for (n, n_cols) in [(1, 1), (2, 3), (63, 5), (9, 65)] {
            let softmax = Softmax { n_rows: n, n_cols, form: SoftmaxForm::Probability };
            has_form(softmax, &[half, half], "Converted { kernel: Softmax");
            stored_equals_f32(softmax, &[half, half], &[random.floats(n * n_cols)]);
            stored_equals_f32(softmax, &[half, DType::F32], &[random.floats(n * n_cols)]);
            stored_equals_f32(softmax, &[DType::F32, half], &[random.floats(n * n_cols)]);
        }
    }
}

#[test]
fn elementwise_kernels_have_a_form() {
    let mut random = Random::new(4);
    for half in HALVES {
        for n in LENGTHS {
            let given = [random.floats(n), random.floats(n)];
            has_form(Map::binary(n, |a, b| a + b), &[half; 3], "Map {");
            stored_equals_f32(Map::binary(n, |a, b| a + b), &[half; 3], &given);
            stored_equals_f32(Map::binary(n, |a, b| a * b), &[DType::F16, DType::Bf16, half], &given);
        }
        let n = 130;
        let given = [random.floats(n), random.floats(n)];
        for dtypes in [[half, DType::F32, DType::F32], [DType::F32, half, half], [DType::F32, DType::F32, half]] {
            stored_equals_f32(Map::binary(n, |a, b| a + b), &dtypes, &given);
        }
        let shapes = [Activation::celu(0.5), Activation::relu(), Activation::sigmoid(), Activation::tanh()];
        for activation in shapes.into_iter().chain([Activation::gelu(), Activation::gelu_tanh(), Activation::silu()]) {
            stored_equals_f32(Map::flat(n, activation.forward.clone()), &[half; 2], &given[..1]);
            stored_equals_f32(Map::flat(n, activation.grad()), &[half; 3], &given);
            if let Some(grad) = activation.grad_from_output() {
                stored_equals_f32(Map::flat(n, grad), &[half; 3], &given);
            }
        }
    }
}

#[test]
fn dropout_has_a_form_and_keeps_the_same() {
    let mut random = Random::new(6);
    for half in HALVES {
        for n in LENGTHS.into_iter().chain([3, 5, 6, 255, 257]) {
            let dropout = Map::dropout(n, 0.4, Draws { seed: 77, stream: 2, ..Draws::default() });
            let x = random.floats(n);
            let low = stored(dropout.clone(), &[half, DType::U32, half]).expect("f16 or bf16 for f32");
            let packed = [half_words(half, &x), vec![0, 9, 0, 0]];
            let rounded = words(&floats_of(half, &packed[0], n));
            let expected = twin_floats(&dropout, &[rounded, packed[1].clone()]);
            let found = floats_of(half, &run_twin(&*low, &packed)[0], n);
            assert_close(&format!("{low:?}"), &found, &expected, tolerance(half));
            gpu_equals_twin(&*low, &packed);
        }
    }
}

#[test]
fn sums_have_a_form_and_are_kept_in_f32() {
    let mut random = Random::new(7);
    for half in HALVES {
        for (n_rows, n_cols) in [(1, 1), (63, 3), (64, 64), (65, 65), (129, 7), (1001, 33)] {
            let sum = MapReduce::of(Reducer::Sum, &[n_rows, n_cols], &[0]);
            has_form(sum.clone(), &[half, DType::F32], "MapReduce");
            // The result is also in 16 bits, by a cast after the kernel.
            has_form(sum.clone(), &[half, half], "Converted { kernel: MapReduce");
            let x = [random.floats(n_rows * n_cols).iter().map(|v| 0.1 * v).collect()];
            stored_equals_f32_within(sum.clone(), &[half, DType::F32], &x, Tolerance::of_sum(n_rows));
            stored_equals_f32_within(sum, &[half, half], &x, Tolerance::of_sum(n_rows));
        }
        let ops = [Reducer::Sum, Reducer::Mean, Reducer::Max, Reducer::Min, Reducer::Norm, Reducer::NonFinite];
        for op in ops {
            for (n_outer, n, n_inner) in [(1, 1, 1), (3, 65, 1), (2, 70, 5), (1, 5000, 1)] {
                let reduce = MapReduce::of(op, &[n_outer, n, n_inner], &[1]);
                has_form(reduce.clone(), &[half, DType::F32], "MapReduce");
                let x = random.floats(n_outer * n * n_inner);
                stored_equals_f32_within(reduce, &[half, DType::F32], &[x], Tolerance::of_sum(n));
            }
        }
    }
}

#[test]
fn what_overflows_in_f16_is_seen() {
    let x = [half_words(DType::F16, &[1.0, 70_000.0, 2.0])];
    let flag = stored(MapReduce::of(Reducer::NonFinite, &[3], &[0]), &[DType::F16, DType::F32]).expect("f16 for f32");
    assert_eq!(twin_floats(&*flag, &x), [1.0], "an infinity among them");
    gpu_equals_twin(&*flag, &x);
}

/// A side of one, odd sizes, multiple tiles, bands and panels, on either executor.
const PRODUCTS: [(usize, usize, usize); 9] =
    [(1, 1, 1), (5, 7, 9), (16, 32, 8), (33, 31, 17), (1, 40, 65), (40, 1, 65), (65, 33, 1), (1, 1, 300), (64, 48, 32)];

#[test]
fn products_have_a_form() {
    let mut random = Random::new(2);
    let epilogues = [
        Epilogue::none(),
        Epilogue::activation(&Activation::tanh()),
        Epilogue::bias(&Activation::relu()),
        output_grad(&Activation::sigmoid()),
    ];
    for (m, n, k) in PRODUCTS {
        for (transpose, epilogue) in
            [Transpose::None, Transpose::A, Transpose::B, Transpose::Both].into_iter().zip(epilogues.clone())
        {
            let product = Matmul { n_batch: 1, m, n, k, transpose, epilogue };
            let (a, b) = (random.floats(m * k), random.floats(k * n));
            let (given, n_args) = match product.epilogue.operand() {
                None => (vec![a, b], 3),
                Some(EpilogueOperand::Row) => (vec![a, b, random.floats(n)], 4),
                Some(_) => (vec![a, b, random.floats(m * n)], 4),
            };
            for half in HALVES {
                stored_equals_f32_within(product.clone(), &vec![half; n_args], &given, Tolerance::of_sum(k));
                let mut dtypes = vec![half; n_args];
                dtypes[2..].fill(DType::F32);
                stored_equals_f32_within(product.clone(), &dtypes, &given, Tolerance::of_sum(k));
            }
        }
    }
}

/// Only the twin, if the GPU would take too long: several bands, panels and tiles.
#[test]
fn large_products_have_a_form_on_the_cpu() {
    let mut random = Random::new(8);
    for (m, n, k, transpose) in [(700, 70, 300, Transpose::B), (65, 70, 5000, Transpose::A), (300, 40, 90, Transpose::None)] {
        for half in HALVES {
            for y in [DType::F32, half] {
                let product = Matmul { n_batch: 1, m, n, k, transpose, epilogue: Epilogue::activation(&Activation::relu()) };
                let low = stored(product.clone(), &[half, half, y]).expect("16 bits for f32");
                let given = [random.floats(m * k), random.floats(k * n)];
                let packed = [half_words(half, &given[0]), half_words(half, &given[1])];
                let rounded = [words(&floats_of(half, &packed[0], m * k)), words(&floats_of(half, &packed[1], k * n))];
                let found = floats_of(y, &run_twin(&*low, &packed)[0], m * n);
                let allowed = if y == DType::F32 { Tolerance::of_sum(k) } else { tolerance(y) };
                assert_close(&format!("{low:?}"), &found, &twin_floats(&product, &rounded), allowed);
                same_bits_on_any_pool(&*low, &packed);
            }
        }
    }
}

#[test]
fn products_of_pairs_have_a_form() {
    let mut random = Random::new(9);
    for half in HALVES {
        for transpose in [Transpose::None, Transpose::A, Transpose::B, Transpose::Both] {
            let (n_batch, m, n, k) = (3, 5, 9, 7);
            let products = Matmul { n_batch, m, n, k, transpose, epilogue: Epilogue::none() };
            let given = [random.floats(n_batch * m * k), random.floats(n_batch * k * n)];
            stored_equals_f32(products.clone(), &[half; 3], &given);
            stored_equals_f32(products.clone(), &[half, half, DType::F32], &given);
            stored_equals_f32(products, &[half, DType::F32, half], &given);
        }
    }
}

#[test]
fn convolutions_have_a_form() {
    let mut random = Random::new(10);
    let images = |height, width, n_channels| Images { n_images: 2, height, width, n_channels };
    let window = |kernel, stride, padding| Window { stride: [stride; 2], ..Window::square(kernel, padding) };
    let shapes = [
        // Patches, strides, a product of pixels, and lines that are multiplied in place.
        ConvShape::dense(images(5, 6, 3), 5, window(3, 1, 1)),
        ConvShape::dense(images(7, 6, 4), 3, window(3, 2, 1)),
        ConvShape::dense(images(4, 3, 5), 6, window(1, 1, 0)),
        ConvShape::dense(images(4, 20, 24), 4, window(3, 1, 0)),
    ];
    for shape in shapes {
        let [x, weight, y] = [shape.x.len(), shape.n_weights(), shape.y().len()].map(|n| random.floats(n));
        let (bias, output) = (random.floats(shape.n_out), random.floats(shape.x.len()));
        for half in HALVES {
            let forward = Conv2d { shape, epilogue: Epilogue::bias(&Activation::relu()) };
            let given = [x.clone(), weight.clone(), bias.clone()];
            let form = if shape.n_out.is_multiple_of(2) { "Stored" } else { "Converted { kernel: Stored" };
            has_form(forward.clone(), &[half, half, DType::F32, half], form);
            has_form(forward.clone(), &[half, half, half, DType::F32], "Stored");
            let tolerance = Tolerance::of_sum(shape.n_patch());
            stored_equals_f32_within(forward.clone(), &[half, half, DType::F32, half], &given, tolerance);
            stored_equals_f32_within(forward, &[half, half, half, DType::F32], &given, tolerance);
            let grad_input = Conv2dGradInput { shape, epilogue: output_grad(&Activation::relu()) };
            let given = [y.clone(), weight.clone(), output.clone()];
            stored_equals_f32_within(grad_input.clone(), &[half; 4], &given, tolerance);
            stored_equals_f32_within(grad_input, &[half, half, half, DType::F32], &given, tolerance);
            let (grad_weight, given) = (Conv2dGradWeight { shape }, [y.clone(), x.clone()]);
            let tolerance = Tolerance::of_sum(shape.y().n_pixels());
            stored_equals_f32_within(grad_weight, &[half, half, DType::F32], &given, tolerance);
            stored_equals_f32_within(grad_weight, &[half; 3], &given, tolerance);
        }
    }
}

#[test]
fn grouped_convolutions_have_a_form() {
    let mut random = Random::new(11);
    let x = Images { n_images: 2, height: 5, width: 6, n_channels: 6 };
    let window = Window { stride: [2, 1], ..Window::square(3, 1) };
    for (n_out, n_groups, dilation) in [(6, 6, [1, 1]), (3, 3, [1, 1]), (4, 2, [1, 2])] {
        let shape = ConvShape { x, n_out, window, dilation, n_groups };
        let [x, weight, y] = [shape.x.len(), shape.n_weights(), shape.y().len()].map(|n| random.floats(n));
        let (bias, output) = (random.floats(n_out), random.floats(shape.x.len()));
        let tolerance = Tolerance::of_sum(shape.window.n_taps() * 6);
        for half in HALVES {
            let forward = Conv2d { shape, epilogue: Epilogue::bias(&Activation::relu()) };
            let given = [x.clone(), weight.clone(), bias.clone()];
            let form = if n_out.is_multiple_of(2) { "Stored" } else { "Converted { kernel: Stored" };
            has_form(forward.clone(), &[half, half, DType::F32, half], form);
            has_form(forward.clone(), &[half, half, half, DType::F32], "Stored");
            stored_equals_f32_within(forward.clone(), &[half, half, DType::F32, half], &given, tolerance);
            stored_equals_f32_within(forward, &[half, DType::F32, half, DType::F32], &given, tolerance);
            let grad_input = Conv2dGradInput { shape, epilogue: output_grad(&Activation::relu()) };
            let given = [y.clone(), weight.clone(), output.clone()];
            stored_equals_f32_within(grad_input.clone(), &[half; 4], &given, tolerance);
            stored_equals_f32_within(grad_input, &[DType::F32, half, half, DType::F32], &given, tolerance);
            let (grad_weight, given) = (Conv2dGradWeight { shape }, [y.clone(), x.clone()]);
            let tolerance = Tolerance::of_sum(shape.y().n_pixels());
            stored_equals_f32_within(grad_weight, &[half, half, DType::F32], &given, tolerance);
            stored_equals_f32_within(grad_weight, &[half; 3], &given, tolerance);
        }
    }
}

#[test]
fn batch_norm_has_a_form() {
    const F32: DType = DType::F32;
    let mut random = Random::new(3);
    for half in HALVES {
        for (n_rows, n_channels, n_groups) in [(2, 1, 1), (70, 3, 1), (130, 2, 2), (66, 34, 3)] {
            let shape = BatchNormShape { n_rows, n_channels, n_groups };
            let channels = |random: &mut Random| random.floats(n_channels);
            let [x, grad_y] = [(); 2].map(|()| random.floats(shape.len()));
            // Inverse deviations have any sign here, which makes no difference.
            let stats = random.floats(shape.n_stats());
            let tolerance = Tolerance::of_sum(n_rows);

            let kernel = BatchNormStats { shape, n_weights: 0, eps: 1e-2, momentum: 0.1 };
            let given = [x.clone(), channels(&mut random), vec![1.0; n_channels]];
            has_form(kernel, &[half, F32, F32, F32], "Stored");
            stored_equals_f32_within(kernel, &[half, F32, F32, F32], &given, tolerance);
            // Storing running statistics in 16 bits is not a good idea; they are both read and written.
            stored_equals_f32_within(kernel, &[half, half, half, F32], &given, tolerance);

            let kernel = shape.normalise(&Activation::celu(0.5));
            let given = [x.clone(), stats.clone(), stats.clone(), channels(&mut random), channels(&mut random)];
            stored_equals_f32(kernel, &[half, F32, F32, F32, F32, half], &given);

            has_form(shape.grad_sums(), &[half, half, F32, F32, F32], "MapReduce");
            let given = [grad_y.clone(), x.clone(), stats.clone(), stats.clone()];
            stored_equals_f32_within(shape.grad_sums(), &[half, half, F32, F32, F32], &given, tolerance);

            let sums = random.floats(shape.n_stats());
            let given = [grad_y.clone(), x, stats.clone(), stats.clone(), channels(&mut random), sums.clone(), sums];
            stored_equals_f32(shape.grad_x(), &[half, half, F32, F32, F32, F32, F32, half], &given);

            let given = [grad_y, stats, channels(&mut random)];
            stored_equals_f32(shape.frozen_grad_x(), &[half, F32, F32, half], &given);
        }
    }
}

#[test]
fn pooling_has_a_form() {
    let mut random = Random::new(11);
    for half in HALVES {
        for n_channels in [1, 2, 6, 34] {
            let x = Images { n_images: 2, height: 7, width: 5, n_channels };
            let window = Window { kernel: [3, 2], stride: [2, 1], padding: [1, 1] };
            let shape = PoolShape { x, window, rounding: Rounding::Up };
            let (mut x, grad_y) = (random.floats(shape.x.len()), [random.floats(shape.y().len())]);
            x[3] = f32::NAN;
            let expected = if n_channels % 2 == 0 { "Stored" } else { "Converted" };
            let max = MaxPool2d { shape };
            has_form(max, &[half, half, DType::U32], expected);
            stored_equals_f32(max, &[half, half, DType::U32], &[x.clone()]);
            let rounded = words(&floats_of(half, &half_words(half, &x), x.len()));
            let taps = floats(&run_twin(&max, &[rounded])[1]).to_vec();
            stored_equals_f32(MaxPool2dGrad { shape }, &[half, DType::U32, half], &[grad_y[0].clone(), taps]);
            for divisor in [PoolDivisor::Padded, PoolDivisor::Inside] {
                let mean = AvgPool2d { shape, divisor };
                has_form(mean, &[half; 2], expected);
                stored_equals_f32(mean, &[half; 2], &[x.clone()]);
                stored_equals_f32(AvgPool2dGrad { forward: mean }, &[half; 2], &grad_y);
            }
        }
    }
}

#[test]
fn rows_are_gathered_into_a_form() {
    let mut random = Random::new(12);
    for half in HALVES {
        for n_cols in [1, 2, 28, 33] {
            for first_row in [0, 4] {
                let gather = GatherRows { dtype: DType::F32, first_row, n_table_rows: 5, n_cols, n: 70 };
                let rows = (0..70).map(|_| f32::from_bits(random.below(9))).collect();
                let mut given = vec![random.floats(5 * n_cols), rows, random.floats(n_cols), random.floats(n_cols)];
                if first_row > 0 {
                    given.push(random.floats(70 * n_cols));
                }
                let dtypes = [DType::F32, DType::U32, DType::F32, DType::F32, half];
                has_form(gather, &dtypes, if n_cols % 2 == 0 { "Stored" } else { "Converted" });
                stored_equals_f32(gather, &dtypes, &given);
            }
        }
        let bytes = GatherRows { dtype: DType::U8, first_row: 0, n_table_rows: 5, n_cols: 2, n: 3 };
        has_form(bytes, &[DType::U8, DType::U32, DType::F32, DType::F32, half], "Converted");
    }
}

#[test]
fn columns_are_moved_in_a_form() {
    let mut random = Random::new(13);
    for half in HALVES {
        for (widths, expected) in [(vec![2, 6, 4], "Stored"), (vec![34], "Stored"), (vec![2, 3], "Converted")] {
            let given: Vec<_> = widths.iter().map(|width| random.floats(33 * width)).collect();
            let concat = ConcatColumns { n_rows: 33, widths };
            let dtypes = vec![half; given.len() + 1];
            has_form(concat.clone(), &dtypes, expected);
            stored_equals_f32(concat, &dtypes, &given);
        }
        for (n_x_cols, n_y_cols, shift) in [(6, 4, 2), (4, 8, -2), (4, 2, 6), (6, 4, 1), (5, 4, 0)] {
            let columns = ShiftColumns { n_rows: 40, n_x_cols, n_y_cols, shift };
            let is_even = n_x_cols % 2 == 0 && shift % 2 == 0;
            has_form(columns, &[half; 2], if is_even { "Stored" } else { "Converted" });
            stored_equals_f32(columns, &[half; 2], &[random.floats(40 * n_x_cols)]);
        }
    }
}

#[test]
fn its_own_types_leave_a_kernel_as_it_is() {
    let add = stored(Map::binary(4, |a, b| a + b), &[DType::F32; 3]).expect("its own types");
    assert_eq!(add.as_map(), Some(&Map::binary(4, |a, b| a + b)));
    let gather = GatherRows { dtype: DType::U8, first_row: 0, n_table_rows: 2, n_cols: 2, n: 3 };
    let dtypes: Vec<DType> = gather.args().iter().map(|arg| arg.dtype).collect();
    assert_eq!(stored(gather, &dtypes).expect("its own types").args(), gather.args());
}

#[test]
fn scratch_is_the_kernels_and_then_the_copies() {
    let norm = BatchNormStats {
        shape: BatchNormShape { n_rows: 4, n_channels: 3, n_groups: 1 },
        n_weights: 0,
        eps: 1e-5,
        momentum: 0.1,
    };
    let low = stored(norm, &[DType::F32, DType::F16, DType::F32, DType::F32]).expect("f16 for f32");
    let (args, of) = (low.args(), norm.args());
    assert_eq!(args[1], Arg { dtype: DType::F16, ..of[1] });
    assert_eq!(args[4], of[4], "its own scratch");
    assert_eq!(args[5..], [Arg::scratch("running_mean", DType::F32, 3)]);
}

#[track_caller]
fn refuses(kernel: impl Kernel, dtypes: &[DType], expected: &str) {
    let error = stored(kernel, dtypes).expect_err("types that make no sense");
    assert_eq!(error.to_string(), expected, "{dtypes:?}");
}

#[test]
fn types_that_make_no_sense_are_refused() {
    refuses(
        Map::binary(4, |a, b| a + b),
        &[DType::F16; 2],
        "map: 2 element types for 3 arguments is not supported, expected one for each",
    );
    refuses(
        Map::binary(4, |a, b| a + b),
        &[DType::F32, DType::U8, DType::F32],
        "map: `x1` (F32) stored as U8 is not supported, expected its own type, or f16 or bf16 for f32",
    );
    refuses(
        Advance,
        &[DType::F16],
        "advance: `state` (U32) stored as F16 is not supported, expected its own type, or f16 or bf16 for f32",
    );
    let cast = Cast { n: 4, from: DType::F16, to: DType::F16 };
    let expected =
        "cast: F16 to F16 is not supported, expected f32, f16 or bf16 to another of them, or to u8 or u32, or these to f32";
    assert_eq!(cast.check().expect_err("the same type").to_string(), expected);
}
