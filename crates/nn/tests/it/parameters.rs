//! One flat buffer: the position of each tensor, and its initial values.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Mode, Persistent, Reduction, Tensor};
use brisk_nn::{
    Activation, Adam, CategoricalColumn, CategoryEmbeddings, Error, Init, Mlp, MlpConfig, Optimizer, Parameters,
    ParametersBuilder, StepInputs,
};

fn initial(params: &Parameters) -> Result<Vec<f32>, Error> {
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    Ok(device.read(params.values())?)
}

fn is_padding(params: &Parameters, i: usize) -> bool {
    !params.entries().iter().any(|entry| entry.range.contains(&i))
}

/// Sizes that are not multiples of the alignment.
fn mlp(seed: u64) -> (Mlp, Parameters) {
    let mut builder = ParametersBuilder::new();
    let config = MlpConfig { n_inputs: 5, hidden: vec![7, 13], n_outputs: 1, activation: Activation::relu() };
    (Mlp::new(&mut builder, &config), builder.build(seed))
}

#[test]
fn each_tensor_starts_at_a_multiple_of_64_elements() {
    let mut builder = ParametersBuilder::new();
    for (name, shape) in [("a", &[3, 5][..]), ("b", &[64]), ("c", &[]), ("d", &[65])] {
        builder.add(name, shape, Init::Constant(1.0));
    }
    let params = builder.build(0);
    let ranges: Vec<_> = params.entries().iter().map(|entry| entry.range.clone()).collect();
    assert_eq!(ranges, [0..15, 64..128, 128..129, 192..257], "one after the other");
    assert_eq!(params.len(), 320, "the end is aligned too");
    assert_eq!(params.n_trained(), 15 + 64 + 1 + 65, "padding is not trained");
    assert_eq!((params.values().len(), params.grads().len()), (320, 320), "both buffers have the same layout");
}

#[test]
fn no_parameters_still_have_a_buffer() {
    let params = ParametersBuilder::new().build(0);
    assert!(params.is_empty(), "there are none");
    assert_eq!((params.len(), params.n_trained()), (64, 0), "a device refuses a buffer of nothing");
}

#[test]
fn padding_is_0_and_stays_0_when_adam_steps() -> Result<(), Error> {
    let (model, params) = mlp(3);
    assert!((0..params.len()).any(|i| is_padding(&params, i)), "there is padding to look at");
    let adam = Adam::new(&params).eps(1e-12);
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    let graph = Graph::new("step", Mode::Training);
    let ramp: Vec<f32> = (0..9 * 5).map(|i| i as f32 / 20.0 - 1.0).collect();
    let x = graph.constant("x", &ramp, &[9, 5]);
    let (target, weight) = (graph.constant("target", &[1.0; 9], &[9]), graph.constant("weight", &[1.0; 9], &[9]));
    let loss = model.forward(&params.bind(&graph), &x).mse_loss(&target.reshape(&[9, 1]), &weight, Reduction::Mean);
    graph.backward(&loss)?;
    adam.record(&graph, &params, &inputs);
    graph.advance(&inputs.state);

    let device = Device::cpu()?;
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    device.write(&inputs.lr, &[0.05_f32])?;
    executable.run(25)?;

    let flat = [("values".to_owned(), params.values()), ("grads".to_owned(), params.grads())];
    for (name, buffer) in flat.into_iter().chain(adam.state()) {
        let values: Vec<f32> = device.read(buffer)?;
        assert_eq!(values.len(), params.len(), "{name} has the parameters' layout");
        assert!(values.iter().any(|&value| value != 0.0), "{name} has been written");
        for (i, value) in values.into_iter().enumerate() {
            assert!(value.is_finite(), "{name}[{i}] is {value}");
            assert!(!is_padding(&params, i) || value.to_bits() == 0, "{name}[{i}] is padding, and is {value}");
        }
    }
    Ok(())
}

