//! Periodic embeddings, against `PeriodicEmbeddings(2, 3, n_frequencies=2, activation=True, lite=False)` of the package
//! `rtdl_num_embeddings` 0.0.12 in f64.

use brisk_nn::tensor::Graph;
use brisk_nn::{Error, ParametersBuilder, Periodic};

use crate::layer_case::{self, Parameter};

#[rustfmt::skip]
const WEIGHT: [f32; 24] = [
    -0.625, 0.25, -0.25, 0.625, 0.125, -0.375, 0.5, 0.0, -0.5, 0.375, -0.125, -0.625,
    0.25, -0.25, 0.625, 0.125, -0.375, 0.5, 0.0, -0.5, 0.375, -0.125, -0.625, 0.25,
];
#[rustfmt::skip]
const WEIGHT_GRADIENT: [f32; 24] = [
    -5.346039, 1.782013, 0.0, 4.702282, 1.175571, 0.0, 3.631924, 0.907981, 0.0, 4.854102, -1.618034, 0.0,
    1.236068, 1.545085, 0.0, 2.351141, 2.938926, 0.0, -3.804226, -4.755283, 0.0, -3.236068, -4.045085, 0.0,
];
const PARAMETERS: [Parameter<'_>; 3] = [
    ("layer.frequencies", &[2, 1, 1, 2], &[0.25, -0.5, 1.0, 0.125], &[-11.148, -19.85275, 7.617532, 24.45255]),
    ("layer.weight", &[2, 4, 3], &WEIGHT, &WEIGHT_GRADIENT),
    ("layer.bias", &[2, 1, 3], &[0.5, -0.25, 0.125, 0.0, 0.25, -0.125], &[8.0, 2.0, 0.0, 4.0, 5.0, 0.0]),
];
const Y: [f32; 12] = [0.2341006, 0.1473519, 0.0, 0.2518545, 0.9334902, 0.0, 1.954621, 0.0, 0.0, 0.0, 0.0, 0.0];

#[test]
fn values_and_gradients_are_those_of_pytorch() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let layer = Periodic::new(&mut builder, "layer", 2, 2, 1.0, 3);
    let x = [0.3, -1.2, 1.7, 0.45];
    layer_case::check(builder.build(7), &PARAMETERS, (&x, &[2, 2]), &Y, 1e-5, |params, x| layer.forward(params, x))
}

#[test]
fn frequencies_are_at_most_three_deviations() {
    let mut builder = ParametersBuilder::new();
    Periodic::new(&mut builder, "layer", 100, 100, 0.5, 1);
    let params = builder.build(7);
    let frequencies = params.initial_of(params.id_of("layer.frequencies").expect("it was added"));
    assert!(frequencies.iter().all(|frequency| frequency.abs() <= 1.5), "{frequencies:?}");
    let variance = frequencies.iter().map(|frequency| frequency * frequency).sum::<f32>() / 10_000.0;
    // Of a normal distribution that is cut at 3 deviations, 0.9733 times that of the whole.
    assert!((variance / (0.25 * 0.9733) - 1.0).abs() < 0.05, "{variance}");
}

#[test]
fn columns_must_be_as_many_as_the_layer_has() {
    let mut builder = ParametersBuilder::new();
    let layer = Periodic::new(&mut builder, "layer", 2, 2, 1.0, 3);
    let graph = Graph::inference("predict");
    layer.forward(&builder.build(7).bind(&graph), &graph.constant("x", &[0.0; 6], &[2, 3]));
    let error = graph.check().expect_err("there is a column too many").to_string();
    assert!(error.contains("periodic: `x` has shape") && error.contains("[n_rows, 2]"), "{error}");
}
