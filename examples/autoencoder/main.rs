//! An autoencoder: a network whose task is to return its input, which it passes through two numbers. Its rows have no labels.
//!
//! `cargo run --release --example autoencoder`; `-- --device cpu|gpu|software|NAME|INDEX` picks the device.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use brisk_examples::print;
use brisk_examples::run::{self, Run};
use brisk_loader::{Rows, split};
use brisk_nn::tensor::Tensor;
use brisk_nn::{Activation, Mlp, MlpConfig, Philox, Schedule};
use brisk_train::{LabelledRows, Labels, Model, Task, Trainer};
use serde_json::json;

const SEED: u64 = 7;
const BATCH_ROWS: usize = 64;
const N_ROWS: u32 = 4000;
const N_COLS: usize = 16;

/// The model returns its input, as it was standardised.
#[derive(Debug)]
struct Reconstruction;

impl Task for Reconstruction {
    fn labels(&self) -> Labels {
        Labels::Numbers
    }

    fn n_labels(&self) -> usize {
        0
    }

    fn n_outputs(&self) -> usize {
        N_COLS
    }

    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        let error = outputs - &rows.x;
        rows.reduce(&error.multiply(&error))
    }
}

fn main() -> ExitCode {
    run::main("autoencoder", "Trains a network to return its input", train)
}

fn train(run: &Run) -> Result<()> {
    let [train, valid, test] = split(waves()?, SEED, [0.8, 0.1, 0.1])?;
    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![64, 2, 64], n_outputs: N_COLS, activation: Activation::tanh() };
    let mut model = Model::new(SEED, |params| Mlp::new(params, &sizes));
    let mut trainer = Trainer::new(&run.device).batch_rows(BATCH_ROWS).max_epochs(30).schedule(Schedule::one_cycle(1e-2));
    let report = trainer.fit(&mut model, &Reconstruction, &train, &valid)?;
    let scores = model.evaluate(&Reconstruction, &test)?;
    print::result(format_args!("best epoch: {}, {} {:.4}", report.best_epoch, report.watched, report.best_value))?;
    print::result(format_args!("test: {scores}"))?;
    run.finish([run.fitted(&report, &scores, &train, BATCH_ROWS)?, json!({ "seed": SEED })])?;
    // Columns have variance 1, so this is the share of the variance that two numbers do not explain.
    ensure!(scores.get("loss").is_some_and(|loss| loss < 0.1), "the network has not learned to return its input");
    Ok(())
}

/// Waves of different phase and amplitude: sixteen values that depend on two numbers.
fn waves() -> Result<Rows> {
    let wave = |row: u32| {
        let random = Philox::new(u64::from(row));
        let [phase, amplitude] = [0, 1].map(|i| random.uniform(i, 0));
        (0..N_COLS).map(move |i| (0.5 + amplitude) * (0.4 * i as f32 + 3.0 * phase).sin())
    };
    Ok(Rows::without_labels((0..N_ROWS).flat_map(wave).collect(), N_COLS)?)
}
