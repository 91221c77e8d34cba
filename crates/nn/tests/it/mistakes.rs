//! Mistakes that would otherwise train the wrong model, each with its error.

use brisk_nn::tensor::program::{Device, Error as ProgramError};
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{
    Accumulate, Activation, Adam, Adapters, BatchNorm, BatchNormConfig, CombinedOptimizer, Ema, Error, Flatten, GradScaler,
    GradScalerConfig, Init, Linear, MeanOf, Mlp, MlpConfig, Module, Momentum, Muon, MuonConfig, NumberEmbedding, Optimizer,
    OptimizerConfig, ParameterGroup, Parameters, ParametersBuilder, Periodic, PiecewiseLinear, Reshape, Schedule, Scheduled,
    Sequential, Sgd, StepInputs, TabM, TabMConfig,
};

fn inputs() -> StepInputs {
    StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() }
}

fn model() -> (Linear, Parameters) {
    let mut builder = ParametersBuilder::new();
    let layer = Linear::new(&mut builder, "layer", 2, 3, Activation::identity());
    (layer, builder.build(1))
}

fn output(graph: &Graph, (layer, params): &(Linear, Parameters)) -> brisk_nn::tensor::Tensor {
    layer.forward(&params.bind(graph), &graph.constant("x", &[1.0; 4], &[2, 2]))
}

#[track_caller]
fn refused(result: Result<(), Error>, parts: &[&str]) {
    let message = result.expect_err("a mistake").to_string();
    for part in parts {
        assert!(message.contains(part), "`{part}` in `{message}`");
    }
}

#[test]
fn parameters_that_were_never_written_are_not_zeros() -> Result<(), Error> {
    let device = Device::cpu()?;
    let model = model();
    let graph = Graph::inference("scores");
    let (y, all) = (output(&graph, &model).sum(..), Persistent::new("all", DType::F32, 1));
    graph.push(brisk_kernels::Map::unary(1, |x| x), &[y.slice(), graph.buffer(&all)]);
    let executable = graph.compile(&device)?;
    let error = executable.run(1).expect_err("`write_initial` was forgotten");
    assert!(matches!(&error, ProgramError::Unwritten { buffer, .. } if buffer == "parameters"), "{error}");
    model.1.write_initial(&device)?;
    executable.run(1)?;
    Ok(())
}

#[test]
fn gradients_that_a_step_has_used_are_neither_clipped_nor_accumulated() -> Result<(), Error> {
    type Record = fn(&Graph, &Parameters, &StepInputs);
    let late: [(&str, Record); 3] = [
        ("clip_grads_with_norm", |graph, params, _| drop(params.clip_grad_norm(graph, 1.0))),
        ("clip_grad_value", |graph, params, _| params.clip_grad_value(graph, 1.0)),
        ("accumulate", |graph, params, inputs| Accumulate::new(params, 2).record(graph, params, &inputs.state)),
    ];
    for (op, record) in late {
        let (graph, model, inputs) = (Graph::training("step"), model(), inputs());
        graph.backward(&output(&graph, &model).sum(..))?;
        Adam::new(&model.1).record(&graph, &model.1, &inputs);
        graph.check()?;
        record(&graph, &model.1, &inputs);
        refused(graph.check(), &[op, "before the optimizer's `record`"]);
    }
    Ok(())
}

#[test]
fn an_average_is_of_the_parameters_after_the_step() -> Result<(), Error> {
    let (graph, model, inputs) = (Graph::training("step"), model(), inputs());
    let ema = Ema::new(&model.1, 0.9);
    graph.backward(&output(&graph, &model).sum(..))?;
    Adam::new(&model.1).record(&graph, &model.1, &inputs);
    ema.record(&graph, &model.1, &inputs.state);
    graph.check()?;

    let graph = Graph::training("step");
    output(&graph, &model);
    ema.record(&graph, &model.1, &inputs.state);
    refused(graph.check(), &["ema", "no step of this graph has changed", "after the optimizer's `record`"]);
    Ok(())
}

#[test]
fn rates_that_were_never_written_are_not_zeros() -> Result<(), Error> {
    let device = Device::cpu()?;
    let model = model();
    let graph = Graph::training("step");
    let inputs = StepInputs::new(&graph, 1);
    graph.backward(&output(&graph, &model).sum(..))?;
    Adam::new(&model.1).record(&graph, &model.1, &inputs);
    graph.advance(&inputs.state);
    let executable = graph.compile(&device)?;
    model.1.write_initial(&device)?;
    let error = executable.run(1).expect_err("the rates were forgotten");
    assert!(matches!(&error, ProgramError::Unwritten { buffer, .. } if buffer == "lr"), "{error}");
    device.write(&inputs.lr, &[0.1_f32])?;
    executable.run(1)?;
    Ok(())
}

