//! The shapes and names of an `Mlp`, and its results.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::program::kernels::Map;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{
    Activation, CategoricalColumn, CategoryEmbeddings, Checkpointed, Dropout, Embedding, Error, GroupNorm, Init, LayerNorm,
    Linear, Mlp, MlpConfig, Module, Parameters, ParametersBuilder, RmsNorm, Sequential,
};

fn mlp(hidden: &[usize]) -> (Mlp, Parameters) {
    let mut builder = ParametersBuilder::new();
    let config = MlpConfig { n_inputs: 5, hidden: hidden.to_vec(), n_outputs: 2, activation: Activation::relu() };
    (Mlp::new(&mut builder, &config), builder.build(0))
}

#[track_caller]
fn check(hidden: &[usize], expected: &[(&str, &[usize])]) {
    let (model, params) = mlp(hidden);
    let entries: Vec<_> = params.entries().iter().map(|entry| (entry.name.as_str(), entry.shape.as_slice())).collect();
    assert_eq!(entries, expected, "as PyTorch's `state_dict` has them");
    let graph = Graph::inference("net");
    let x = graph.constant("x", &[0.0; 15], &[3, 5]);
    let bound = params.bind(&graph);
    let y = model.forward(&bound, &x);
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
    let x = graph.constant("x", &[0.0; 12], &[3, 4]);
    let bound = params.bind(&graph);
    let line = line!() + 1;
    model.forward(&bound, &x);
    let error = graph.check().expect_err("the model takes 5 columns");
    let message = "linear: `weight` has shape [7, 5], expected [7, 4], as many columns as the input";
    let start = format!("{message} (in layers.0, at {0}:{line}; the layer was made at {0}:", file!());
    assert!(error.to_string().starts_with(&start), "it names the layer, the caller of the model and its maker: {error}");
}

#[test]
fn a_linear_layer_by_hand() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let layer = Linear::new(&mut builder, "fc", 2, 3, Activation::relu());
    let marker = builder.add("marker", &[1], Init::Constant(7.0));
    let params = builder.build(0);
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    device.write_at(params.values(), params.entries()[0].range.start, &[1.0_f32, 2.0, 3.0, 4.0, -5.0, -6.0])?;
    device.write_at(params.values(), params.entries()[1].range.start, &[0.5_f32, -0.5, 100.0])?;

    let graph = Graph::inference("net");
    let x = graph.constant("x", &[1.0, 1.0, 10.0, -10.0], &[2, 2]);
    let bound = params.bind(&graph);
    assert_eq!(bound.tensor(marker).shape(), [1], "parameters are found by what `add` gave back");
    let module: &dyn Module = &layer;
    let result = module.forward(&bound, &x);
    let y = Persistent::new("y", DType::F32, 6);
    graph.push(Map::unary(6, |x| x), &[result.slice(), graph.buffer(&y)]);
    graph.compile(&device)?.run(1)?;
    // x Wᵀ + b = [3.5, 6.5, 89], [-9.5, -10.5, 110].
    assert_eq!(device.read::<f32>(&y)?, [3.5, 6.5, 89.0, 0.0, 0.0, 110.0], "relu cuts what is below 0");
    Ok(())
}

/// The result of `record` for the parameters, read back.
fn run(params: &Parameters, record: impl Fn(&Graph, &brisk_nn::Bound) -> brisk_nn::tensor::Tensor) -> Result<Vec<f32>, Error> {
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    let graph = Graph::inference("net");
    let result = record(&graph, &params.bind(&graph));
    let y = Persistent::new("y", DType::F32, result.n_elements());
    graph.store(&result, &Graph::state_buffer(), &y);
    graph.compile(&device)?.run(1)?;
    Ok(device.read(&y)?)
}

#[test]
fn a_padding_entry_starts_as_zeros_and_the_others_do_not() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let plain = Embedding::new(&mut builder, "plain", 3, 2);
    let padded = Embedding::with_padding(&mut builder, "padded", 3, 2, 1);
    let params = builder.build(7);
    assert_eq!(params.entries()[1].name, "padded.weight");
    let look_up = |embedding: &Embedding| {
        run(&params, |graph, bound| embedding.forward(bound, &graph.constant_codes("codes", &[0, 1, 2], &[3]), 0))
    };
    assert!(look_up(&plain)?.iter().all(|&x| x != 0.0), "normal numbers");
    let y = look_up(&padded)?;
    assert!(y[2..4] == [0.0, 0.0] && y[..2].iter().chain(&y[4..]).all(|&x| x != 0.0), "only entry 1 is zeros: {y:?}");
    Ok(())
}

