use super::rows::{fold_binary, fold_classes};
use crate::Error;

/// The share of rows whose largest logit is that of their label; of equal logits, the first counts as the largest.
///
/// `sklearn.metrics.accuracy_score(labels, logits.argmax(1))`.
///
/// # Shapes
/// `logits`: `[n_rows, n_classes]`, row-major; `labels`: `[n_rows]`, each below `n_classes`.
/// # Errors
/// [`Error::PredictionCount`], [`Error::NoRows`], [`Error::Label`], [`Error::NanPrediction`].
pub fn accuracy(logits: &[f32], n_classes: usize, labels: &[u32]) -> Result<f64, Error> {
    let count = |logits: &[f32], labels: &[u32]| {
        let rows = logits.chunks_exact(n_classes).zip(labels);
        rows.filter(|&(logits, &label)| first_maximum(logits) == label as usize).count()
    };
    let n_right = fold_classes("accuracy", logits, n_classes, labels, count, |a, b| a + b)?;
    Ok(n_right as f64 / labels.len() as f64)
}

/// The share of rows whose logit is positive where the label is 1, and is not where it is 0.
///
/// `sklearn.metrics.accuracy_score(labels, logits > 0)`.
///
/// # Shapes
/// `logits`, `labels`: `[n_rows]`; labels are 0.0 or 1.0.
/// # Errors
/// [`Error::PredictionCount`], [`Error::NoRows`], [`Error::Label`], [`Error::NanPrediction`].
pub fn accuracy_binary(logits: &[f32], labels: &[f32]) -> Result<f64, Error> {
    let count = |logits: &[f32], labels: &[f32]| {
        logits.iter().zip(labels).filter(|&(&logit, &label)| (logit > 0.0) == (label > 0.0)).count()
    };
    let n_right = fold_binary("accuracy_binary", logits, labels, count, |a, b| a + b)?;
    Ok(n_right as f64 / labels.len() as f64)
}

fn first_maximum(logits: &[f32]) -> usize {
    let mut best = 0;
    for (class, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = class;
        }
    }
    best
}
