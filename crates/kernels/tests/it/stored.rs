//! Kernels whose arguments are stored in f16 or bf16.

use brisk_kernels::*;

use crate::close::{assert_close, tolerance};
use crate::random::Random;
use crate::run::*;

const HALVES: [DType; 2] = [DType::F16, DType::Bf16];

/// `kernel` stored as `dtypes` gives on its twin what `kernel` itself gives for the same numbers, up to the rounding of the results, and the GPU agrees. `given` are f32 for every argument that is read.
#[track_caller]
pub(crate) fn stored_equals_f32(kernel: impl Kernel + Clone, dtypes: &[DType], given: &[Vec<f32>]) {
    let low = stored(kernel.clone(), dtypes).unwrap_or_else(|error| panic!("{error}"));
    let args = kernel.args();
    let reads = args.iter().zip(dtypes).filter(|(arg, _)| matches!(arg.access, Access::Read | Access::ReadWrite));
    let packed: Vec<Words> = reads
        .zip(given)
        .map(|((_, &dtype), floats)| if dtype == DType::F32 { words(floats) } else { half_words(dtype, floats) })
        .collect();
    // What is left of the numbers once they are stored.
    let reads = args.iter().zip(dtypes).filter(|(arg, _)| matches!(arg.access, Access::Read | Access::ReadWrite));
    let rounded: Vec<Words> =
        reads.zip(&packed).map(|((arg, &dtype), packed)| words(&floats_of(dtype, packed, arg.len))).collect();
    let (found, expected) = (run_twin(&low, &packed), run_twin(&kernel, &rounded));
    let results = args.iter().zip(dtypes).filter(|(arg, _)| matches!(arg.access, Access::Write | Access::ReadWrite));
    for (((arg, &dtype), found), expected) in results.zip(&found).zip(&expected) {
        let what = format!("{low:?}: {}", arg.name);
        assert_close(&what, &floats_of(dtype, found, arg.len), floats(expected), tolerance(dtype));
    }
    gpu_equals_twin(&low, &packed);
}

#[test]
fn casts_around_a_kernel_are_seen_by_nobody() {
    let mut random = Random::new(1);
    for half in HALVES {
        for n in [1, 2, 63, 64, 65, 1001] {
            let given = [random.floats(n), random.floats(n)];
            stored_equals_f32(Add { n }, &[half, half, half], &given);
            stored_equals_f32(Add { n }, &[half, DType::F32, DType::F32], &given);
            stored_equals_f32(Add { n }, &[DType::F32, DType::F32, half], &given);
        }
        stored_equals_f32(Add { n: 5 }, &[DType::F16, DType::Bf16, half], &[random.floats(5), random.floats(5)]);
    }
}

#[test]
fn products_with_a_bias_in_f32() {
    let mut random = Random::new(2);
    for half in HALVES {
        for (m, n, k) in [(1, 1, 1), (5, 7, 9), (16, 32, 8), (33, 31, 17)] {
            let layer = Matmul { m, n, k, transpose: Transpose::B, epilogue: Epilogue::Bias(Activation::Relu) };
            let given = [random.floats(m * k), random.floats(k * n), random.floats(n)];
            stored_equals_f32(layer, &[half, half, DType::F32, half], &given);
            stored_equals_f32(layer, &[half, half, DType::F32, DType::F32], &given);
        }
    }
}

#[test]
fn statistics_that_are_updated_in_place() {
    let mut random = Random::new(3);
    let shape = BatchNormShape { n_rows: 35, n_channels: 3, n_groups: 1 };
    for half in HALVES {
        let given = [random.floats(shape.len()), random.floats(3), vec![1.0; 3]];
        let stats = BatchNormStats { shape, eps: 1e-5, momentum: 0.1 };
        stored_equals_f32(stats, &[half, DType::F32, DType::F32, DType::F32], &given);
        // Running statistics in 16 bits are no good idea; they are read and written.
        stored_equals_f32(stats, &[half, half, half, DType::F32], &given);
        let norm = BatchNorm { shape, activation: Activation::Relu };
        let given = [random.floats(shape.len()), random.floats(6), random.floats(3), random.floats(3)];
        stored_equals_f32(norm, &[half, DType::F32, DType::F32, DType::F32, half], &given);
    }
}

#[test]
fn its_own_types_leave_a_kernel_as_it_is() {
    let add = stored(Add { n: 4 }, &[DType::F32; 3]).expect("its own types");
    assert_eq!(format!("{add:?}"), "Add { n: 4 }");
    let gather = GatherRows { dtype: DType::U8, first_row: 0, n_table_rows: 2, n_cols: 2, n: 3 };
    let dtypes: Vec<DType> = gather.args().iter().map(|arg| arg.dtype).collect();
    assert_eq!(stored(gather, &dtypes).expect("its own types").args(), gather.args());
}

#[test]
fn scratch_is_the_kernels_and_then_the_copies() {
    let norm = BatchNormStats { shape: BatchNormShape { n_rows: 4, n_channels: 3, n_groups: 1 }, eps: 1e-5, momentum: 0.1 };
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
    refuses(Add { n: 4 }, &[DType::F16; 2], "add: 2 element types for 3 arguments is not supported, expected one for each");
    refuses(
        Add { n: 4 },
        &[DType::F32, DType::U8, DType::F32],
        "add: `b` (F32) stored as U8 is not supported, expected its own type, or f16 or bf16 for f32",
    );
    refuses(
        Advance,
        &[DType::F16],
        "advance: `state` (U32) stored as F16 is not supported, expected its own type, or f16 or bf16 for f32",
    );
    let cast = Cast { n: 4, from: DType::F16, to: DType::F16 };
    let expected = "cast: F16 to F16 is not supported, expected f32, f16 or bf16 to another of them, or u8 or u32 to f32";
    assert_eq!(cast.check().expect_err("the same type").to_string(), expected);
}
