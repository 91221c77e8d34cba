use crate::error::Error;
use crate::probability::arg_max;
use crate::scored::Scored;
use crate::tally::{Row, Tally, Target, check_class_labels, metric};

/// The share of rows whose prediction equals their label.
///
/// A binary prediction is 1 if its logit is positive; a multi-class one is the class of the largest logit, the first of equally
/// large ones. Multi-label rows count element by element; [`SubsetAccuracy`](crate::SubsetAccuracy) counts rows that are right in
/// all elements, as `sklearn.metrics.accuracy_score` does.
///
/// `sklearn.metrics.accuracy_score(labels, logits > 0)`, `accuracy_score(labels, logits.argmax(1))`.
#[derive(Clone, Debug)]
pub struct Accuracy(Tally<[f64; 1]>);

metric!(
    Accuracy,
    "accuracy",
    Maximize,
    |tally, rows| tally.add_scores(rows, Target::of_classification(tally.metric(), rows)?, share_right),
    Tally::mean
);

/// The share of rows whose largest logit is that of their label; of equal logits, the first counts as the largest.
///
/// `sklearn.metrics.accuracy_score(labels, logits.argmax(1))`.
///
/// # Shapes
/// `logits`: `[n_rows, n_classes]`, row-major; `labels`: `[n_rows]`, the number of a class, from 0, as in rows.
/// # Errors
/// [`Error`] if the numbers of predictions and labels do not match, if there are no rows, if a label is no class, or a
/// prediction NaN.
pub fn accuracy(logits: &[f32], n_classes: usize, labels: &[f32]) -> Result<f64, Error> {
    check_class_labels("accuracy", logits, n_classes, labels)?;
    Tally::mean_of_rows("accuracy", &Scored::classes(logits, n_classes, labels), Target::Classes, share_right)
}

/// The share of rows whose logit is positive where the label is 1, and is not where it is 0.
///
/// `sklearn.metrics.accuracy_score(labels, logits > 0)`.
///
/// # Shapes
/// `logits`, `labels`: `[n_rows]`; labels are 0.0 or 1.0.
/// # Errors
/// [`Error`] if the numbers of predictions and labels do not match, if there are no rows, if a label is no class, or a
/// prediction NaN.
pub fn accuracy_binary(logits: &[f32], labels: &[f32]) -> Result<f64, Error> {
    Tally::mean_of_rows("accuracy_binary", &Scored::binary(logits, labels), Target::Binary, share_right)
}

fn share_right(row: Row<'_>, target: Target) -> f64 {
    if target == Target::Classes {
        return f64::from(u8::from(arg_max(row.outputs) == row.class()));
    }
    let n_right = row.outputs.iter().zip(row.labels).filter(|&(&logit, &label)| (logit > 0.0) == (label > 0.0)).count();
    n_right as f64 / row.labels.len() as f64
}
