//! A custom task: counts, learned by the likelihood of a Poisson distribution and evaluated by a custom metric, the mean
//! deviance.
//!
//! `cargo run --release --example own_task`; `-- --device cpu|gpu|software|NAME|INDEX` picks the device.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use brisk_examples::print;
use brisk_examples::run::{self, Run};
use brisk_loader::{Rows, split};
use brisk_nn::tensor::{LossReduction, Tensor};
use brisk_nn::{Activation, Mlp, MlpConfig, Philox};
use brisk_train::metrics::{self, Direction, Metric, MetricValue, Scored};
use brisk_train::{LabelledRows, Labels, Model, Task, Trainer};
use serde_json::json;

const SEED: u64 = 7;
const BATCH_ROWS: usize = 64;

/// Counts: the model's output is the logarithm of the expected count.
#[derive(Debug)]
struct Counts;

impl Task for Counts {
    fn labels(&self) -> Labels {
        Labels::Numbers
    }

    fn n_outputs(&self) -> usize {
        1
    }

    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        rows.reduce(&outputs.squeeze(1).poisson_nll_loss(&rows.labels, LossReduction::None))
    }

    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        vec![Box::new(Deviance::default())]
    }

    fn watched(&self) -> &str {
        "deviance"
    }
}

/// The mean deviance of a Poisson distribution, `2 (y log(y / e^x) - (y - e^x))`: scikit-learn's `mean_poisson_deviance`.
#[derive(Debug, Default)]
struct Deviance {
    sum: f64,
    n_rows: usize,
}

impl Metric for Deviance {
    fn name(&self) -> &str {
        "deviance"
    }

    fn direction(&self) -> Direction {
        Direction::Minimize
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), metrics::Error> {
        for (&x, &y) in rows.outputs.iter().zip(rows.labels) {
            let (expected, y) = (f64::from(x).exp(), f64::from(y));
            let log = if y > 0.0 { y * (y / expected).ln() } else { 0.0 };
            self.sum += 2.0 * (log - (y - expected));
        }
        self.n_rows += rows.labels.len();
        Ok(())
    }

    fn compute(&self) -> Result<MetricValue, metrics::Error> {
        Ok(MetricValue::Number(self.sum / self.n_rows as f64))
    }
}

fn main() -> ExitCode {
    run::main("own_task", "Trains a network for a task of its own, counts, with a metric of its own", train)
}

fn train(run: &Run) -> Result<()> {
    let [train, valid, test] = split(counts(6000)?, SEED, [0.8, 0.1, 0.1])?;
    let sizes = MlpConfig { n_inputs: 3, hidden: vec![32, 32], n_outputs: 1, activation: Activation::silu() };
    let mut model = Model::new(SEED, |params| Mlp::new(params, &sizes)).on(&run.device);
    let before = model.evaluate(&Counts, &test)?;
    let report = Trainer::new(&run.device)
        .batch_rows(BATCH_ROWS)
        .max_epochs(12)
        .learning_rate(3e-3)
        .fit(&mut model, &Counts, &train, &valid)?;
    let after = model.evaluate(&Counts, &test)?;
    print::result(format_args!("before: {before}"))?;
    print::result(format_args!("after:  {after}"))?;
    run.finish([run.fitted(&report, &after, &train, BATCH_ROWS)?, json!({ "seed": SEED })])?;
    // The deviance of the true rates is about 1.1.
    ensure!(after.get("deviance").is_some_and(|deviance| deviance < 1.4), "the network has not learned the rates");
    Ok(())
}

/// Counts whose rates depend on three columns.
fn counts(n_rows: u32) -> Result<Rows> {
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for row in 0..n_rows {
        let random = Philox::new(u64::from(row));
        let x = [0, 1, 2].map(|i| 2.0 * random.uniform(i, 0) - 1.0);
        let rate = (1.0 + x[0] - 2.0 * x[1] * x[2]).exp();
        // Knuth: uniform numbers until their product is below e^-rate.
        let (mut product, mut count) = (random.uniform(8, 0), 0);
        while product > (-rate).exp() && count < 100 {
            count += 1;
            product *= random.uniform(8 + count, 0);
        }
        features.extend(x);
        labels.push(count as f32);
    }
    Ok(Rows::new(features, labels, 3)?)
}