#[test]
fn rates_of_several_batches_need_an_index_that_advances() -> Result<(), Error> {
    let device = Device::cpu()?;
    let step = |n_batches: usize, make: &dyn Fn(&Parameters) -> Box<dyn Optimizer>, is_held: bool| {
        let params = model().1;
        let graph = Graph::inference("step");
        let inputs = StepInputs::new(&graph, n_batches);
        make(&params).record(&graph, &params, &inputs);
        if is_held {
            graph.hold(&inputs.state);
        }
        graph.compile(&device).map(drop)
    };
    let muon = |params: &Parameters| -> Box<dyn Optimizer> {
        Box::new(Muon::new(params, &params.ids_where(|entry| entry.shape.len() == 2)).expect("a matrix"))
    };
    let scheduled =
        |params: &Parameters| -> Box<dyn Optimizer> { Box::new(Scheduled::new(Sgd::new(params), &Schedule::cosine(0.1), 10)) };
    refused(step(2, &|params| Box::new(Adam::new(params)), false), &["adam", "never advances", "`Graph::advance`"]);
    refused(step(2, &muon, false), &["muon", "never advances"]);
    refused(step(1, &scheduled, false), &["scheduled", "never advances"]);
    step(2, &muon, true)?;
    step(1, &|params| Box::new(Adam::new(params)), false)
}

#[test]
fn each_parameter_has_one_optimizer_of_several() -> Result<(), Error> {
    let params = model().1;
    let record = |optimizer: CombinedOptimizer| {
        let graph = Graph::inference("step");
        optimizer.record(&graph, &params, &inputs());
        graph.check()
    };
    let of = |name: &str| params.ids_where(|entry| entry.name.ends_with(name));
    let sgd = |groups: &[ParameterGroup]| Sgd::new(&params).groups(&params, groups);
    refused(record(CombinedOptimizer::new()), &["combined: no optimizer", "`CombinedOptimizer::and`"]);
    let both = CombinedOptimizer::new().and(Muon::new(&params, &of("weight"))?).and(Adam::new(&params));
    refused(record(both), &["2 optimizers of `layer.weight`", "`ParameterGroup`"]);
    let own = CombinedOptimizer::new().and(Muon::new(&params, &of("weight"))?).and(sgd(&[ParameterGroup::new(of("bias"))])?);
    record(own)?;
    let groups = ["weight", "biass"].map(|name| ParameterGroup::new(of(name)));
    refused(sgd(&groups).map(drop), &["group 2 of 2 without parameters", "`Parameters::ids_where`"]);
    Ok(())
}

#[test]
fn buffers_that_were_never_written_are_not_zeros() -> Result<(), Error> {
    let device = Device::cpu()?;
    let mut builder = ParametersBuilder::new();
    let norm = BatchNorm::new(&mut builder, "norm", &BatchNormConfig::new(2));
    let params = builder.build(1);
    let graph = Graph::inference("scores");
    norm.forward(&params.bind(&graph), &graph.constant("x", &[1.0; 4], &[2, 2]));
    let executable = graph.compile(&device)?;
    device.write(params.values(), &params.initial())?;
    let error = executable.run(1).expect_err("the running statistics have no values");
    assert!(error.to_string().contains("reads `norm.running_mean`"), "{error}");
    Ok(())
}

#[test]
fn two_tensors_of_one_name_are_refused_with_both_places() -> Result<(), Error> {
    let sizes = MlpConfig { n_inputs: 2, hidden: vec![], n_outputs: 1, activation: Activation::relu() };
    let mut builder = ParametersBuilder::new();
    Mlp::new(&mut builder, &sizes);
    let line = line!() + 1;
    Mlp::new(&mut builder, &sizes);
    let params = builder.build(0);
    let [first, second] = [line - 2, line].map(|line| format!("mistakes.rs:{line}:"));
    let parts = ["two tensors are called `layers.0.weight`", &first, &second, "ParametersBuilder::within"];
    let graph = Graph::training("step");
    params.bind(&graph);
    refused(graph.check(), &parts);
    refused(params.write_initial(&Device::cpu()?), &parts);

    let mut builder = ParametersBuilder::new();
    builder.add("scale", &[1], Init::Constant(1.0));
    builder.add_buffer("scale", &[1], 1.0);
    refused(builder.build(0).check(), &["two tensors are called `scale`"]);

    let mut builder = ParametersBuilder::new();
    for path in ["generator", "critic"] {
        builder.within(path, |p| p.within("net", |p| Mlp::new(p, &sizes)));
    }
    let params = builder.build(0);
    params.check()?;
    assert!(params.id_of("critic.net.layers.0.bias").is_some(), "prefixes are nested");
    Ok(())
}