#[test]
fn an_mlp_with_categories_by_hand() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let config = MlpConfig { n_inputs: 1, hidden: vec![], n_outputs: 1, activation: Activation::relu() };
    let columns = [CategoricalColumn { n_codes: 3, dim: 1 }, CategoricalColumn { n_codes: 2, dim: 2 }];
    builder.add("marker", &[1], Init::Constant(0.0));
    let model = Mlp::with_categories(&mut builder, &config, &columns);
    let mut params = builder.build(0);
    assert_eq!(params.entries().len(), 5, "the marker, two embeddings, weight and bias");
    let values: [&[f32]; 5] = [&[0.0], &[10.0, 20.0, 30.0], &[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 100.0, 1000.0], &[0.5]];
    for (id, values) in params.ids_where(|_| true).into_iter().zip(values) {
        params.set_initial(id, values)?;
    }
    let module: &dyn Module = &model;
    assert_eq!(params.categorical_columns(), columns);
    let y = run(&params, |graph, bound| {
        let x = graph.constant("x", &[7.0, 8.0], &[2, 1]);
        let codes = graph.constant_codes("codes", &[2, 0, 0, 1], &[2, 2]);
        module.forward(&bound.with_categories(&codes), &x)
    })?;
    // 7 + 2·30 + 100·1 + 1000·2 + 0.5 and 8 + 2·10 + 100·3 + 1000·4 + 0.5.
    assert_eq!(y, [2167.5, 4328.5]);
    Ok(())
}

#[test]
fn embeddings_need_a_code_for_each_column() {
    let mut builder = ParametersBuilder::new();
    let embeddings = CategoryEmbeddings::new(&mut builder, &[CategoricalColumn { n_codes: 3, dim: 1 }; 2]);
    let model = Checkpointed(Sequential(vec![Box::new(embeddings)]));
    let params = builder.build(0);
    assert_eq!(params.categorical_columns().len(), 2);
    let found = |n_categories: Option<usize>| {
        let graph = Graph::inference("net");
        let codes = n_categories.map(|n| graph.constant_codes("codes", &vec![0; 3 * n], &[3, n]));
        let y = model.forward(&params.bind(&graph).with_categories(&codes), &graph.constant("x", &[0.0; 15], &[3, 5]));
        match graph.check() {
            Ok(()) => Ok(y.shape().to_vec()),
            Err(error) => match error.kind() {
                Error::Shape { arg: "categories", found, .. } => Err(found.clone()),
                other => panic!("{other}"),
            },
        }
    };
    assert_eq!(found(Some(2)), Ok(vec![3, 7]));
    assert_eq!(found(Some(3)), Err(vec![3, 3]));
    assert_eq!(found(None), Err(vec![]));
}

#[test]
fn a_layer_norm_starts_as_the_normalised_input() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let layer = LayerNorm::new(&mut builder, "norm", 3).eps(1.0 / 3.0);
    let params = builder.build(0);
    let entries: Vec<_> = params.entries().iter().map(|entry| (entry.name.as_str(), entry.shape.as_slice())).collect();
    assert_eq!(entries, [("norm.weight", &[3][..]), ("norm.bias", &[3])], "as PyTorch's `state_dict` has them");
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    let graph = Graph::inference("net");
    let x = graph.constant("x", &[1.0, 2.0, 3.0, 5.0, 5.0, 5.0], &[2, 3]);
    let module: &dyn Module = &layer;
    let result = module.forward(&params.bind(&graph), &x);
    let (state, y) = (Graph::state_buffer(), Persistent::new("y", DType::F32, 6));
    graph.store(&result, &state, &y);
    graph.compile(&device)?.run(1)?;
    // Variance 2/3 and ε = 1/3: the spread is 1.
    let expected = [-1.0, 0.0, 1.0, 0.0, 0.0, 0.0];
    let found = device.read::<f32>(&y)?;
    assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6), "{found:?}");
    Ok(())
}

#[test]
fn initial_values_of_pytorch_have_its_variance() -> Result<(), Error> {
    let (n_in, n_out) = (300, 200);
    let mut builder = ParametersBuilder::new();
    let weight = builder.add("weight", &[n_out, n_in], Init::Constant(0.0));
    let mut params = builder.build(5);
    for (init, variance, limit) in [
        (Init::kaiming_uniform(n_in), 2.0_f64 / 300.0, (6.0_f64 / 300.0).sqrt()),
        (Init::kaiming_normal(n_in), 2.0 / 300.0, f64::INFINITY),
        (Init::xavier_uniform(n_in, n_out), 2.0 / 500.0, (6.0_f64 / 500.0).sqrt()),
        (Init::xavier_normal(n_in, n_out), 2.0 / 500.0, f64::INFINITY),
    ] {
        params.draw_initial(weight, init)?;
        let values: Vec<f64> = params.initial().into_iter().map(f64::from).collect();
        let n = values.len() as f64;
        let (mean, square) = (values.iter().sum::<f64>() / n, values.iter().map(|x| x * x).sum::<f64>() / n);
        // The deviations of the mean and of the variance are 0.4 % of a deviation and at most 0.6 % of the variance.
        assert!(mean.abs() < 0.02 * variance.sqrt() && (square / variance - 1.0).abs() < 0.03, "{init:?}: {mean}, {square}");
        assert!(values.iter().all(|x| x.abs() <= 1.000_001 * limit), "{init:?}");
    }
    Ok(())
}

