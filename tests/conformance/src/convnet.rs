//! The small convolutional network: composed of layers, trained on the whole batch, with its running statistics read together
//! with its parameters.

use anyhow::{Context, Result};
use brisk_nn::tensor::Pool2d;
use brisk_nn::{
    BatchNorm, BatchNormConfig, Bias, Conv2d, Conv2dConfig, GlobalMaxPool2d, Linear, MaxPool2d, ParametersBuilder, Sequential,
    StepInputs,
};
use brisk_program::Device;
use brisk_tensor::{Activation, CrossEntropyOptions, DType, Graph, Persistent};
use brisk_train::{DataParallel, ReduceOp};

use crate::case::{Case, Outputs};
use crate::form::Form;
use crate::optimizers;

/// The fixture's names of the parameters, and ours.
const NAMES: [(&str, &str); 4] =
    [("conv", "conv.weight"), ("gamma", "norm.weight"), ("beta", "norm.bias"), ("head", "head.weight")];

pub(crate) fn run(case: &Case, device: &Device, form: Form) -> Result<Option<Outputs>> {
    run_on(case, device, form, DataParallel::single())
}

/// The same with the images split across replicas, whose mean losses are weighted by their numbers of images.
pub(crate) fn run_on(case: &Case, device: &Device, form: Form, replica: &DataParallel) -> Result<Option<Outputs>> {
    // Its layers round by themselves, or not at all.
    if case.op != "train_convnet" || matches!(form, Form::Rounded(_)) {
        return Ok(None);
    }
    let n_steps = case.number("steps")? as usize;
    let (x, y) = (case.tensor("in.x")?, case.tensor("in.y")?);
    let (conv, head) = (&case.tensor("in.conv")?.shape, &case.tensor("in.head")?.shape);
    let part = replica.part_of(x.shape[0]);
    let (n_channels, n_rows) = (conv[0], part.len());

    let mut builder = ParametersBuilder::new();
    let padded = Conv2dConfig { padding: [1, 1], bias: Bias::None, ..Conv2dConfig::square(conv[3], n_channels, conv[1]) };
    let norm = BatchNormConfig {
        eps: case.number("bn_eps")? as f32,
        momentum: case.number("bn_momentum")? as f32,
        activation: Activation::celu(case.number("celu_alpha")? as f32),
        ..BatchNormConfig::new(n_channels)
    };
    let model = Sequential(vec![
        Box::new(Conv2d::new(&mut builder, "conv", &padded)),
        Box::new(MaxPool2d(Pool2d::square(2))),
        Box::new(BatchNorm::new(&mut builder, "norm", &norm)),
        Box::new(GlobalMaxPool2d),
        Box::new(Linear::without_bias(&mut builder, "head", n_channels, head[0], Activation::identity())),
    ]);
    let mut params = builder.build(0);
    for (name, ours) in NAMES {
        let id = params.id_of(ours).with_context(|| format!("the model has no parameter `{ours}`"))?;
        params.set_initial(id, &case.tensor(&format!("in.{name}"))?.floats)?;
    }
    params.write_initial(device)?;

    let graph = Graph::training("train_convnet");
    replica.prepare(&graph);
    let image_len: usize = x.shape[1..].iter().product();
    let pixels = &x.floats[part.start * image_len..part.end * image_len];
    let images = graph.constant("x", pixels, &[&[n_rows], &x.shape[1..]].concat());
    let labels = Persistent::new("y", DType::U32, n_rows);
    device.write(&labels, &y.floats[part].iter().map(|&label| label as u32).collect::<Vec<_>>())?;
    let (labels, ones) = (graph.tensor(&labels, &[n_rows]), graph.constant("ones", &vec![1.0; n_rows], &[n_rows]));
    let options = CrossEntropyOptions { label_smoothing: case.number("label_smoothing")? as f32, ..Default::default() };
    let bound = params.bind(&graph);
    let share = graph.constant("share", &[n_rows as f32 / x.shape[0] as f32], &[]);
    let loss = graph
        .autocast(form.autocast(), || model.forward(&bound, &images).cross_entropy(&labels, &ones, options).multiply(&share));
    let scaler = optimizers::scaler(form)?;
    scaler.write_initial(device)?;
    scaler.backward(&loss)?;
    replica.reduce_gradients(&graph, &params, &bound, ReduceOp::Sum, None);
    let loss = replica.all_reduce(&graph, &loss, ReduceOp::Sum);
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    device.write(&inputs.lr, &[case.number("lr")? as f32])?;
    scaler.step(&graph, optimizers::make(case, "sgd", &params)?.as_ref(), &params, &inputs);
    scaler.update(&graph);
    let losses = Persistent::new("losses", DType::F32, n_steps);
    graph.store(&loss, &inputs.state, &losses);
    graph.advance(&inputs.state);
    graph.compile(device)?.run(n_steps)?;

    let mut outputs = vec![("out.loss".to_owned(), device.read(&losses)?)];
    let values: Vec<f32> = device.read(params.values())?;
    for (entry, (name, _)) in params.entries().iter().zip(NAMES) {
        outputs.push((format!("out.{name}"), values[entry.range.clone()].to_vec()));
    }
    for buffer in params.buffers() {
        let name = buffer.name().trim_start_matches("norm.");
        outputs.push((format!("out.{name}"), device.read(buffer.values())?));
    }
    Ok(Some(outputs))
}
