use crate::tally::{Row, Tally, Target, metric};

/// The share of rows whose predictions equal all of their labels, also known as exact match. A positive logit predicts 1.
///
/// For multi-label classification: `sklearn.metrics.accuracy_score(labels, logits > 0)`. [`Accuracy`](crate::Accuracy) counts
/// label by label.
#[derive(Clone, Debug)]
pub struct SubsetAccuracy(Tally<[f64; 1]>);

metric!(
    SubsetAccuracy,
    "subset_accuracy",
    Maximize,
    |tally, rows| tally.add_scores(rows, Target::labels(tally.metric(), rows)?, is_right),
    Tally::mean
);

/// 1 if all labels are predicted right, else 0.
fn is_right(row: Row<'_>, _: Target) -> f64 {
    f64::from(u8::from(row.outputs.iter().zip(row.labels).all(|(&logit, &label)| (logit > 0.0) == (label > 0.0))))
}
