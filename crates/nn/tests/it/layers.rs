//! The shapes and names of an `Mlp`, and what it computes.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::program::kernels::Activate;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{Activation, Error, Init, Linear, Mlp, MlpConfig, Module, Parameters, ParametersBuilder};

fn mlp(hidden: &[usize]) -> (Mlp, Parameters) {
    let mut builder = ParametersBuilder::new();
    let config = MlpConfig { n_inputs: 5, hidden: hidden.to_vec(), n_outputs: 2, activation: Activation::Relu };
    (Mlp::new(&mut builder, &config), builder.build(0))
}

#[track_caller]
fn check(hidden: &[usize], expected: &[(&str, &[usize])]) {
    let (model, params) = mlp(hidden);
    let entries: Vec<_> = params.entries().iter().map(|entry| (entry.name.as_str(), entry.shape.as_slice())).collect();
    assert_eq!(entries, expected, "as PyTorch's `state_dict` has them");
    let graph = Graph::inference("net");
    let x = graph.constant("x", &[0.0; 15], &[3, 5]).expect("15 values");
    let bound = params.bind(&graph).expect("the parameters are f32");
    let y = model.forward(&bound, &x).expect("the columns fit");
    assert_eq!(y.shape(), [3, 2], "a row for a row");
    assert_eq!(graph.with_program(|program| program.n_kernels()), expected.len() / 2, "a layer is one kernel");
}

#[test]
fn an_mlp_has_a_layer_more_than_hidden_ones() {
    check(
        &[7, 3],
        &[
            ("layers.0.weight", &[7, 5]),
            ("layers.0.bias", &[7]),
            ("layers.1.weight", &[3, 7]),
            ("layers.1.bias", &[3]),
            ("layers.2.weight", &[2, 3]),
            ("layers.2.bias", &[2]),
        ],
    );
}

#[test]
fn an_mlp_without_hidden_layers_is_linear() {
    check(&[], &[("layers.0.weight", &[2, 5]), ("layers.0.bias", &[2])]);
}

#[test]
fn another_number_of_columns_is_refused() {
    let (model, params) = mlp(&[7]);
    let graph = Graph::inference("net");
    let x = graph.constant("x", &[0.0; 12], &[3, 4]).expect("12 values");
    let bound = params.bind(&graph).expect("the parameters are f32");
    let error = model.forward(&bound, &x).expect_err("the model takes 5 columns");
    let message = "linear: `weight` has shape [7, 5], expected [7, 4], as many columns as the input";
    assert_eq!(error.to_string(), message, "it names both");
}

#[test]
fn a_linear_layer_by_hand() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let layer = Linear::new(&mut builder, "fc", 2, 3, Activation::Relu);
    let marker = builder.add("marker", &[1], Init::Constant(7.0));
    let params = builder.build(0);
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    device.write_at(params.values(), params.entries()[0].range.start, &[1.0_f32, 2.0, 3.0, 4.0, -5.0, -6.0])?;
    device.write_at(params.values(), params.entries()[1].range.start, &[0.5_f32, -0.5, 100.0])?;

    let graph = Graph::inference("net");
    let x = graph.constant("x", &[1.0, 1.0, 10.0, -10.0], &[2, 2])?;
    let bound = params.bind(&graph)?;
    assert_eq!(bound.tensor(marker).shape(), [1], "parameters are found by what `add` gave back");
    let module: &dyn Module = &layer;
    let result = module.forward(&bound, &x)?;
    let y = Persistent::new("y", DType::F32, 6);
    graph.with_program(|program| {
        let y = program.persistent(&y);
        program.push(Activate { n: 6, activation: Activation::Identity }, &[result.slice(), y])
    })?;
    graph.compile(&device)?.run(1)?;
    // x Wᵀ + b = [3.5, 6.5, 89], [-9.5, -10.5, 110].
    assert_eq!(device.read::<f32>(&y)?, [3.5, 6.5, 89.0, 0.0, 0.0, 110.0], "relu cuts what is below 0");
    Ok(())
}