#[test]
fn layers_start_within_one_over_the_root_of_their_inputs() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let config = MlpConfig { n_inputs: 28, hidden: vec![100], n_outputs: 1, activation: Activation::relu() };
    Mlp::new(&mut builder, &config);
    let params = builder.build(11);
    let values = initial(&params)?;
    for (entry, fan_in) in params.entries().iter().zip([28_f32, 28.0, 100.0, 100.0]) {
        let (values, bound) = (&values[entry.range.clone()], 1.0 / fan_in.sqrt());
        let greatest = values.iter().fold(0.0_f32, |greatest, value| greatest.max(value.abs()));
        assert!(greatest <= bound, "{}: {greatest} is beyond {bound}", entry.name);
        if values.len() >= 100 {
            let mean = values.iter().sum::<f32>() / values.len() as f32;
            assert!(greatest > 0.9 * bound, "{}: {greatest} is far from {bound}", entry.name);
            assert!(mean.abs() < 0.2 * bound, "{}: the mean is {mean}, far from 0", entry.name);
        }
    }
    Ok(())
}

#[test]
fn what_layers_start_as_depends_on_the_seed_and_their_place_alone() -> Result<(), Error> {
    let start = |seed| initial(&mlp(seed).1);
    assert_eq!(start(1)?, start(1)?, "the same seed");
    assert_ne!(start(1)?, start(2)?, "another seed");
    assert_ne!(start(1)?, start(1 + (1 << 32))?, "all 64 bits of the seed count");

    let mut builder = ParametersBuilder::new();
    for name in ["a", "b", "c"] {
        builder.add(name, &[20], Init::FanIn(4));
    }
    let longer = builder.build(1);
    let values = initial(&longer)?;
    let [a, b, _] = [0, 1, 2].map(|i| &values[longer.entries()[i].range.clone()]);
    assert_ne!(a, b, "parameters differ from each other");
    let mut builder = ParametersBuilder::new();
    builder.add("a", &[10], Init::FanIn(4));
    assert_eq!(initial(&builder.build(1))?[..10], a[..10], "neither what comes after nor the length changes a value");
    Ok(())
}

#[test]
fn a_starting_value_can_be_replaced() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    builder.add("a", &[3], Init::Constant(0.5));
    let b = builder.add("b", &[2], Init::Constant(0.25));
    let mut params = builder.build(0);
    params.set_initial(b, &[8.0, 9.0])?;
    let values = initial(&params)?;
    assert_eq!((&values[..4], &values[64..67]), (&[0.5, 0.5, 0.5, 0.0][..], &[8.0, 9.0, 0.0][..]), "only `b` has changed");
    let error = params.set_initial(b, &[1.0]).expect_err("there is one value too few");
    assert_eq!(error.to_string(), "set_initial: `values` has shape [1], expected 2 elements for `b`");
    Ok(())
}

#[test]
fn a_model_that_no_machine_has_room_for_can_be_made_and_measured() {
    let mut builder = ParametersBuilder::new();
    let config = MlpConfig { n_inputs: 28, hidden: vec![1 << 20, 1 << 20], n_outputs: 1, activation: Activation::relu() };
    Mlp::new(&mut builder, &config);
    builder.add_buffer("running", &[1 << 20, 1 << 20], 0.0);
    let params = builder.build(0);
    assert!(params.n_trained() > 1 << 40, "{} parameters", params.n_trained());
    assert_eq!(params.values().len_bytes(), 4 * params.len(), "nothing is allocated yet");
    assert_eq!(params.check(), Ok(()), "the elements can be counted");
}

