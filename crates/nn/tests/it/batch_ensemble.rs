//! The layer of a batch ensemble, against values of PyTorch 2.15 in f64: `relu(((x * r) @ W.T) * s + b)`, and its gradients for
//! the sum of `y * [1, …, 8]`.

use brisk_nn::tensor::Graph;
use brisk_nn::{BatchEnsemble, Error, Parameters, ParametersBuilder};

use crate::layer_case::{self, Parameter};

const PARAMETERS: [Parameter<'_>; 4] = [
    ("layer.weight", &[2, 3], &[0.5, -1.0, 0.25, 1.5, 0.75, -0.5], &[-15.0, -21.5, 8.5, 7.0, 2.0, -6.0]),
    ("layer.scale_in", &[2, 3], &[1.0, -1.0, 2.0, 0.5, 1.0, -1.0], &[1.5, -1.0, 2.375, 3.0, 22.0, -0.375]),
    ("layer.scale_out", &[2, 2], &[1.0, 2.0, -1.0, 0.5], &[3.25, 2.0, -12.875, 22.0]),
    ("layer.bias", &[2, 2], &[0.25, -0.5, 1.0, -1.0], &[6.0, 2.0, 10.0, 8.0]),
];

/// Two rows of two members.
const X: [f32; 12] = [1.0, 2.0, -1.0, 0.5, -1.0, 3.0, -2.0, 1.0, 0.5, 1.5, 2.5, -0.5];
const Y: [f32; 8] = [2.25, 1.5, 0.625, 0.0, 0.5, 0.0, 3.0, 0.375];

fn layer() -> (BatchEnsemble, Parameters) {
    let mut builder = ParametersBuilder::new();
    let layer = BatchEnsemble::new(&mut builder, "layer", 2, 3, 2);
    (layer, builder.build(7))
}

#[test]
fn values_and_gradients_are_those_of_pytorch() -> Result<(), Error> {
    let (layer, params) = layer();
    layer_case::check(params, &PARAMETERS, (&X, &[4, 3]), &Y, 0.0, |params, x| layer.forward(params, x))
}

#[test]
fn members_start_alike() {
    let (_, params) = layer();
    let initial = |name: &str| params.initial_of(params.id_of(name).expect(name));
    assert_eq!([initial("layer.scale_in"), initial("layer.scale_out")].concat(), [1.0; 10]);
    let bias = initial("layer.bias");
    assert_eq!(bias[..2], bias[2..]);
    assert!(bias[0] != bias[1] && bias.iter().all(|value| value.abs() < 1.0 / 3.0_f32.sqrt()), "{bias:?}");
}

#[test]
fn rows_must_be_those_of_all_members() {
    let (layer, params) = layer();
    for shape in [[3, 3], [6, 2]] {
        let graph = Graph::inference("predict");
        layer.forward(&params.bind(&graph), &graph.constant("x", &vec![0.0; shape[0] * shape[1]], &shape));
        let error = graph.check().expect_err("these are not rows of two members").to_string();
        assert!(error.contains("batch_ensemble: `x` has shape") && error.contains("[n_rows * 2, 3]"), "{error}");
    }
}
