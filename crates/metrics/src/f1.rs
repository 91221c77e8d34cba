use crate::class_counts::{Average, class_score, ratio};
use crate::error::Error;
use crate::metric::Metric;
use crate::scored::Scored;

class_score! {
    /// The harmonic mean of precision and recall, `2 tp / (2 tp + fp + fn)`; 0 where nothing is predicted or labelled.
    ///
    /// `sklearn.metrics.f1_score(labels, predictions, average=average, zero_division=0)`. A binary prediction is 1 if its logit
    /// is positive, a multi-class one is the class of the largest logit. Binary rows have two classes for any average but
    /// [`Average::Binary`]. The name has the average: `f1` for binary, `f1_macro` and so on for others.
    F1, "f1", |&[hits, predicted, labelled, _]| ratio(2.0 * hits, predicted + labelled)
}

/// The F1 score of the rows labelled 1, a positive logit being a prediction of 1: `2 tp / (2 tp + fp + fn)`; 0 where nothing is
/// labelled or predicted 1.
///
/// `sklearn.metrics.f1_score(labels, logits > 0)`.
///
/// # Shapes
/// `logits`, `labels`: `[n_rows]`; labels are 0.0 or 1.0.
/// # Errors
/// [`Error`] if the numbers of predictions and labels do not match, if there are no rows, if a label is no class, or a
/// prediction NaN.
pub fn f1(logits: &[f32], labels: &[f32]) -> Result<f64, Error> {
    let mut metric = F1::new(Average::Binary);
    metric.update(&Scored::binary(logits, labels))?;
    metric.score()
}
