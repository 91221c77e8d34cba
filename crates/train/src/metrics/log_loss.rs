use super::rows::{fold_binary, fold_classes};
use crate::Error;

/// The mean of `-ln p[label]`, `p` being the softmax of a row's logits.
///
/// `sklearn.metrics.log_loss(labels, softmax(logits))`, from the logits, hence without its clipping of probabilities: a row that is
/// wrong with a logit difference of 1000 costs 1000.
///
/// # Shapes
/// `logits`: `[n_rows, n_classes]`, row-major; `labels`: `[n_rows]`, each below `n_classes`.
/// # Errors
/// [`Error::PredictionCount`], [`Error::NoRows`], [`Error::Label`], [`Error::NanPrediction`].
pub fn log_loss(logits: &[f32], n_classes: usize, labels: &[u32]) -> Result<f64, Error> {
    let sum = |logits: &[f32], labels: &[u32]| {
        let rows = logits.chunks_exact(n_classes).zip(labels);
        rows.map(|(logits, &label)| row_loss(logits, label as usize)).sum::<f64>()
    };
    let loss = fold_classes("log_loss", logits, n_classes, labels, sum, |a, b| a + b)?;
    Ok(loss / labels.len() as f64)
}

/// The mean of `-ln p` where the label is 1 and of `-ln (1 - p)` where it is 0, `p` being the sigmoid of the logit.
///
/// `sklearn.metrics.log_loss(labels, sigmoid(logits))`, from the logits, hence without its clipping of probabilities.
///
/// # Shapes
/// `logits`, `labels`: `[n_rows]`; labels are 0.0 or 1.0.
/// # Errors
/// [`Error::PredictionCount`], [`Error::NoRows`], [`Error::Label`], [`Error::NanPrediction`].
pub fn log_loss_binary(logits: &[f32], labels: &[f32]) -> Result<f64, Error> {
    let sum = |logits: &[f32], labels: &[f32]| {
        let rows = logits.iter().zip(labels);
        rows.map(|(&logit, &label)| softplus(if label > 0.0 { -f64::from(logit) } else { f64::from(logit) })).sum::<f64>()
    };
    let loss = fold_binary("log_loss_binary", logits, labels, sum, |a, b| a + b)?;
    Ok(loss / labels.len() as f64)
}

/// `ln (1 + e^x)`, without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// `ln Σ_k e^{logits[k] - logits[label]}`. Equal logits differ by 0, infinite ones too.
fn row_loss(logits: &[f32], label: usize) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let below_max = |logit: f32| if logit == max { 0.0 } else { f64::from(max) - f64::from(logit) };
    let sum: f64 = logits.iter().map(|&logit| (-below_max(logit)).exp()).sum();
    sum.ln() + below_max(logits[label])
}
