//! Which gradients a step has: of every use of a parameter, and none where the loss does not depend on one.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{Graph, Persistent, Reduction, Tensor};
use brisk_nn::{
    Accumulate, Activation, Adam, CautiousAdamW, Ema, EmaConfig, Error, Init, Linear, Muon, Optimizer, ParameterGroup,
    ParameterId, Parameters, ParametersBuilder, ScheduleFreeAdamW, Sgd, StepInputs, WeightDecay,
};

/// Parameters `used` and `unused`, of 4 × 4 ones.
fn two() -> (Parameters, [ParameterId; 2]) {
    let mut builder = ParametersBuilder::new();
    let ids = ["used", "unused"].map(|name| builder.add(name, &[4, 4], Init::Constant(1.0)));
    (builder.build(1), ids)
}

fn refused(graph: &Graph, parts: &[&str]) {
    let message = graph.check().expect_err("a mistake").to_string();
    parts.iter().for_each(|part| assert!(message.contains(part), "`{part}` in `{message}`"));
}

#[test]
fn parameters_bound_twice_have_the_gradient_of_both_uses() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let layer = Linear::new(&mut builder, "layer", 1, 1, Activation::identity());
    let mut params = builder.build(0);
    let [weight, bias] = ["layer.weight", "layer.bias"].map(|name| params.id_of(name).expect("a parameter of the layer"));
    params.set_initial(weight, &[2.0])?;
    params.set_initial(bias, &[1.0])?;
    let graph = Graph::training("twice");
    let x = graph.constant("x", &[3.0], &[1, 1]);
    let inner = layer.forward(&params.bind(&graph), &x);
    graph.backward(&layer.forward(&params.bind(&graph), &inner).sum(..))?;
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    graph.compile(&device)?.run(1)?;
    // y = w (w x + b) + b
    let grads = device.read::<f32>(params.grads())?;
    assert_eq!([weight, bias].map(|id| grads[params.entry(id).range.start]), [13.0, 3.0]);
    Ok(())
}

#[test]
fn an_average_shares_the_gradients_and_cannot_be_bound_to_them_too() {
    let (params, _) = two();
    let graph = Graph::training("teacher");
    params.bind(&graph);
    let averaged = Ema::new(&params, 0.9).averaged(&params);
    averaged.bind_frozen(&graph);
    assert!(graph.check().is_ok());
    averaged.bind(&graph);
    refused(&graph, &["also those of another parameter, of shape [4, 4]"]);
}

/// The parameters after a step of a graph whose loss is the sum of `used` elements, from gradients of 1 that another graph left.
fn step(optimizer: &dyn Optimizer, params: &Parameters, loss: impl Fn(&[Tensor]) -> Tensor) -> Result<Vec<f32>, Error> {
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    let others = Graph::training("another");
    others.backward(&(params.bind(&others).tensors()[1].sum(..) + params.bind(&others).tensors()[0].sum(..)))?;
    others.compile(&device)?.run(1)?;
    let graph = Graph::training("step");
    let inputs = StepInputs::new(&graph, 1);
    graph.backward(&loss(params.bind(&graph).tensors()))?;
    optimizer.record(&graph, params, &inputs);
    graph.advance(&inputs.state);
    device.write(&inputs.lr, &[0.1_f32])?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(device.read::<f32>(params.grads())?[params.entries()[1].range.start], 0.0, "the gradient is replaced");
    Ok(device.read(params.values())?)
}

#[test]
fn a_step_leaves_parameters_without_a_gradient_as_they_are() -> Result<(), Error> {
    let (params, ids) = two();
    let decay = WeightDecay::Decoupled(0.5);
    let group = |id: ParameterId| ParameterGroup::new([id]).weight_decay(0.5);
    let optimizers: [Box<dyn Optimizer>; 7] = [
        Box::new(Sgd::new(&params).weight_decay(0.5)),
        Box::new(Sgd::new(&params).groups(&params, &[group(ids[0]), group(ids[1])])?),
        Box::new(Adam::new(&params).weight_decay(decay)),
        Box::new(Adam::new(&params).eps(0.0)),
        Box::new(CautiousAdamW::new(&params).weight_decay(0.5)),
        Box::new(ScheduleFreeAdamW::new(&params).weight_decay(0.5)),
        Box::new(Muon::new(&params, &ids)?),
    ];
    for optimizer in optimizers {
        let values = step(&*optimizer, &params, |tensors| tensors[0].sum(..))?;
        let [used, unused] = [0, 1].map(|i| &values[params.entries()[i].range.clone()]);
        assert!(used.iter().all(|value| *value < 1.0), "{optimizer:?}: {used:?}");
        assert!(unused.iter().all(|value| *value == 1.0), "{optimizer:?}: {unused:?}");
    }
    Ok(())
}

