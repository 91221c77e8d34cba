//! The elementwise kernel: broadcasting compared with NumPy's rules done by hand, stored types, GPU compared with twin.

use brisk_kernels::expr::{Activation, Expr};
use brisk_kernels::*;

use crate::map_samples::{map, x};
use crate::random::Random;
use crate::run::*;

/// Elements of an argument, two per word if they have 16 bits.
fn stored_words(dtype: DType, values: &[f32]) -> Words {
    if dtype.is_half() { half_words(dtype, values) } else { words(values) }
}

/// Random inputs of a map.
fn inputs_of(map: &Map, random: &mut Random) -> Vec<Words> {
    map.inputs.iter().map(|input| stored_words(input.dtype, &random.wide_floats(input.len))).collect()
}

/// Checks that the twin equals the expression at each index, computed by NumPy's rules one element at a time.
#[track_caller]
fn twin_broadcasts(map: &Map, given: &[Words]) {
    let found = run_twin(map, given);
    let values: Vec<Vec<f32>> =
        map.inputs.iter().zip(given).map(|(input, words)| floats_of(input.dtype, words, input.len)).collect();
    for (output, words) in map.outputs.iter().zip(&found) {
        let found = floats_of(output.dtype, words, map.len());
        for i in 0..map.len() {
            let at: Vec<f32> =
                map.inputs.iter().zip(&values).map(|(input, values)| values[index(&map.shape, input, i)]).collect();
            let expected = stored_words(output.dtype, &[output.expr.evaluate(&at)]);
            let expected = floats_of(output.dtype, &expected, 1)[0];
            assert!(
                found[i] == expected || (found[i].is_nan() && expected.is_nan()),
                "{map:?} at {i}: {}, expected {expected}",
                found[i]
            );
        }
    }
}

/// The index in an input of element `i` of `shape`.
pub(crate) fn index(shape: &[usize], input: &MapInput, i: usize) -> usize {
    let (mut rest, mut at) = (i, input.offset);
    for (from_end, &size) in shape.iter().rev().enumerate() {
        let own = input.shape.iter().rev().zip(input.strides.iter().rev()).nth(from_end);
        at += own.map_or(0, |(own, stride)| if *own == 1 { 0 } else { rest % size * stride });
        rest /= size;
    }
    at
}

#[test]
fn inputs_have_any_strides() {
    let mut random = Random::new(6);
    let dtypes = [DType::F32, DType::F16, DType::Bf16];
    for (shape, dims) in [
        (&[3, 5][..], &[1, 0][..]),
        (&[8, 12], &[1, 0]),
        (&[300, 70], &[1, 0]),
        (&[3, 4, 5, 7], &[3, 1, 0, 2]),
        (&[3, 4, 5, 8], &[1, 0, 3, 2]),
        (&[3, 4, 5, 8], &[2, 1, 0, 3]),
        (&[2, 3, 2, 3, 2, 4], &[5, 3, 1, 0, 2, 4]),
        (&[1, 6, 1, 4], &[3, 0, 2, 1]),
    ] {
        for (input, output) in dtypes.into_iter().zip([DType::F32, DType::Bf16, DType::F16]) {
            let whole = MapInput::new(shape, input);
            let permuted = whole.permuted(dims).expect("a permutation");
            agree(&permuted, output, &mut random);
            // Starting at the second element of each dimension, or only its last two.
            let narrowed = permuted.shape.clone().iter().enumerate().fold(permuted, |narrowed, (dim, &size)| {
                narrowed.narrowed(dim, size.saturating_sub(2 + dim % 3)..size).expect("elements are left")
            });
            agree(&narrowed, output, &mut random);
        }
    }
    // Rows and columns of a matrix, columns two apart, one element.
    let matrix = MapInput::new(&[20, 40], DType::F32);
    for input in [
        matrix.narrowed(0, 3..9).expect("rows"),
        matrix.narrowed(1, 4..16).expect("columns"),
        matrix.narrowed(1, 5..11).expect("columns"),
        MapInput { shape: vec![20, 20], strides: vec![40, 2], ..matrix.clone() },
        matrix.narrowed(0, 7..8).and_then(|row| row.narrowed(1, 9..10)).expect("an element"),
    ] {
        agree(&input, DType::F32, &mut random);
    }
}

