use crate::probability::{sigmoid, softmax};
use crate::tally::{Row, Tally, Target, metric};

/// The mean squared error of probabilities: `(p - label)²` for binary classification, `Σ_k (p_k - [k is the label])²` for three
/// classes or more. Two classes as two logits have the score of one logit, their difference. Multi-label rows are averaged over
/// their elements.
///
/// `sklearn.metrics.brier_score_loss(labels, probabilities)`, whose `scale_by_half="auto"` has the same two formulas.
#[derive(Clone, Debug)]
pub struct BrierScore(Tally<[f64; 1]>);

metric!(
    BrierScore,
    "brier_score",
    Minimize,
    |tally, rows| tally.add_scores(rows, Target::of_classification(tally.metric(), rows)?, squared_error),
    Tally::mean
);

fn squared_error(row: Row<'_>, target: Target) -> f64 {
    if target == Target::Classes {
        let wanted = |class| if class == row.class() { 1.0 } else { 0.0 };
        let sum: f64 = softmax(row.outputs).enumerate().map(|(class, p)| (p - wanted(class)).powi(2)).sum();
        return if row.outputs.len() == 2 { sum / 2.0 } else { sum };
    }
    let elements = row.outputs.iter().zip(row.labels);
    elements.map(|(&logit, &label)| (sigmoid(logit) - f64::from(label)).powi(2)).sum::<f64>() / row.labels.len() as f64
}