#[test]
fn what_reads_gradients_is_recorded_after_the_backward_pass() -> Result<(), Error> {
    let (params, _) = two();
    let state = Graph::state_buffer();
    type Record<'a> = &'a dyn Fn(&Graph);
    let records: [(&str, Record<'_>); 4] = [
        ("sgd", &|graph| Sgd::new(&params).record(graph, &params, &StepInputs::new(graph, 1))),
        ("grad_norm", &|graph| drop(params.clip_grad_norm(graph, 1.0))),
        ("clip_grad_value", &|graph| params.clip_grad_value(graph, 1.0)),
        ("accumulate", &|graph| Accumulate::new(&params, 2).record(graph, &params, &state)),
    ];
    for (op, record) in records {
        let without_backward = Graph::training("gradients of another graph");
        record(&without_backward);
        without_backward.check()?;
        let early = Graph::training("step");
        params.bind(&early);
        record(&early);
        refused(&early, &[op, "`Graph::backward`", "gradients_of_a_step.rs"]);
        let others = Graph::training("loss of another model");
        others.backward(&two().0.bind(&others).tensors()[0].sum(..))?;
        record(&others);
        refused(&others, &[op, "not bound in this graph"]);
        let unreached = Graph::training("both models");
        params.bind(&unreached);
        unreached.backward(&two().0.bind(&unreached).tensors()[0].sum(..))?;
        record(&unreached);
        refused(&unreached, &[op, "on none of which the loss"]);
    }
    Ok(())
}

#[test]
fn averages_belong_to_one_model() {
    let (params, other) = (two().0, two().0);
    let state = Graph::state_buffer();
    let graph = Graph::inference("step");
    Ema::new(&params, 0.9).record(&graph, &other, &state);
    refused(&graph, &["ema: one made for the parameters built at"]);
    let graph = Graph::inference("step");
    Accumulate::new(&params, 2).record(&graph, &other, &state);
    refused(&graph, &["accumulate: one made for the parameters built at"]);
}

#[test]
fn an_average_from_initial_parameters_needs_them() -> Result<(), Error> {
    let (params, _) = two();
    let device = Device::cpu()?;
    params.write_initial(&device)?;
    let ema = Ema::new(&params, EmaConfig::new(0.9).from_initial());
    let graph = Graph::inference("step");
    let state = graph.state();
    ema.record(&graph, &params, &state);
    graph.advance(&state);
    let executable = graph.compile(&device)?;
    let error = executable.run(1).expect_err("`Ema::write_initial` was forgotten");
    assert!(error.to_string().contains("ema.average"), "{error}");
    ema.write_initial(&params, &device)?;
    executable.run(1)?;
    Ok(())
}

#[test]
fn layers_and_groups_are_used_with_their_own_parameters() {
    let model = || {
        let mut builder = ParametersBuilder::new();
        let layer = Linear::new(&mut builder, "layer", 2, 3, Activation::identity());
        (layer, builder.build(1))
    };
    let ((teacher, teachers), (_, students)) = (model(), model());
    for params in [students.clone(), ParametersBuilder::new().build(0)] {
        let graph = Graph::inference("forward");
        let (x, rows) = (graph.constant("x", &[1.0; 4], &[2, 2]), graph.constant("rows", &[1.0; 2], &[2]));
        let _ = teacher.forward(&params.bind(&graph), &x).mse_loss(&x, &rows, Reduction::Mean);
        refused(&graph, &["a tensor of another model, added at", "gradients_of_a_step.rs"]);
    }
    let ids = teachers.ids_where(|_| true);
    let groups = [ParameterGroup::new(ids.clone())];
    for error in [
        Adam::new(&students).groups(&students, &groups).map(drop).expect_err("a group of another model"),
        Muon::new(&students, &ids[..1]).map(drop).expect_err("a matrix of another model"),
        students.clone().set_initial(ids[0], &[0.0; 6]).expect_err("a parameter of another model"),
    ] {
        assert!(error.to_string().contains("a tensor of another model"), "{error}");
    }
}

#[test]
fn errors_of_an_optimizer_name_the_line_that_made_it() {
    let (params, _) = two();
    let line = line!() + 1;
    let optimizer: Box<dyn Optimizer> = Box::new(Adam::new(&params).betas(1.0, 0.9));
    let graph = Graph::inference("step");
    let lr = Persistent::new("lr", brisk_nn::tensor::DType::F32, 1);
    optimizer.record(&graph, &params, &StepInputs { lr, state: Graph::state_buffer() });
    refused(&graph, &["beta1 = 1", &format!("(at crates/nn/tests/it/gradients_of_a_step.rs:{line};")]);
}
