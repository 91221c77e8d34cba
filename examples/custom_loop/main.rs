//! A custom training loop: a generative adversarial network (Goodfellow et al. 2014, arXiv:1406.2661), two models and two
//! optimizers that step in turn on every batch. The generator learns to turn noise into points of a ring.
//!
//! `cargo run --release --example custom_loop`; `-- --device cpu|gpu|software|NAME|INDEX` picks the device.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use brisk_examples::print;
use brisk_examples::run::{self, Run};
use brisk_loader::{Order, Rows};
use brisk_nn::tensor::Graph;
use brisk_nn::{Activation, Adam, Bound, Mlp, MlpConfig, Parameters, ParametersBuilder, Philox, Schedule};
use brisk_train::{BatchTensors, Feed, FeedConfig, Standardisation, Step};
use serde_json::json;

const N_ROWS: u32 = 8192;
const N_EPOCHS: usize = 40;
const SEED: u64 = 7;
const BATCH_ROWS: usize = 256;

fn main() -> ExitCode {
    run::main("custom_loop", "Trains a generative adversarial network: two models and two optimizers that step in turn", train)
}

fn train(run: &Run) -> Result<()> {
    let device = &run.device;
    // Each row: a point of the ring, and the noise that the generator starts from.
    let row = |i| {
        let random = Philox::new(u64::from(i));
        let (angle, radius) = (std::f32::consts::TAU * random.uniform(0, 0), 1.0 + 0.05 * (random.uniform(1, 0) - 0.5));
        [radius * angle.cos(), radius * angle.sin(), 2.0 * random.uniform(2, 0) - 1.0, 2.0 * random.uniform(3, 0) - 1.0]
    };
    let rows = Rows::new((0..N_ROWS).flat_map(row).collect::<Vec<f32>>(), vec![0.0; N_ROWS as usize], 4)?;
    let feed = Feed::new(device, "ring", &rows, Order::Shuffled { seed: SEED }, BATCH_ROWS, &FeedConfig::default())?;

    let (generator, g_params) = network(1, 2);
    let (discriminator, d_params) = network(2, 1);
    let [g_adam, d_adam] = [&g_params, &d_params].map(|params| Adam::new(params).betas(0.5, 0.999));
    let real = |batch: &BatchTensors| batch.x.narrow(1, 0..2);
    let fake = |batch: &BatchTensors, params: &Bound| generator.forward(params, &batch.x.narrow(1, 2..4));

    // The discriminator distinguishes points of the ring from generated ones; the generator is trained so that its points are
    // classified as real.
    let (lr, scale) = (Schedule::constant(1e-3), Standardisation::none(4));
    let d_step = Step::over(device, &feed, &scale).train(&d_params, &d_adam, &lr).freeze(&g_params).record(|batch, params| {
        let [of_real, of_fake] = [real(batch), fake(batch, &params[1])].map(|x| discriminator.forward(&params[0], &x));
        (-of_real).softplus().mean(..) + of_fake.softplus().mean(..)
    })?;
    let g_step = Step::over(device, &feed, &scale)
        .train(&g_params, &g_adam, &lr)
        .freeze(&d_params)
        .record(|batch, params| (-discriminator.forward(&params[1], &fake(batch, &params[0]))).softplus().mean(..))?;
    let (started, mut losses) = (Instant::now(), Vec::new());
    for epoch in 0..N_EPOCHS {
        losses = Step::run_epoch_in_turn(&[&d_step, &g_step], epoch)?;
        if epoch % 10 == 9 {
            print::result(format_args!(
                "epoch {}: discriminator {:.3}, generator {:.3}",
                epoch + 1,
                losses[0].mean,
                losses[1].mean
            ))?;
        }
    }
    run.finish([json!({
        "seed": SEED, "rows": N_ROWS, "epochs": N_EPOCHS,
        "loader_rows_per_s": run.loader(&rows, BATCH_ROWS)?,
        "train_rows_per_s": N_EPOCHS as f64 * f64::from(N_ROWS) / started.elapsed().as_secs_f64(),
        "planned_peak_bytes": Graph::planned_peak_bytes(&[d_step.graph(), g_step.graph()])?,
        "discriminator_loss": losses[0].mean, "generator_loss": losses[1].mean,
    })])?;
    ensure!(losses[1].mean.is_finite(), "the generator diverged");
    Ok(())
}

fn network(seed: u64, n_outputs: usize) -> (Mlp, Parameters) {
    let mut builder = ParametersBuilder::new();
    let sizes = MlpConfig { n_inputs: 2, hidden: vec![64, 64], n_outputs, activation: Activation::leaky_relu(0.2) };
    (Mlp::new(&mut builder, &sizes), builder.build(seed))
}