#[test]
fn norms_have_the_names_and_values_of_pytorch() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let layers: [Box<dyn Module>; 2] =
        [Box::new(RmsNorm::new(&mut builder, "rms", 4).eps(0.0)), Box::new(GroupNorm::new(&mut builder, "group", 2, 4).eps(0.0))];
    let params = builder.build(0);
    let names: Vec<_> = params.entries().iter().map(|entry| (entry.name.as_str(), entry.shape.as_slice())).collect();
    assert_eq!(names, [("rms.weight", &[4][..]), ("group.weight", &[4]), ("group.bias", &[4])]);
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    let x = [1.0, 3.0, -2.0, 2.0_f32];
    let square = (18.0_f32 / 4.0).sqrt();
    for (layer, expected) in layers.iter().zip([x.map(|x| x / square), [-1.0, 1.0, -1.0, 1.0]]) {
        let graph = Graph::inference("norm");
        let y = layer.forward(&params.bind(&graph), &graph.constant("x", &x, &[1, 4]));
        let (state, result) = (Graph::state_buffer(), Persistent::new("y", DType::F32, 4));
        graph.store(&y, &state, &result);
        graph.compile(&device)?.run(1)?;
        let found = device.read::<f32>(&result)?;
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6), "{found:?}");
        assert_eq!(layer.n_inputs(), Some(4));
    }
    let graph = Graph::inference("norm");
    graph.constant("x", &[1.0; 4], &[1, 4]).group_norm(3, None, None, 1e-5);
    let error = graph.check().expect_err("the groups would differ in size").to_string();
    assert!(error.contains("group_norm: `x` has shape [1, 4], expected channels in 3 groups of equal size"), "{error}");
    Ok(())
}

#[test]
fn dropout_keeps_half_while_training_and_all_in_inference() -> Result<(), Error> {
    let device = Device::cpu()?;
    let layer = Dropout::new(0.5).seed(3);
    let params = ParametersBuilder::new().build(0);
    let run = |graph: &Graph| {
        let x = graph.constant("x", &[1.0; 1000], &[1000]);
        let module: &dyn Module = &layer;
        let y = Persistent::new("y", DType::F32, 1000);
        graph.store(&module.forward(&params.bind(graph), &x), &graph.state(), &y);
        graph.advance(&graph.state());
        graph.compile(&device)?.run(1)?;
        Ok::<Vec<f32>, Error>(device.read(&y)?)
    };
    let trained = run(&Graph::training("train"))?;
    let n_kept = trained.iter().filter(|&&y| y == 2.0).count();
    assert!((400..600).contains(&n_kept) && trained.iter().all(|&y| y == 0.0 || y == 2.0), "{n_kept} of 1000 are kept");
    assert_eq!(run(&Graph::inference("score"))?, [1.0; 1000], "all, as they are");
    Ok(())
}

#[test]
fn an_error_in_a_sequence_names_the_layer_and_the_caller() {
    let mut builder = ParametersBuilder::new();
    let first = Linear::new(&mut builder, "stem", 5, 4, Activation::relu());
    let made = line!() + 1;
    let head = Linear::new(&mut builder, "head", 3, 2, Activation::identity());
    let model = Sequential(vec![Box::new(first), Box::new(Checkpointed(Sequential(vec![Box::new(head)])))]);
    let graph = Graph::training("net");
    let x = graph.constant("x", &[0.0; 15], &[3, 5]);
    let bound = builder.build(0).bind(&graph);
    let line = line!() + 1;
    let y = model.forward(&bound, &x);
    assert_eq!((y.is_failed(), y.shape()), (true, &[3, 2][..]));
    let error = graph.check().expect_err("the head takes 3 columns, not 4");
    let place = error.place().expect("errors of recording have a place");
    assert_eq!(place.scope(), "head");
    assert_eq!(place.outer().map(|outer| (outer.file(), outer.line())), Some((file!(), line)), "{error}");
    assert_eq!(place.made_at().map(|made_at| (made_at.file(), made_at.line())), Some((file!(), made)), "{error}");
    let expected = format!(" (in head, at {0}:{line}; the layer was made at {0}:{made}; recorded at ", file!());
    assert!(error.to_string().starts_with("linear: ") && error.to_string().contains(&expected), "{error}");
}
