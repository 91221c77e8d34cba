//! Metrics, on the host and, if there is a kernel for it, on the device too.

use anyhow::{Context, Result, bail, ensure};
use brisk_program::Device;
use brisk_tensor::{DType, Graph, Persistent};

use brisk_train::metrics::{
    Accuracy, Average, AveragePrecision, BrierScore, ConfusionMatrix, ExpectedCalibrationError, F1, LogLoss, MeanAbsoluteError,
    Metric, MetricValue, Precision, RSquared, Recall, RocAuc, RootMeanSquaredError, Scored, TopKAccuracy,
};

use crate::case::{Case, Outputs, Values};
use crate::form::Form;

pub(crate) fn run(case: &Case, device: &Device, _: Form) -> Result<Option<Outputs>> {
    let value = match case.op.as_str() {
        "roc_auc" => brisk_train::metrics::roc_auc(&case.tensor("in.score")?.floats, &case.tensor("in.label")?.floats)?,
        "accuracy" => {
            let logits = case.tensor("in.logits")?;
            let labels = &case.tensor("in.label")?.floats;
            let value = brisk_train::metrics::accuracy(&logits.floats, logits.shape[1], labels)?;
            let labels: Vec<u32> = labels.iter().map(|&label| label as u32).collect();
            let on_device = accuracy_on(device, logits, &labels)?;
            ensure!((value - f64::from(on_device)).abs() < 1e-6, "the device says {on_device}, the host {value}");
            value
        }
        "metric" => return metric(case).map(Some),
        _ => return Ok(None),
    };
    Ok(Some(vec![("out.value".to_owned(), vec![value as f32])]))
}

/// A metric of brisk, updated with the case's rows in uneven batches.
fn metric(case: &Case) -> Result<Outputs> {
    let average = || {
        Ok(match case.word("average")? {
            "binary" => Average::Binary,
            "macro" => Average::Macro,
            "micro" => Average::Micro,
            "weighted" => Average::Weighted,
            other => bail!("brisk has no average `{other}`"),
        })
    };
    let mut metric: Box<dyn Metric> = match case.word("name")? {
        "accuracy" => Box::new(Accuracy::new()),
        "top_k_accuracy" => Box::new(TopKAccuracy::new(case.number("k")? as usize)),
        "roc_auc" => Box::new(RocAuc::new()),
        "average_precision" => Box::new(AveragePrecision::new()),
        "log_loss" => Box::new(LogLoss::new()),
        "brier" => Box::new(BrierScore::new()),
        "f1" => Box::new(F1::new(average()?)),
        "precision" => Box::new(Precision::new(average()?)),
        "recall" => Box::new(Recall::new(average()?)),
        "confusion_matrix" => Box::new(ConfusionMatrix::new()),
        "expected_calibration_error" => Box::new(ExpectedCalibrationError::with_bins(case.number("bins")? as usize)),
        "rmse" => Box::new(RootMeanSquaredError::new()),
        "mae" => Box::new(MeanAbsoluteError::new()),
        "r2" => Box::new(RSquared::new()),
        other => bail!("brisk has no metric `{other}`"),
    };
    let of_kind = ["in.score", "in.logits", "in.prediction"].into_iter().find(|name| case.has(name));
    let outputs = case.tensor(of_kind.context("no outputs of a model")?)?;
    let labels = case.tensor("in.label")?;
    let columns = |values: &Values| values.shape.get(1).copied().unwrap_or(1);
    let (n_outputs, n_labels) = (columns(outputs), columns(labels));
    let n_rows = labels.floats.len() / n_labels;
    let (mut start, mut batch_rows) = (0, 1);
    while start < n_rows {
        let end = n_rows.min(start + batch_rows);
        metric.update(&Scored {
            outputs: &outputs.floats[start * n_outputs..end * n_outputs],
            n_outputs,
            labels: &labels.floats[start * n_labels..end * n_labels],
            n_labels,
            weights: None,
        })?;
        (start, batch_rows) = (end, 3 * batch_rows);
    }
    let values = match metric.compute()? {
        MetricValue::Number(value) => vec![value as f32],
        MetricValue::Matrix { values, .. } => values.into_iter().map(|value| value as f32).collect(),
        other => bail!("a value of an unknown kind: {other:?}"),
    };
    Ok(vec![("out.value".to_owned(), values)])
}

fn accuracy_on(device: &Device, logits: &Values, labels: &[u32]) -> Result<f32> {
    let graph = Graph::inference("accuracy");
    let x = graph.constant("logits", &logits.floats, &logits.shape);
    let target = graph.constant_codes("labels", labels, &[labels.len()]);
    let value = Persistent::new("accuracy", DType::F32, 1);
    graph.store(&x.correct(&target).mean(..), &Graph::state_buffer(), &value);
    graph.compile(device)?.run(1)?;
    Ok(device.read(&value)?[0])
}
