//! What dropout costs: a training step with `Dropout(0.2)` after each hidden layer and one without, measured in alternation, of
//! an MLP 28-256-256-256-1 and of a small convnet.
//!
//! `cargo bench -p brisk-train --bench dropout`; `BRISK_DEVICE` picks the device. `-- --smoke` is tiny. That values are dropped,
//! and others each time, is checked before anything is timed.
#![expect(clippy::print_stdout, reason = "a bench reports")]

use std::time::Instant;

use brisk_loader::{Order, Rows};
use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{Pool2d, Reduction};
use brisk_nn::{Activation, Adam, Conv2d, Conv2dConfig, Dropout, Flatten, Linear, MaxPool2d, Module, ParametersBuilder, Reshape};
use brisk_nn::{Schedule, Sequential};
use brisk_train::{Feed, FeedChoice, FeedConfig, Standardisation, Step};

const SIDE: usize = 28;

/// Whether the hidden layers are followed by dropout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dropouts {
    None,
    All,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let is_smoke = std::env::args().any(|arg| arg == "--smoke");
    let n_rounds = if is_smoke { 1 } else { 41 };
    let device = Device::best()?;
    println!("a training step in f32 on {}, medians of {n_rounds} epochs", device.info());
    println!("| network | batch | without, ms | with dropout, ms | ratio |");
    println!("|---|---|---|---|---|");
    measure(&device, "28-256-256-256-1", 1024, 28, n_rounds, mlp)?;
    measure(&device, "2 convolutions, 28 x 28", 128, SIDE * SIDE, n_rounds, convnet)
}

fn mlp(params: &mut ParametersBuilder, dropouts: Dropouts) -> Sequential {
    let hidden = [("a", 28), ("b", 256), ("c", 256)];
    let hidden = hidden.map(|(name, n_in)| boxed(Linear::new(params, name, n_in, 256, Activation::relu())));
    let head = boxed(Linear::new(params, "head", 256, 1, Activation::identity()));
    Sequential(hidden.into_iter().flat_map(|layer| with(dropouts, [layer])).chain([head]).collect())
}

fn convnet(params: &mut ParametersBuilder, dropouts: Dropouts) -> Sequential {
    let mut block = |name, n_in, n_out| {
        let config = Conv2dConfig { padding: [1, 1], activation: Activation::relu(), ..Conv2dConfig::square(n_in, n_out, 3) };
        with(dropouts, [boxed(Conv2d::new(params, name, &config)), boxed(MaxPool2d(Pool2d::square(2)))])
    };
    let blocks = [block("a", 1, 16), block("b", 16, 32)];
    let head = Linear::new(params, "head", SIDE / 4 * (SIDE / 4) * 32, 1, Activation::identity());
    let ends = [boxed(Flatten), boxed(head)];
    Sequential([boxed(Reshape::new([SIDE, SIDE, 1]))].into_iter().chain(blocks.into_iter().flatten()).chain(ends).collect())
}

fn boxed(module: impl Module + 'static) -> Box<dyn Module> {
    Box::new(module)
}

fn with<const N: usize>(dropouts: Dropouts, layers: [Box<dyn Module>; N]) -> impl Iterator<Item = Box<dyn Module>> {
    layers.into_iter().chain((dropouts == Dropouts::All).then(|| boxed(Dropout::new(0.2))))
}

fn measure(
    device: &Device,
    name: &str,
    batch_rows: usize,
    n_cols: usize,
    n_rounds: usize,
    network: impl Fn(&mut ParametersBuilder, Dropouts) -> Sequential,
) -> Result<(), Box<dyn std::error::Error>> {
    let n_batches = 8;
    let features: Vec<f32> = (0..n_batches * batch_rows * n_cols).map(|i| (i as f32 * 0.618).fract() - 0.5).collect();
    let labels: Vec<f32> = features.chunks(n_cols).map(|row| row[0] + row[1]).collect();
    let rows = Rows::new(features, labels, n_cols)?;
    let config = FeedConfig { choice: FeedChoice::Resident, ..FeedConfig::default() };
    let feed = Feed::new(device, "train", &rows, Order::Shuffled { seed: 1 }, batch_rows, &config)?;
    let mut steps = Vec::new();
    for dropouts in [Dropouts::None, Dropouts::All] {
        let mut builder = ParametersBuilder::new();
        let network = network(&mut builder, dropouts);
        let params = builder.build(7);
        let adam = Adam::new(&params);
        // With a rate of 0, losses differ only by what is dropped.
        let step = Step::over(device, &feed, &Standardisation::none(n_cols)).train(&params, &adam, &Schedule::constant(0.0));
        let step = step.record(|batch, params| {
            let y = network.forward(&params[0], &batch.x).squeeze(1);
            y.mse_loss(&batch.labels, &batch.weights, Reduction::Mean)
        })?;
        let [a, b] = [step.run_epoch(0)?.mean, step.run_epoch(1)?.mean];
        let is_same = (a - b).abs() < 1e-5 * a;
        assert!(is_same == (dropouts == Dropouts::None), "{name}: mean losses of two epochs at rate 0 are {a} and {b}");
        steps.push(step);
    }
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..n_rounds {
        for (step, times) in steps.iter().zip(&mut times) {
            let start = Instant::now();
            step.run_epoch(2 + round)?;
            times.push(start.elapsed().as_secs_f64() * 1e3 / n_batches as f64);
        }
    }
    let [without, with] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!("| {name} | {batch_rows} | {without:.3} | {with:.3} | {:.3} |", without / with);
    Ok(())
}