#[test]
fn an_optimizer_belongs_to_one_model() -> Result<(), Error> {
    let (mut builder, mut other) = (ParametersBuilder::new(), ParametersBuilder::new());
    let ids = [&mut builder, &mut other].map(|builder| builder.add("weight", &[4, 4], Init::FanIn(4)));
    let built_at = line!() + 1;
    let [params, other] = [builder.build(1), other.build(1)];
    let places = format!("mistakes.rs:{built_at}:");
    let optimizers: [Box<dyn Optimizer>; 3] =
        [Box::new(Adam::new(&params)), Box::new(Sgd::new(&params)), Box::new(Muon::new(&params, &ids[..1])?)];
    for optimizer in optimizers {
        let graph = Graph::inference("step");
        optimizer.record(&graph, &params.clone(), &inputs());
        graph.check()?;
        optimizer.record(&graph, &other, &inputs());
        refused(graph.check(), &["one made for the parameters built at", &places, "one for each model"]);
    }
    Ok(())
}

#[test]
fn a_scaler_of_two_graphs_belongs_to_one_model() -> Result<(), Error> {
    let scaler = GradScaler::new(GradScalerConfig::default())?;
    let [generator, critic] = [model(), model()];
    let step = |name: &str, model: &(Linear, Parameters)| {
        let graph = Graph::training(name);
        let loss = output(&graph, model).sum(..);
        scaler.backward(&loss)?;
        scaler.step(&graph, &Sgd::new(&model.1), &model.1, &inputs());
        scaler.update(&graph);
        graph.check()
    };
    step("generator", &generator)?;
    step("generator, last batch", &generator)?;
    refused(step("critic", &critic), &["one scaler for the graph `generator`", "and for `critic`", "a `GradScaler` for each"]);
    Ok(())
}

#[test]
fn settings_of_layers_are_refused_with_the_line_that_made_them() {
    let check = |make: &dyn Fn(&mut ParametersBuilder), parts: &[&str]| {
        let mut builder = ParametersBuilder::new();
        make(&mut builder);
        refused(builder.build(0).check(), &[parts, &["mistakes.rs:"]].concat());
    };
    for edges in [vec![2.0, 1.0, 0.0], vec![0.0, 0.0, 1.0], vec![0.0], vec![], vec![0.0, f32::NAN], vec![0.0, f32::INFINITY]] {
        let columns = [vec![0.0, 1.0], edges];
        let make = |p: &mut ParametersBuilder| drop(PiecewiseLinear::new(p, "numbers", &columns, 4));
        check(&make, &["for column 1 of `numbers`", "at least two edges"]);
    }
    for std in [0.0, -1.0, f32::NAN] {
        check(&|p| _ = Periodic::new(p, "numbers", 2, 8, std, 4), &["std", "for `numbers`", "above 0"]);
    }
    let config = TabMConfig {
        n_inputs: 2,
        numbers: NumberEmbedding::Plain,
        n_members: 2,
        adapters: Adapters::First,
        hidden: vec![4],
        dropout: 0.0,
        n_outputs: 1,
        mean_of: MeanOf::Softmaxes,
    };
    check(&|p| drop(TabM::new(p, &config, &[])), &["tab_m: `Softmaxes` of 1 output", "`Sigmoids`"]);
}

#[test]
fn nesterov_momentum_needs_a_momentum() {
    let params = model().1;
    for form in [Momentum::Nesterov, Momentum::FoldedNesterov] {
        let graph = Graph::inference("step");
        Sgd::new(&params).momentum(0.0, form).record(&graph, &params, &inputs());
        refused(graph.check(), &["momentum = 0", "between 0 and 1"]);
    }
}

#[test]
fn unknown_matrices_of_muon_are_named() {
    let params = model().1;
    let matrices = ["layer.weight", "layr.weight"].map(str::to_owned).to_vec();
    let config = OptimizerConfig::Muon(MuonConfig { matrices, ..MuonConfig::default() });
    refused(config.build(&params).map(drop), &["unknown matrices [\"layr.weight\"]", "[\"layer.weight\"]"]);
}

#[test]
fn shapes_of_modules() {
    fn is_shared_by_threads<T: Send + Sync>() {}
    is_shared_by_threads::<Box<dyn Module>>();
    let graph = Graph::inference("shapes");
    let params = ParametersBuilder::new().build(0).bind(&graph);
    let x = graph.constant("x", &[1.0; 24], &[2, 12]);
    let images = Reshape::new([2, 3, 2]).forward(&params, &x);
    assert_eq!(images.shape(), [2, 2, 3, 2]);
    assert_eq!(Sequential(vec![Box::new(Flatten)]).forward(&params, &images).shape(), [2, 12]);
    assert!(graph.check().is_ok());
    Reshape::new([5]).forward(&params, &x);
    refused(graph.check(), &["reshape: `x` has shape [2, 12], expected [n, …] with rows of as many elements as [5]"]);
}
