//! A custom operation with its gradient: squared ReLU, checked against finite differences and then used in training.
//!
//! `cargo run --release --example own_op`; `-- --device cpu|gpu|software|NAME|INDEX` picks the device.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use brisk_examples::print;
use brisk_examples::run::{self, Run};
use brisk_nn::tensor::program::kernels::Map;
use brisk_nn::tensor::{
    Activation, Backward, DType, Error, Forward, Graph, Operation, Persistent, Precision, Reduction, Signature, Tensor,
    check_gradients,
};
use brisk_nn::{Adam, Linear, Optimizer as _, ParametersBuilder, Schedule, StepInputs};
use serde_json::json;

/// `y = relu(x)²`, the activation of Primer (So et al. 2021, arXiv:2109.08668).
#[derive(Debug)]
struct SquaredRelu;

impl Operation for SquaredRelu {
    fn signature(&self) -> Signature {
        Signature::new("squared_relu", &["input"])
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        forward.push(Map::unary(x.len(), |x| x.relu().powi(2)), &[x, y])
    }

    /// `dx = 2 relu(x) dy`.
    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (dy, x) = (backward.grad(), backward.input(0));
        backward.give(0, Map::binary(x.len(), |dy, x| 2.0 * x.relu() * dy), &[dy, x])
    }
}

fn main() -> ExitCode {
    run::main("own_op", "Trains a network through an operation that brisk does not have, and checks its gradient", train)
}

fn train(run: &Run) -> Result<()> {
    // The gradient against finite differences, in f32, f16 and bf16.
    check_gradients(&[&[8, 3]], |graph, p| graph.apply(SquaredRelu, &[&p[0]]))?;
    print::result("the gradient of squared_relu agrees with finite differences")?;

    // A network that uses it: exclusive or.
    let mut builder = ParametersBuilder::new();
    let hidden = Linear::new(&mut builder, "hidden", 2, 16, Activation::identity());
    let head = Linear::new(&mut builder, "head", 16, 1, Activation::identity());
    let params = builder.build(SEED);
    let optimizer = Adam::new(&params);

    let graph = Graph::training("exclusive or");
    let x = graph.constant("x", &[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], &[4, 2]);
    let labels = graph.constant("labels", &[0.0, 1.0, 1.0, 0.0], &[4]);
    let weights = graph.constant("weights", &[1.0; 4], &[4]);
    let bound = params.bind(&graph);
    // It takes part in autocast like the built-in operations, under its own name.
    let logits = graph.autocast(Precision::Bf16, || {
        let hidden = graph.apply(SquaredRelu, &[&hidden.forward(&bound, &x)]);
        head.forward(&bound, &hidden)
    });
    let loss = logits.bce_with_logits(&labels, &weights, Reduction::Mean, 1.0);
    graph.backward(&loss)?;
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, N_STEPS), state: Graph::state_buffer() };
    optimizer.record(&graph, &params, &inputs);
    let losses = Persistent::new("losses", DType::F32, N_STEPS);
    graph.store(&loss, &inputs.state, &losses);
    graph.advance(&inputs.state);

    let device = &run.device;
    params.write_initial(device)?;
    device.write(&inputs.lr, &Schedule::one_cycle(0.05).table(0..N_STEPS, N_STEPS))?;
    graph.compile(device)?.run(N_STEPS)?;
    let losses: Vec<f32> = device.read(&losses)?;
    print::result(graph.report())?;
    print::result(format_args!(
        "loss {:.4} before, {:.4} after {N_STEPS} steps on {}",
        losses[0],
        losses[N_STEPS - 1],
        device.info()
    ))?;
    run.finish([json!({
        "seed": SEED, "rows": 4, "epochs": N_STEPS, "planned_peak_bytes": Graph::planned_peak_bytes(&[&graph])?, "precision": "bf16",
        "train_loss": losses[N_STEPS - 1],
    })])?;
    ensure!(losses[N_STEPS - 1] < 0.1, "exclusive or was not learnt: the loss is {}", losses[N_STEPS - 1]);
    Ok(())
}

const N_STEPS: usize = 400;
const SEED: u64 = 42;