/// A single input, the same with a repeated row, and an input that is itself repeated.
#[track_caller]
fn agree(input: &MapInput, output: DType, random: &mut Random) {
    let row = MapInput::new(&input.shape[input.shape.len() - 1..], DType::F32);
    let repeated = [&[2], &input.shape[..]].concat();
    for (shape, inputs, expr) in [
        (&input.shape, vec![input.clone()], x(0)),
        (&input.shape, vec![input.clone(), row.clone()], x(0) - x(1) * 2.0),
        (&repeated, vec![row, input.clone()], x(0) + x(1)),
    ] {
        let map = Map { shape: shape.clone(), inputs, outputs: vec![MapOutput { expr, dtype: output }] };
        let within = map.check();
        if shape.len() > Map::MAX_DIMS {
            assert!(within.is_err(), "more dimensions than a map has");
            continue;
        }
        let given = inputs_of(&map, random);
        twin_broadcasts(&map, &given);
        gpu_equals_twin(&map, &given);
    }
}

const PATTERNS: [(&[usize], &[&[usize]]); 12] = [
    (&[12, 20], &[&[12, 20], &[20]]),
    (&[12, 20], &[&[12, 1], &[12, 20]]),
    (&[12, 20], &[&[12, 1], &[20]]),
    (&[7, 5], &[&[7, 1], &[5]]),
    (&[3, 4, 8], &[&[3, 4, 8], &[1]]),
    (&[3, 4, 8], &[&[4, 1], &[3, 1, 8]]),
    (&[3, 5, 7], &[&[3, 1, 7], &[1, 5, 1]]),
    (&[2, 3, 2, 3, 2, 3], &[&[2, 1, 2, 1, 2, 1], &[3, 1, 3, 1, 3]]),
    (&[2, 3, 2, 3, 2, 4], &[&[2, 1, 2, 1, 2, 1], &[3, 1, 3, 1, 4]]),
    (&[1, 1], &[&[1, 1], &[]]),
    (&[5, 1, 3], &[&[5, 1, 3], &[1, 1, 3]]),
    (&[2, 2500], &[&[2, 1], &[2, 2500]]),
];

/// More elements than a task has, of an expression with parts that vary by channel, by channel and group, and not at all.
#[test]
fn what_is_computed_once_has_the_same_bits() {
    let (n_groups, n_rows, n_channels) = (2, 1500, 24);
    let shape: &[usize] = &[n_groups, n_rows, n_channels];
    let (by_group, by_row) = ([n_groups, 1, n_channels], [n_groups, n_rows, 1]);
    let normalised = (x(0) - x(1)) * (x(1) * x(2) + x(3)) + x(4) * (x(2) * x(3));
    let outputs = [(normalised, DType::F32), (x(3) * x(3) + x(0), DType::Bf16), (x(1) * 2.0, DType::F32)];
    let mut random = Random::new(3);
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        let inputs: [(&[usize], DType); 5] =
            [(shape, dtype), (&by_group, DType::F32), (&[n_channels], dtype), (&[1], DType::F32), (&by_row, DType::F32)];
        let map = map(shape, &inputs, &outputs);
        let given = inputs_of(&map, &mut random);
        twin_broadcasts(&map, &given);
    }
}

