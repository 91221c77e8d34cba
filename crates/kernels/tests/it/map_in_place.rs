//! The elementwise kernel that writes over one of its inputs, compared with the map itself.

use brisk_kernels::*;

use crate::map_samples::{map, x};
use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let add_to = MapInPlace { map: Map::binary(3, |x, sum| sum + x), input: 1 };
    let given = [words(&[1.0, -2.0, 0.5]), words(&[10.0, 2.0, f32::INFINITY])];
    assert_eq!(twin_floats(&add_to, &given), [11.0, 0.0, f32::INFINITY]);
}

#[test]
fn results_are_those_of_the_map() {
    let mut random = Random::new(1);
    for n in [1, 4, 63, 64, 65, 1001, 40_003] {
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            let inputs: [(&[usize], DType); 3] = [(&[n], DType::F32), (&[n], dtype), (&[1], DType::F32)];
            let map = map(&[n], &inputs, &[(x(0) * x(1) - x(2), dtype)]);
            let in_place = MapInPlace { map: map.clone(), input: 1 };
            let stored = |values: &[f32]| if dtype.is_half() { half_words(dtype, values) } else { words(values) };
            let (a, b, c) = (words(&random.floats(n)), stored(&random.floats(n)), words(&[0.5]));
            let given = [a.clone(), c.clone(), b.clone()];
            let [found, expected] = [run_twin(&in_place, &given), run_twin(&map, &[a, b, c])].map(|y| floats_of(dtype, &y[0], n));
            assert_eq!(found, expected, "{n} of {dtype}");
            gpu_equals_twin(&in_place, &given);
            same_bits_on_any_pool(&in_place, &given);
        }
    }
    // With a broadcast input, and without another input.
    let rows = MapInPlace { map: Map::new(x(0) + x(1), &[&[20, 12], &[12]]).expect("they broadcast"), input: 0 };
    gpu_equals_twin(&rows, &[words(&random.floats(12)), words(&random.floats(240))]);
    let unary = MapInPlace { map: Map::unary(100, |x| x.exp()), input: 0 };
    gpu_equals_twin(&unary, &[words(&random.floats(100))]);
}

#[test]
fn stored_gives_the_same_kernel_in_other_types() {
    let add_to = MapInPlace { map: Map::binary(8, |x, sum| sum + x), input: 1 };
    let kernel = stored(add_to, &[DType::F32, DType::Bf16]).expect("floats");
    assert_eq!(kernel.args().iter().map(|arg| arg.dtype).collect::<Vec<_>>(), [DType::F32, DType::Bf16]);
    kernel.check().expect("both sides of the sum are bf16");
}

#[track_caller]
fn refused(kernel: &MapInPlace, expected: &str) {
    let error = kernel.check().expect_err("it is refused").to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let f32 = DType::F32;
    refused(&MapInPlace { map: Map::binary(0, |x, sum| sum + x), input: 1 }, "number of elements is 0");
    refused(&MapInPlace { map: Map::binary(4, |x, sum| sum + x), input: 2 }, "input 2 of 2, and 1 outputs");
    let two = map(&[4], &[(&[4], f32)], &[(x(0), f32), (-x(0), f32)]);
    refused(&MapInPlace { map: two, input: 0 }, "input 0 of 1, and 2 outputs");
    let rows = Map::new(x(0) + x(1), &[&[3, 4], &[4]]).expect("they broadcast");
    refused(
        &MapInPlace { map: rows, input: 1 },
        "`x1` of shape [4] with strides [1] in f32, and an output of shape [3, 4] in f32",
    );
    let narrower = map(&[4], &[(&[4], f32)], &[(x(0), DType::F16)]);
    refused(&MapInPlace { map: narrower, input: 0 }, "and an output of shape [4] in f16");
}
