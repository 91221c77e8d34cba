use crate::tally::{Row, Tally, Target, mean_of_rows};

/// The share of rows whose predictions equal all of their labels, also known as exact match. A positive logit predicts 1.
///
/// For multi-label classification: `sklearn.metrics.accuracy_score(labels, logits > 0)`. [`Accuracy`](crate::Accuracy) counts
/// label by label.
#[derive(Clone, Debug)]
pub struct SubsetAccuracy(Tally<[f64; 1]>);

mean_of_rows!(SubsetAccuracy, "subset_accuracy", Maximize, Target::labels, is_right);

/// 1 if all labels are predicted right, else 0.
fn is_right(row: Row<'_>, _: Target) -> f64 {
    f64::from(u8::from(row.outputs.iter().zip(row.labels).all(|(&logit, &label)| (logit > 0.0) == (label > 0.0))))
}
