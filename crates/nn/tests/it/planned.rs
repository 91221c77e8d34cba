//! How close the planner comes to the bytes that are live at once, for whole training steps; no step is executed, so sizes are
//! realistic.

use brisk_nn::tensor::program::Plan;
use brisk_nn::tensor::{CrossEntropyOptions, DType, Error, Graph, Mode, Persistent, Pool2d, Tensor};
use brisk_nn::{
    Activation, Adam, BatchNorm, BatchNormConfig, Bias, Conv2d, Conv2dConfig, GlobalMaxPool2d, Linear, MaxPool2d, Mlp, MlpConfig,
    Module, Optimizer, ParametersBuilder, Sequential, StepInputs,
};

/// The plan of a training step that classifies rows of `shape` into `n_classes`, or of inference only.
fn plan(mode: Mode, builder: ParametersBuilder, model: &dyn Module, shape: &[usize]) -> Result<Plan, Error> {
    let (params, n_rows) = (builder.build(0), shape[0]);
    let graph = Graph::new("step", mode);
    let input = |name, dtype, shape: &[usize]| graph.tensor(&Persistent::new(name, dtype, shape.iter().product()), shape);
    let scores: Tensor = model.forward(&params.bind(&graph), &input("x", DType::F32, shape));
    if mode == Mode::Training {
        let (labels, weights) = (input("labels", DType::U32, &[n_rows]), input("weights", DType::F32, &[n_rows]));
        graph.backward(&scores.cross_entropy(&labels, &weights, CrossEntropyOptions::default()))?;
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        Adam::new(&params).record(&graph, &params, &inputs);
    }
    Ok(graph.fused().plan()?)
}

#[track_caller]
fn check(what: &str, plan: &Plan, most: f64) {
    let ratio = plan.transient_bytes() as f64 / plan.least_transient_bytes() as f64;
    assert!((1.0..most).contains(&ratio), "{what}: {ratio:.3} of what is alive at once, {plan}");
}

fn mlp(activation: Activation) -> (ParametersBuilder, Mlp) {
    let mut builder = ParametersBuilder::new();
    let sizes = MlpConfig { n_inputs: 28, hidden: vec![256, 512, 128, 256], n_outputs: 10, activation };
    let model = Mlp::new(&mut builder, &sizes);
    (builder, model)
}

/// Convolutions followed by batch norm, pooled before the first activation of each size.
fn convnet(activation: Activation) -> (ParametersBuilder, Sequential) {
    let mut builder = ParametersBuilder::new();
    let mut layers: Vec<Box<dyn Module>> = Vec::new();
    for (block, (n_in, n_out)) in [(24, 64), (64, 256), (256, 256)].into_iter().enumerate() {
        for (i, n_in) in [n_in, n_out].into_iter().enumerate() {
            let name = format!("{block}-{i}");
            let conv = Conv2dConfig { padding: [1, 1], bias: Bias::None, ..Conv2dConfig::square(n_in, n_out, 3) };
            layers.push(Box::new(Conv2d::new(&mut builder, &format!("conv-{name}"), &conv)));
            if i == 0 {
                layers.push(Box::new(MaxPool2d(Pool2d::square(2))));
            }
            let norm = BatchNormConfig { activation: activation.clone(), ..BatchNormConfig::new(n_out) };
            layers.push(Box::new(BatchNorm::new(&mut builder, &format!("norm-{name}"), &norm)));
        }
    }
    layers.push(Box::new(GlobalMaxPool2d));
    layers.push(Box::new(Linear::without_bias(&mut builder, "head", 256, 10, Activation::identity())));
    (builder, Sequential(layers))
}

#[test]
fn layouts_are_near_the_bound() -> Result<(), Error> {
    for (activation, most) in [(Activation::relu(), 1.10), (Activation::gelu(), 1.05)] {
        let (builder, model) = mlp(activation.clone());
        check(&format!("mlp, {activation:?}"), &plan(Mode::Training, builder, &model, &[8192, 28])?, most);
        let (builder, model) = mlp(activation.clone());
        check(&format!("mlp, {activation:?}, scores"), &plan(Mode::Inference, builder, &model, &[8192, 28])?, 1.05);
    }
    // If the large buffers are live by themselves and their weights' gradients need scratch as well, separate slots cost more.
    for (activation, most) in [(Activation::relu(), 1.15), (Activation::gelu(), 1.10)] {
        let (builder, model) = convnet(activation.clone());
        check(&format!("convnet, {activation:?}"), &plan(Mode::Training, builder, &model, &[64, 32, 32, 24])?, most);
        let (builder, model) = convnet(activation.clone());
        check(&format!("convnet, {activation:?}, scores"), &plan(Mode::Inference, builder, &model, &[64, 32, 32, 24])?, 1.01);
    }
    Ok(())
}
