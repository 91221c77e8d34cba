use crate::error::Error;
use crate::ranked_scores::RankedScores;
use crate::tally::metric;

/// Average precision: `Σ_t (recall_t - recall_{t-1}) precision_t` over all thresholds, from the highest score down; it summarises
/// the precision-recall curve.
///
/// `sklearn.metrics.average_precision_score(labels, scores)`. All scores are kept, 8 bytes per row, and sorted once by
/// [`Metric::compute`](crate::Metric::compute). For binary classification.
///
/// Without a row labelled 1 there is no recall: [`Error::NoPositiveLabel`], where scikit-learn gives 0 and a warning.
#[derive(Clone, Debug)]
pub struct AveragePrecision(RankedScores);

metric!(AveragePrecision, "average_precision", Maximize, |scores, rows| scores.push(rows), value);

fn value(scores: &RankedScores) -> Result<f64, Error> {
    let (ties, all) = scores.ranked_with_positive()?;
    let (mut sum, mut hits, mut predicted) = (0.0, 0.0, 0.0);
    for tie in ties.iter().rev() {
        hits += tie.positive;
        predicted += tie.positive + tie.negative;
        sum += tie.positive * (hits / predicted);
    }
    Ok(sum / all.positive)
}
