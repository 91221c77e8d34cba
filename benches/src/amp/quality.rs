use anyhow::{Result, bail};
use brisk_tensor::Precision;
use brisk_train::metrics::roc_auc;

use super::SUITE;
use super::task::{Run, Task, tasks};
use crate::options::{Options, Scale};
use crate::row::Row;

/// The maximum difference of the mean metric over seeds from that of f32.
#[expect(clippy::print_stdout, reason = "the results of each seed belong to the report")]
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let n_seeds = if options.scale == Scale::Smoke { 1 } else { 5 };
    let mut rows = Vec::new();
    for (task, (metric, of, limit)) in tasks(options).iter().zip([("AUC", auc as Metric, 0.002), ("accuracy", accuracy, 0.003)]) {
        let mut means = [0.0; 3];
        for (precision, mean) in Precision::ALL.into_iter().zip(&mut means) {
            let reached = (1..=n_seeds).map(|seed| reached(task, options, precision, seed, of)).collect::<Result<Vec<_>>>()?;
            *mean = reached.iter().sum::<f64>() / n_seeds as f64;
            let each = reached.iter().map(|value| format!("{value:.4}")).collect::<Vec<_>>().join(", ");
            println!("{}, {precision}: test {metric} {mean:.4} ({each})", task.name);
        }
        for (precision, mean) in [(Precision::F16, means[1]), (Precision::Bf16, means[2])] {
            let case = format!("{}, {precision}, {metric} off f32's, mean of {n_seeds} seeds", task.name);
            let limit = if options.scale == Scale::Smoke { 1.0 } else { limit };
            rows.push(Row::at_most(SUITE, case, vec![(mean - means[0]).abs()], "", limit));
        }
    }
    Ok(rows)
}

type Metric = fn(&[f32], &[f32]) -> Result<f64>;

fn reached(task: &Task, options: &Options, precision: Precision, seed: u64, metric: Metric) -> Result<f64> {
    let run = Run::new(task, &options.device, precision, seed)?;
    let (scores, labels) = run.trained()?;
    if let Some(at) = scores.iter().position(|score| !score.is_finite()) {
        bail!("{} in {precision}, seed {seed}: the score of row {at} is {}", task.name, scores[at]);
    }
    metric(&scores, labels)
}

fn auc(scores: &[f32], labels: &[f32]) -> Result<f64> {
    Ok(roc_auc(scores, labels)?)
}

fn accuracy(scores: &[f32], labels: &[f32]) -> Result<f64> {
    let right = scores.iter().zip(labels).filter(|(score, label)| (**score > 0.0) == (**label > 0.5));
    Ok(right.count() as f64 / labels.len() as f64)
}
