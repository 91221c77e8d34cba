//! Fused maps: bit-identical on the CPU to the unfused ones.

use brisk_kernels::expr::Expr;
use brisk_kernels::*;

use crate::map_samples::{map, x};
use crate::random::Random;
use crate::run::*;

fn activations() -> [Activation; 8] {
    [
        Activation::identity(),
        Activation::relu(),
        Activation::celu(0.7),
        Activation::gelu(),
        Activation::gelu_tanh(),
        Activation::silu(),
        Activation::sigmoid(),
        Activation::tanh(),
    ]
}

/// Checks that `consumer`, fused with `producer` at input `input`, is bit-identical to the two kernels on the CPU, and that the
/// GPU equals the twin.
#[track_caller]
fn check(producer: &Map, consumer: &Map, input: usize) -> Map {
    let mut random = Random::new(producer.len() as u64);
    let mut given = |map: &Map| -> Vec<Words> { map.inputs.iter().map(|input| words(&random.floats(input.len))).collect() };
    let (before, mut others) = (given(producer), given(consumer));
    others.remove(input);
    let fused = consumer.fused_with(input, producer).expect("they can be one");
    let found = run_twin(&fused, &[&before[..], &others].concat());
    let mut of_consumer = others.clone();
    of_consumer.insert(input, run_twin(producer, &before).remove(0));
    assert_eq!(found, run_twin(consumer, &of_consumer), "{fused:?}");
    gpu_equals_twin(&fused, &[&before[..], &others].concat());
    fused
}

#[test]
fn fused_maps_have_the_bits_of_one_after_the_other() {
    for n in [1, 63, 64, 65, 2047, 40_003] {
        let sum = Map::binary(n, |a, b| a + b);
        for activation in activations() {
            let activated = check(&sum, &Map::flat(n, activation.forward.clone()), 0);
            check(&activated, &Map::binary(n, |a, b| a * b), 1);
            check(&sum, &Map::flat(n, activation.grad()), 0);
            if let Some(grad) = activation.grad_from_output() {
                check(&sum, &Map::flat(n, grad), 0);
            }
        }
    }
    let tanh = Map::unary(100, |x| x.tanh());
    let four = check(&check(&check(&tanh, &tanh, 0), &tanh, 0), &tanh, 0);
    assert_eq!(four, Map::unary(100, |x| x.tanh().tanh().tanh().tanh()));
}

#[test]
fn shapes_and_strides_stay() {
    let rows = Map::new(x(0) + x(1), &[&[20, 12], &[12]]).expect("they broadcast");
    check(&rows, &Map::unary(240, |x| x.exp()), 0);
    check(&Map::unary(240, |x| x.exp()), &rows, 0);
    let columns = Map::new(x(0) * x(1), &[&[20, 1], &[20, 12]]).expect("they broadcast");
    let fused = check(&rows, &columns, 1);
    assert_eq!(fused.inputs.iter().map(|input| &input.shape[..]).collect::<Vec<_>>(), [&[20, 12][..], &[12], &[20, 1]]);
    let permuted = MapInput::new(&[12, 20], DType::F32).permuted(&[1, 0]).expect("a permutation");
    let transpose = Map { shape: vec![20, 12], inputs: vec![permuted], outputs: Map::unary(1, |x| x).outputs };
    check(&transpose, &columns, 1);
}

#[test]
fn an_input_that_is_read_twice_becomes_one() {
    let map = Map::new(x(0) * x(1) - x(2) * x(3), &[&[5], &[3, 5], &[5], &[3, 1]]).expect("they broadcast");
    let one = map.with_one_input(0, 2);
    assert_eq!(one, Map::new(x(0) * x(1) - x(0) * x(2), &[&[5], &[3, 5], &[3, 1]]).expect("they broadcast"));
}

#[test]
fn what_cannot_be_one_is_left() {
    let (f32, f16) = (DType::F32, DType::F16);
    let flat = |inputs, output| map(&[6], &[(&[6], inputs)], &[(x(0).exp(), output)]);
    assert!(flat(f32, f32).fused_with(0, &flat(f16, f32)).is_some(), "f16 at the ends changes nothing");
    assert_eq!(flat(f16, f32).fused_with(0, &flat(f32, f16)), None, "the value between is rounded");
    assert_eq!(flat(f32, f32).fused_with(1, &flat(f32, f32)), None, "there is no such input");
    let repeated = Map::new(x(0) + x(1), &[&[3, 4], &[4]]).expect("they broadcast");
    assert_eq!(repeated.fused_with(1, &Map::unary(4, |x| x.exp())), None, "it would be computed three times");
    let two = map(&[6], &[(&[6], f32)], &[(x(0), f32), (-x(0), f32)]);
    assert_eq!(flat(f32, f32).fused_with(0, &two), None, "both outputs are needed");
    let many = Map::flat(6, (0..7).map(x).reduce(|a, b| a + b).expect("seven"));
    assert_eq!(many.fused_with(0, &Map::binary(6, |a, b| a + b)), None, "nine arguments");
    let long = Map::flat(6, (0..100).fold(x(0), |sum, _| sum.tanh() + 1.0));
    assert_eq!(long.fused_with(0, &long), None, "400 operations");
}

#[test]
fn other_kernels_are_no_maps() {
    assert_eq!(Map::unary(9, |x| x.exp()).as_map(), Some(&Map::flat(9, Expr::input(0).exp())));
    assert_eq!(MapReduce::of(Reducer::Sum, &[3, 3], &[0]).as_map(), None, "sums are not");
}