#[test]
fn inputs_broadcast_as_in_numpy() {
    let mut random = Random::new(1);
    for (shape, inputs) in PATTERNS {
        assert_eq!(broadcast_shapes(inputs).as_deref(), Ok(shape));
        let map = Map::new(x(0) * 2.0 - x(1), inputs).expect("they broadcast");
        let given = inputs_of(&map, &mut random);
        twin_broadcasts(&map, &given);
        gpu_equals_twin(&map, &given);
    }
    // Longer than the period that is written out, and longer than a task.
    for (shape, inputs) in [
        (&[3, 20_000][..], [&[3, 20_000][..], &[20_000]]),
        (&[40_000, 3], [&[40_000, 1], &[3]]),
        (&[5, 30_001], [&[5, 1], &[30_001]]),
    ] {
        let map = Map::new(x(0) - x(1), &inputs).expect("they broadcast");
        assert_eq!(map.shape, shape);
        let given = inputs_of(&map, &mut random);
        twin_broadcasts(&map, &given);
    }
    // Rows that repeat within groups of elements, which end within blocks; groups too short to be written out.
    for inputs in [
        [&[3, 700, 5][..], &[3, 1, 5]],
        [&[2, 3, 400, 4], &[2, 3, 1, 4]],
        [&[2, 3, 400, 4], &[1, 3, 1, 4]],
        [&[3, 2, 300, 7], &[3, 1, 1, 7]],
        [&[9, 20, 6], &[9, 1, 6]],
    ] {
        let mut map = Map::new(x(0) - x(1), &inputs).expect("they broadcast");
        for dtype in [DType::F32, DType::Bf16] {
            map.inputs[1].dtype = dtype;
            let given = inputs_of(&map, &mut random);
            twin_broadcasts(&map, &given);
        }
    }
}

#[test]
fn gpu_equals_twin_at_every_length() {
    let mut random = Random::new(2);
    let expr = (x(0) + x(1)).relu() * x(0) - 0.5;
    for n in [1, 2, 3, 63, 64, 65, 255, 256, 257, 1000, 70_003] {
        let map = Map::flat(n, expr.clone());
        gpu_equals_twin(&map, &inputs_of(&map, &mut random));
    }
}

#[test]
fn any_argument_is_stored_in_any_type() {
    let mut random = Random::new(3);
    let dtypes = [DType::F32, DType::F16, DType::Bf16];
    for (shape, inputs) in [(&[6, 8][..], [&[6, 8][..], &[8]]), (&[5, 7], [&[5, 1], &[7]]), (&[9], [&[9], &[1]])] {
        for first in dtypes {
            for second in dtypes {
                for output in dtypes {
                    let map =
                        map(shape, &[(inputs[0], first), (inputs[1], second)], &[(x(0) + x(1), output), (x(0) * x(1), first)]);
                    let given = inputs_of(&map, &mut random);
                    twin_broadcasts(&map, &given);
                    gpu_equals_twin(&map, &given);
                }
            }
        }
    }
}

#[test]
fn stored_gives_the_same_kernel_in_other_types() {
    let kernel = stored(Map::flat(8, x(0) + x(1)), &[DType::F16, DType::F32, DType::Bf16]).expect("floats");
    let dtypes: Vec<_> = kernel.args().iter().map(|arg| arg.dtype).collect();
    assert_eq!(dtypes, [DType::F16, DType::F32, DType::Bf16], "without scratch");
}

/// Values at the limits of functions, and common ones.
fn values() -> Vec<f32> {
    let mut values = vec![f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, f32::MAX, f32::MIN];
    values.extend([
        88.7,
        88.8,
        -87.3,
        -88.0,
        -103.9,
        -104.1,
        0.5,
        -0.5,
        1e-6,
        -1e-6,
        0.9999,
        1.0001,
        8_388_609.0,
        1e-20,
        3.5,
        -3.5,
    ]);
    values.extend([f32::MIN_POSITIVE, -f32::MIN_POSITIVE, 1e-40, -1e-40, f32::from_bits(1), 9.9, 10.1, -17.9, -18.1, 11_000.0]);
    values.extend(Random::new(4).wide_floats(212));
    values
}

