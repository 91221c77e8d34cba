//! One network with two heads: the class of a flat and its rent, from the same hidden layers, each with its own loss and metrics.
//!
//! `cargo run --release --example two_heads`; `-- --device cpu|gpu|software|NAME|INDEX` picks the device.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use brisk_examples::print;
use brisk_examples::run::{self, Run};
use brisk_loader::{Rows, split};
use brisk_nn::{Activation, Mlp, MlpConfig, Philox, Schedule};
use brisk_train::{Classification, Head, Heads, Model, Predictor, Regression, Standardisation, Task, Trainer};
use serde_json::json;

const SEED: u64 = 7;
const BATCH_ROWS: usize = 64;
const N_ROWS: u32 = 6000;
const N_COLS: usize = 4;

fn main() -> ExitCode {
    run::main("two_heads", "Trains one network for a class and a number", train)
}

fn train(run: &Run) -> Result<()> {
    let [train, valid, test] = split(flats()?, SEED, [0.8, 0.1, 0.1])?;
    // Label 0 is the class, label 1 the rent, whose hundreds would drown the other loss if they were not standardised.
    let scale = Standardisation::of_labels("train", &train, 1..2)?;
    let task = Heads::of([
        Head::new("class", Classification::of(3)),
        Head::new("rent", Regression::mse()).standardised(&scale).weight(0.5),
    ])
    .watch("rent_rmse");

    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![32, 32], n_outputs: task.n_outputs(), activation: Activation::silu() };
    let mut model = Model::new(SEED, |params| Mlp::new(params, &sizes));
    let report = Trainer::new(&run.device)
        .batch_rows(BATCH_ROWS)
        .max_epochs(15)
        .schedule(Schedule::one_cycle(1e-2))
        .fit(&mut model, &task, &train, &valid)?;
    let scores = model.evaluate(&task, &test)?;
    print::result(format_args!("best epoch: {}, {} {:.4}", report.best_epoch, report.watched, report.best_value))?;
    print::result(format_args!("test: {scores}"))?;

    let outputs = Predictor::new(&run.device, &model, N_COLS)?.predict(&[0.5, -0.5, 0.25, 0.0], &[])?;
    let (logits, rents) = (task.outputs_of("class", &outputs)?, task.outputs_of("rent", &outputs)?);
    print::result(format_args!("one flat: logits {logits:.2?}, rent {:.0}", rents[0]))?;
    run.finish([run.fitted(&report, &scores, &train, BATCH_ROWS)?, json!({ "seed": SEED })])?;
    ensure!(scores.get("class_accuracy") > Some(0.9) && scores.get("rent_r2") > Some(0.9), "the network has not learned both");
    Ok(())
}

/// Flats of four columns, with their class and their rent.
fn flats() -> Result<Rows> {
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for row in 0..N_ROWS {
        let random = Philox::new(u64::from(row));
        let x: [f32; N_COLS] = [0, 1, 2, 3].map(|i| 2.0 * random.uniform(i, 0) - 1.0);
        let quality = x[0] + x[1] * x[2];
        let class = f32::from(u8::from(quality > -0.4)) + f32::from(u8::from(quality > 0.4));
        features.extend(x);
        labels.extend([class, 900.0 + 300.0 * quality - 150.0 * x[3] + 40.0 * (random.uniform(8, 0) - 0.5)]);
    }
    Ok(Rows::with_label_columns(features, labels, N_COLS, 2)?)
}
