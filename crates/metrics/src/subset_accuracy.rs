use crate::direction::Direction;
use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;
use crate::tally::{Tally, Target};

/// The share of rows whose predictions equal all of their labels, also known as exact match. A positive logit predicts 1.
///
/// For multi-label classification: `sklearn.metrics.accuracy_score(labels, logits > 0)`. [`Accuracy`](crate::Accuracy) counts
/// label by label.
#[derive(Clone, Debug)]
pub struct SubsetAccuracy(Tally<[f64; 1]>);

impl SubsetAccuracy {
    /// The metric over no rows.
    pub fn new() -> Self {
        Self(Tally::new("subset_accuracy"))
    }
}

impl Default for SubsetAccuracy {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for SubsetAccuracy {
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
        let target = Target::labels(self.0.metric(), rows)?;
        self.0.update(
            rows,
            target,
            || [0.0],
            |[right], row| {
                let is_right = row.outputs.iter().zip(row.labels).all(|(&logit, &label)| (logit > 0.0) == (label > 0.0));
                *right += if is_right { row.weight } else { 0.0 };
            },
        )
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        let ([right], total) = self.0.sums()?;
        Ok(MetricValue::Number(right / total))
    }
}
