use crate::direction::Direction;
use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::ranked_scores::RankedScores;
use crate::scored::Scored;

/// Average precision: `Σ_t (recall_t - recall_{t-1}) precision_t` over all thresholds, from the highest score down; it summarises
/// the precision-recall curve.
///
/// `sklearn.metrics.average_precision_score(labels, scores)`. All scores are kept, 8 bytes per row, and sorted once by
/// [`Metric::compute`]. For binary classification.
///
/// Without a row labelled 1 there is no recall: [`Error::NoPositiveLabel`], where scikit-learn gives 0 and a warning.
#[derive(Clone, Debug)]
pub struct AveragePrecision(RankedScores);

impl AveragePrecision {
    /// The metric over no rows.
    pub fn new() -> Self {
        Self(RankedScores::new("average_precision"))
    }
}

impl Default for AveragePrecision {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for AveragePrecision {
    fn name(&self) -> &str {
        self.0.metric()
    }

    fn direction(&self) -> Direction {
        Direction::Maximize
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        self.0.push(rows)
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        let (ties, all) = self.0.ranked()?;
        if all.positive == 0.0 {
            return Err(Error::NoPositiveLabel {
                metric: self.0.metric(),
                n_rows: self.0.n_counted(),
                n_ignored: self.0.n_ignored(),
            });
        }
        let (mut sum, mut hits, mut predicted) = (0.0, 0.0, 0.0);
        for tie in ties.iter().rev() {
            hits += tie.positive;
            predicted += tie.positive + tie.negative;
            sum += tie.positive * (hits / predicted);
        }
        Ok(MetricValue::Number(sum / all.positive))
    }
}