#[test]
fn a_model_of_too_many_elements_to_count_is_refused() {
    let parameter = |shapes: &[&[usize]]| {
        let mut builder = ParametersBuilder::new();
        for (i, shape) in shapes.iter().enumerate() {
            builder.add(format!("layers.{i}.weight"), shape, Init::Constant(0.0));
        }
        builder.build(0)
    };
    let huge = usize::MAX / 100;
    for (shapes, culprit) in [
        (&[&[4][..], &[usize::MAX, 2]][..], "`layers.1.weight` has shape [18446744073709551615, 2]"),
        (&[&[1 << 40, 1 << 40]], "`layers.0.weight` has shape [1099511627776, 1099511627776]"),
        (&[&[huge], &[huge]], "`layers.1.weight` has shape [184467440737095516]"),
    ] {
        let params = parameter(shapes);
        let graph = Graph::training("step");
        let device = Device::cpu().expect("threads");
        assert!(params.bind(&graph).tensors().iter().all(Tensor::is_failed));
        let errors = [params.check().err(), graph.check().err(), params.write_initial(&device).err()];
        for error in errors {
            let error = error.expect("the parameters cannot be counted").to_string();
            assert!(error.contains(culprit) && error.contains("expected a smaller model"), "{error}");
        }
    }
    let mut builder = ParametersBuilder::new();
    builder.add_buffer("running", &[usize::MAX, 3], 1.0);
    let error = builder.build(0).check().expect_err("nor can the buffer").to_string();
    assert!(error.contains("`running` has shape"), "{error}");
}

/// More values than are drawn at a time, with parameters that lie across the boundary.
#[test]
fn starting_values_do_not_depend_on_how_many_are_drawn_at_a_time() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    builder.add("small", &[1000], Init::Constant(2.0));
    let wide = builder.add("wide", &[1 << 20, 2], Init::Normal(1.0));
    let set = builder.add("set", &[1 << 20], Init::FanIn(7));
    builder.add("table", &[10, 4], Init::Embedding { dim: 4, padding: Some(3) });
    let mut params = builder.build(5);
    let values: Vec<f32> = (0..1 << 20).map(|i| i as f32).collect();
    params.set_initial(set, &values)?;
    let written = initial(&params)?;
    assert!(written == params.initial(), "written in pieces, and drawn at once");
    for (id, entry) in [(wide, params.entry(wide)), (set, params.entry(set))] {
        assert!(written[entry.range.clone()] == params.initial_of(id), "`{}`", entry.name);
    }
    assert!(params.initial_of(set) == values, "as they were set");
    let n_distinct = params.initial_of(wide).iter().map(|value| value.to_bits()).collect::<std::collections::HashSet<_>>().len();
    assert!(n_distinct > 1 << 18, "no piece repeats another: {n_distinct} values");
    let table = params.id_of("table").expect("it was added");
    assert_eq!(params.initial_of(table)[12..16], [0.0; 4], "the padding row");
    Ok(())
}

#[test]
fn fingerprints_of_starting_values() -> Result<(), Error> {
    let (_, a) = mlp(3);
    let (_, mut b) = mlp(3);
    assert_eq!(a.initial_fingerprint(), b.initial_fingerprint());
    assert_ne!(a.initial_fingerprint(), mlp(4).1.initial_fingerprint(), "another seed");
    let id = b.id_of("layers.0.bias").expect("a bias");
    b.set_initial(id, &[0.0; 7])?;
    let with_zeros = b.initial_fingerprint();
    assert_ne!(a.initial_fingerprint(), with_zeros, "a value was set");
    b.set_initial(id, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])?;
    assert_ne!(b.initial_fingerprint(), with_zeros, "another one");
    Ok(())
}

#[test]
fn the_layers_of_a_model_read_the_same_categories() {
    let with = |second: &[usize]| {
        let mut builder = ParametersBuilder::new();
        let columns =
            |n_codes: &[usize], dim| n_codes.iter().map(|&n_codes| CategoricalColumn { n_codes, dim }).collect::<Vec<_>>();
        builder.within("deep", |params| CategoryEmbeddings::new(params, &columns(&[3, 5], 4)));
        builder.within("linear", |params| CategoryEmbeddings::new(params, &columns(second, 1)));
        builder.build(0).check()
    };
    assert_eq!((with(&[3, 5]), with(&[])), (Ok(()), Ok(())), "other dimensions, or none");
    let error = with(&[3, 6]).expect_err("other columns").to_string();
    assert!(error.contains("a layer that reads categories with [3, 6] codes, and one before with [3, 5]"), "{error}");
}
