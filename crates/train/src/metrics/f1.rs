use super::rows::fold_binary;
use crate::Error;

/// The harmonic mean of precision and recall of the rows labelled 1, a positive logit being a prediction of 1:
/// `2 * tp / (2 * tp + fp + fn)`. 0 where nothing is labelled or predicted 1.
///
/// `sklearn.metrics.f1_score(labels, logits > 0)`.
///
/// # Shapes
/// `logits`, `labels`: `[n_rows]`; labels are 0.0 or 1.0.
/// # Errors
/// [`Error::PredictionCount`], [`Error::NoRows`], [`Error::Label`], [`Error::NanPrediction`].
pub fn f1(logits: &[f32], labels: &[f32]) -> Result<f64, Error> {
    let count = |logits: &[f32], labels: &[f32]| {
        let (mut n_hits, mut n_predicted_or_labelled) = (0_u64, 0_u64);
        for (&logit, &label) in logits.iter().zip(labels) {
            let (is_predicted, is_labelled) = (logit > 0.0, label > 0.0);
            n_hits += u64::from(is_predicted && is_labelled);
            n_predicted_or_labelled += u64::from(is_predicted) + u64::from(is_labelled);
        }
        (n_hits, n_predicted_or_labelled)
    };
    let (n_hits, n_predicted_or_labelled) = fold_binary("f1", logits, labels, count, |a, b| (a.0 + b.0, a.1 + b.1))?;
    Ok(if n_predicted_or_labelled == 0 { 0.0 } else { (2 * n_hits) as f64 / n_predicted_or_labelled as f64 })
}