#[test]
fn functions_on_the_gpu_equal_the_twin_at_their_limits_too() {
    let groups: [Vec<Expr>; 4] = [
        vec![x(0).exp(), x(0).expm1(), x(0).log(), x(0).log1p(), x(0).sqrt(), x(0).rsqrt(), x(0).recip()],
        vec![x(0).tanh(), x(0).sigmoid(), x(0).erf(), x(0).floor(), x(0).abs(), x(0).sign(), -x(0)],
        vec![x(0).max(0.5), x(0).min(0.5), x(0).clamp(-1.0, 1.0), x(0).relu(), x(0).lt(0.5), x(0).ge(0.5), x(0).ne(1.0)],
        vec![
            x(0).gelu(),
            x(0).silu(),
            x(0).softplus(),
            x(0).select(1.0, 2.0),
            x(0).eq(0.0),
            x(0).leaky_relu(0.1),
            x(0).celu(0.7),
        ],
    ];
    let values = values();
    for exprs in groups {
        functions_agree(&exprs, &values);
    }
    let slopes = [Activation::gelu(), Activation::silu(), Activation::softplus(), Activation::elu(1.0)]
        .map(|activation| activation.slope());
    functions_agree(&slopes, &values);
    let moderate: Vec<f32> = values.iter().copied().filter(|v| v.is_nan() || v.is_infinite() || v.abs() < 12_000.0).collect();
    functions_agree(&[x(0).sin(), x(0).cos()], &moderate);
    functions_agree(&[x(0).powf(3.3), x(0).powi(3), x(0).powi(-2), x(0).powf(-1.5), Expr::constant(2.0).powf(x(0))], &values);
    functions_agree(&[-1.0, 1.0, 0.0].map(|base| Expr::constant(base).powf(x(0))), &values);
    functions_agree(&[x(0).leaky_relu(0.0)], &values);
}

#[test]
fn errors_on_the_gpu_are_within_the_stated_bounds() {
    let Some(mut gpu) = crate::gpu::gpu() else { return };
    let mut beyond = Vec::new();
    for of in crate::expr::accuracies() {
        let values: Vec<f32> = of.values().into_iter().filter(|&x| !of.is_subnormal(x)).take(20_000).collect();
        let map = Map::flat(values.len(), of.expr.clone());
        let found = run_gpu(&mut gpu, &map, &[words(&values)]);
        beyond.extend(of.beyond(of.gpu, &values, floats(&found[0])));
    }
    assert_eq!(beyond, [""; 0]);
    let values: Vec<f32> = (-12_000..12_000).map(|i| i as f32 + 0.3).collect();
    let outputs = [(x(0).sin(), DType::F32), (x(0).cos(), DType::F32)];
    let map = map(&[values.len()], &[(&[values.len()], DType::F32)], &outputs);
    let found = run_gpu(&mut gpu, &map, &[words(&values)]);
    for (i, &x) in values.iter().enumerate() {
        for (found, exact) in found.iter().zip([f64::from(x).sin(), f64::from(x).cos()]) {
            let error = (f64::from(floats(found)[i]) - exact).abs();
            assert!(error <= f64::exp2(-22.0), "off by {error:e} at {x}, where it should be {exact}");
        }
    }
}

