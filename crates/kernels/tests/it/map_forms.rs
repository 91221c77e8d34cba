//! Maps that have loops of their own for many elements, compared with the same maps of few, which are evaluated operation by
//! operation.

use brisk_kernels::expr::{Activation, Expr};
use brisk_kernels::*;

use crate::random::Random;
use crate::run::*;

/// More than are evaluated operation by operation, and no multiple of a block.
const MANY: usize = 70_003;
const FEW: usize = 16_000;

fn stored(dtype: DType, values: &[f32]) -> Words {
    if dtype.is_half() { half_words(dtype, values) } else { words(values) }
}

/// Numbers of any size, with zeros of both signs, infinities and NaN among the first.
fn numbers(random: &mut Random) -> Vec<f32> {
    let mut numbers = random.floats(MANY);
    numbers[..FEW / 2].copy_from_slice(&random.wide_floats(FEW / 2));
    numbers[..6].copy_from_slice(&[0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40]);
    numbers
}

/// The map with whole inputs and outputs stored as `dtype`.
fn in_dtype(map: &Map, dtype: DType) -> Map {
    let mut map = map.clone();
    map.inputs.iter_mut().filter(|input| input.draws.is_none()).for_each(|input| input.dtype = dtype);
    map.outputs[0].dtype = dtype;
    map
}

/// Checks that the first elements of many are those of few, stored in each type, and in place of each input.
#[track_caller]
fn agree(map: impl Fn(usize) -> Map, random: &mut Random) {
    let (few, many) = (map(FEW), map(MANY));
    let values: Vec<Vec<f32>> = many.inputs.iter().map(|_| numbers(random)).collect();
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        let [few, many] = [&few, &many].map(|map| in_dtype(map, dtype));
        let given = |n: usize| -> Vec<Words> {
            let of_input = |(input, values): (&MapInput, &Vec<f32>)| match input.draws {
                Some(_) => vec![0, 5, 0, 0],
                None => stored(dtype, &values[..n]),
            };
            many.inputs.iter().zip(&values).map(of_input).collect()
        };
        let expected = floats_of(dtype, &run_twin(&few, &given(FEW))[0], FEW);
        let check = |how: &str, found: &[f32]| {
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let is_equal = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
                let at: Vec<f32> = values.iter().map(|values| values[i]).collect();
                assert!(is_equal, "{many:?} {how}, element {i}, of {at:?}: {found:e}, expected {expected:e}");
            }
        };
        check("to another buffer", &floats_of(dtype, &run_twin(&many, &given(MANY))[0], MANY));
        for input in (0..many.inputs.len()).filter(|&input| many.inputs[input].draws.is_none()) {
            let in_place = MapInPlace { map: many.clone(), input };
            let mut given = given(MANY);
            let replaced = given.remove(input);
            given.push(replaced);
            check("in place", &floats_of(dtype, &run_twin(&in_place, &given)[0], MANY));
        }
    }
}

#[test]
fn activations_and_their_derivatives() {
    let mut random = Random::new(3);
    for activation in
        [Activation::identity(), Activation::relu(), Activation::celu(0.3), Activation::sigmoid(), Activation::tanh()]
    {
        agree(|n| Map::flat(n, activation.forward.clone()), &mut random);
        let slope = activation.grad_from_output().expect("the derivatives of these follow from the output");
        agree(|n| Map::binary(n, |grad, y| slope.substitute(&[grad, y])), &mut random);
        // Before a dropout of 0.2.
        agree(|n| Map::binary(n, |grad, y| slope.substitute(&[grad * 1.25, y / 1.25])), &mut random);
    }
    let slope = Activation::gelu().grad();
    agree(|n| Map::binary(n, |grad, x| slope.substitute(&[grad, x])), &mut random);
}

#[test]
fn dropout() {
    let draws = Draws { seed: 7, stream: 2, part: 0, first: 9 };
    agree(|n| Map::dropout(n, 0.2, draws), &mut Random::new(4));
}

#[test]
fn others_are_evaluated() {
    let [a, b] = [0, 1].map(Expr::input);
    agree(|n| Map::flat(n, (&a * &b).exp()), &mut Random::new(5));
}
