//! A custom loss, in five lines of tensor algebra: a contrastive loss that trains two encoders to map two views of an item to
//! similar vectors.
//!
//! `cargo run --release --example own_loss`; `-- --device cpu|gpu|software|NAME|INDEX` picks the device.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use brisk_examples::print;
use brisk_examples::run::{self, Run};
use brisk_nn::tensor::{DType, Dims, Graph, Persistent, Tensor, Transpose, check_gradients};
use brisk_nn::{Activation, Adam, Bound, Linear, Optimizer as _, ParametersBuilder, Philox, Schedule, StepInputs};
use serde_json::json;

/// InfoNCE (van den Oord et al. 2018, arXiv:1807.03748): row `i` of `a` should be more similar to row `i` of `b` than to all
/// other rows of `b`.
///
/// Its gradient follows from those of the operations. A shape that does not fit is reported by `backward`, with the line in this
/// function.
fn info_nce(a: &Tensor, b: &Tensor) -> Tensor {
    let [a, b] = [a, b].map(unit);
    let similarities = a.matmul(&b, Transpose::B) / TEMPERATURE;
    let own = (a * b).sum(1) / TEMPERATURE;
    (similarities.exp().sum(1).log() - own).mean(..)
}

/// The rows of a matrix, scaled to length 1.
fn unit(x: &Tensor) -> Tensor {
    x / (x.norm(Dims::from(1).keep()) + 1e-6)
}

const SEED: u64 = 42;
const TEMPERATURE: f32 = 0.2;
const N_ITEMS: usize = 128;
const N_STEPS: usize = 200;

fn main() -> ExitCode {
    run::main("own_loss", "Trains two encoders with a loss made of tensor operations, and checks its gradient", train)
}

fn train(run: &Run) -> Result<()> {
    // The gradient against finite differences, in f32, f16 and bf16.
    check_gradients(&[&[6, 4], &[6, 4]], |_, p| info_nce(&p[0], &p[1]))?;
    print::result("the gradient of info_nce agrees with finite differences")?;

    let mut builder = ParametersBuilder::new();
    let mut encoder = |name: &str| {
        let hidden = Linear::new(&mut builder, &format!("{name}.hidden"), VIEW_LEN, 32, Activation::tanh());
        [hidden, Linear::new(&mut builder, &format!("{name}.head"), 32, 8, Activation::identity())]
    };
    let encoders = [encoder("first"), encoder("second")];
    let params = builder.build(SEED);

    // The training step: both encoders, the loss, backward, Adam.
    let graph = Graph::training("step");
    let [a, b] = encoded(&graph, &encoders, &params.bind(&graph), 0);
    let loss = info_nce(&a, &b);
    graph.backward(&loss)?;
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, N_STEPS), state: Graph::state_buffer() };
    Adam::new(&params).record(&graph, &params, &inputs);
    let losses = Persistent::new("losses", DType::F32, N_STEPS);
    graph.store(&loss, &inputs.state, &losses);
    graph.advance(&inputs.state);

    // The fraction of new items whose first view is more similar to its own second view than to that of any other item.
    let retrieval = Graph::inference("retrieval");
    let [a, b] = encoded(&retrieval, &encoders, &params.bind(&retrieval), 1);
    let own = retrieval.constant_codes("own", &(0..N_ITEMS as u32).collect::<Vec<_>>(), &[N_ITEMS]);
    let accuracy = unit(&a).matmul(&unit(&b), Transpose::B).correct(&own).mean(..);
    let found = Persistent::new("accuracy", DType::F32, 1);
    retrieval.store(&accuracy, &Graph::state_buffer(), &found);

    let device = &run.device;
    params.write_initial(device)?;
    device.write(&inputs.lr, &Schedule::one_cycle(0.02).table(0..N_STEPS, N_STEPS))?;
    let evaluate = || -> Result<f32> {
        retrieval.compile(device)?.run(1)?;
        Ok(device.read::<f32>(&found)?[0])
    };
    let before = evaluate()?;
    graph.compile(device)?.run(N_STEPS)?;
    let after = evaluate()?;
    let losses: Vec<f32> = device.read(&losses)?;
    print::result(format_args!(
        "loss {:.3} before, {:.3} after {N_STEPS} steps on {}",
        losses[0],
        losses[N_STEPS - 1],
        device.info()
    ))?;
    print::result(format_args!(
        "{:.0} % of {N_ITEMS} new items are found by their other view, {:.0} % before",
        100.0 * after,
        100.0 * before
    ))?;
    run.finish([json!({
        "seed": SEED, "rows": N_ITEMS, "epochs": N_STEPS, "planned_peak_bytes": Graph::planned_peak_bytes(&[&graph, &retrieval])?,
        "train_loss": losses[N_STEPS - 1], "test_accuracy": after,
    })])?;
    ensure!(after > 0.5, "the encoders were not trained: {:.0} % of the new items are found", 100.0 * after);
    Ok(())
}

/// The two views of `N_ITEMS` items, each passed through its encoder.
fn encoded(graph: &Graph, encoders: &[[Linear; 2]; 2], params: &Bound, seed: u64) -> [Tensor; 2] {
    let views = views(seed);
    [0, 1].map(|i| {
        let x = graph.constant("view", &views[i], &[N_ITEMS, VIEW_LEN]);
        encoders[i].iter().fold(x, |x, layer| layer.forward(params, &x))
    })
}

const VIEW_LEN: usize = 10;
const N_FACTORS: usize = 4;

/// Each item has `N_FACTORS` random factors. A view of it consists of fixed mixtures of them: sines of sums in the first view,
/// sums in the second.
fn views(seed: u64) -> [Vec<f32>; 2] {
    let (items, mixing) = (Philox::new(seed), Philox::new(7));
    let mixed = |view: usize, item: usize, col: usize| -> f32 {
        let factor = |i: usize| 2.0 * items.uniform(0, (item * N_FACTORS + i) as u64) - 1.0;
        let weight = |i: usize| 2.0 * mixing.uniform(view as u32, (col * N_FACTORS + i) as u64) - 1.0;
        (0..N_FACTORS).map(|i| weight(i) * factor(i)).sum()
    };
    [0, 1].map(|view| {
        let of_item = |item: usize| (0..VIEW_LEN).map(move |col| (item, col));
        let value = |(item, col)| if view == 0 { f32::sin(2.0 * mixed(0, item, col)) } else { mixed(1, item, col) };
        (0..N_ITEMS).flat_map(of_item).map(value).collect()
    })
}