/// NaN and infinities must match the twin, and numbers be within a few units in the last place; a GPU may flush a subnormal
/// number to zero, before or after the function.
#[track_caller]
fn functions_agree(exprs: &[Expr], values: &[f32]) {
    let Some(mut gpu) = crate::gpu::gpu() else { return };
    let outputs: Vec<_> = exprs.iter().map(|expr| (expr.clone(), DType::F32)).collect();
    let map = map(&[values.len()], &[(&[values.len()], DType::F32)], &outputs);
    let given = [words(values)];
    let (found, expected) = (run_gpu(&mut gpu, &map, &given), run_twin(&map, &given));
    drop(gpu);
    for ((expr, found), expected) in exprs.iter().zip(&found).zip(&expected) {
        for ((&x, &found), &expected) in values.iter().zip(floats(found)).zip(floats(expected)) {
            let flushed = expr.evaluate(&[0.0_f32.copysign(x)]);
            let agree = |expected: f32| {
                (found.is_nan() && expected.is_nan()) || found == expected || (found - expected).abs() <= 1e-5 * expected.abs() + 1.2e-38
                    // Near zero, sums of terms that cancel.
                    || ((found - expected).abs() < 1e-6 && x.abs() < 100.0)
            };
            assert!(
                agree(expected) || (x.is_subnormal() && agree(flushed)),
                "{expr} at {x:e}: {found:e}, the twin has {expected:e}"
            );
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let map = Map::new((x(0) + x(1)).gelu(), &[&[400, 500], &[500]]).expect("they broadcast");
    let given = inputs_of(&map, &mut Random::new(5));
    same_bits_on_any_pool(&map, &given);
}

#[test]
fn parts_are_cut_where_no_input_is_strided() {
    let part = Map::new(x(0) * x(1), &[&[10, 10], &[1]]).expect("they broadcast").with_len(30).expect("flat");
    assert_eq!(part.args().iter().map(|arg| arg.len).collect::<Vec<_>>(), [30, 1, 30]);
    assert!(Map::new(x(0) * x(1), &[&[10, 10], &[10]]).expect("they broadcast").with_len(30).is_none(), "rows would be cut");
    let input = MapInput::new(&[20, 10], DType::F32).narrowed(0, 0..10).expect("rows");
    let narrowed = Map { inputs: vec![input], ..Map::flat(100, x(0)) };
    assert!(narrowed.with_len(30).is_none(), "not the whole argument is read");
}

#[track_caller]
fn refused(map: &Map, expected: &str) {
    let error = map.check().expect_err("it is refused").to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let f32 = DType::F32;
    let error = broadcast_shapes(&[&[3, 4], &[3]]).expect_err("4 and 3").to_string();
    assert!(error.contains("[[3, 4], [3]]") && error.contains("equal or 1"), "{error}");
    refused(&map(&[3, 4], &[(&[3], f32)], &[(x(0), f32)]), "`x0` of shape [3], which does not broadcast to [3, 4]");
    refused(&map(&[4], &[(&[2, 4], f32)], &[(x(0), f32)]), "does not broadcast to [4]");
    refused(&map(&[4], &[(&[4], f32)], &[(x(1), f32)]), "the expression `x1` (number of inputs: 1) is not supported");
    refused(&map(&[4], &[(&[4], f32), (&[4], f32)], &[(x(1), f32)]), "input x0, which no expression reads");
    refused(&map(&[4], &[(&[4], DType::U8)], &[(x(0), f32)]), "`x0` stored as u8");
    refused(&map(&[4], &[(&[4], f32)], &[]), "a kernel with 1 arguments (outputs: 0) is not supported");
    refused(&map(&[4], &[(&[4], f32)], &vec![(x(0), f32); 8]), "a kernel with 9 arguments (outputs: 8) is not supported");
    refused(&map(&[0, 4], &[(&[4], f32)], &[(x(0), f32)]), "number of elements is 0");
    let matrix = MapInput::new(&[3, 4], f32);
    let of = |input: MapInput| Map { inputs: vec![input], ..map(&[3, 4], &[(&[3, 4], f32)], &[(x(0), f32)]) };
    refused(&of(MapInput { offset: 1, ..matrix.clone() }), "with strides [4, 1] from element 1 on, of 12 elements");
    refused(&of(MapInput { strides: vec![1], ..matrix.clone() }), "a stride for each dimension");
    refused(&of(MapInput { strides: vec![usize::MAX, 1], ..matrix.clone() }), "no element beyond the last");
    for (dims, range) in [(2, 0..1), (1, 2..2), (1, 3..5)] {
        let error = matrix.narrowed(dims, range).expect_err("it is not in the matrix").to_string();
        assert!(error.contains("of shape [3, 4]"), "{error}");
    }
    let error = matrix.permuted(&[1, 1]).expect_err("1 is there twice").to_string();
    assert!(
        error.contains("the order [1, 1] of the dimensions of shape [3, 4] is not supported, expected each dimension once"),
        "{error}"
    );
    refused(
        &map(&[2; 7], &[(&[2, 1, 2, 1, 2, 1, 2], f32), (&[2; 7], f32)], &[(x(0) + x(1), f32)]),
        "a shape with 7 dimensions that cannot be merged is not supported",
    );
}
