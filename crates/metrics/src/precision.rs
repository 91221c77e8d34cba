use crate::class_counts::{Average, ClassCounts, averaged_name, ratio};
use crate::direction::Direction;
use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;

/// The share of predictions of a class that are right, `tp / (tp + fp)`; 0 where nothing is predicted.
///
/// `sklearn.metrics.precision_score(labels, predictions, average=average, zero_division=0)`. A binary prediction is 1 if its logit is
/// positive, a multi-class one is the class of the largest logit. Binary rows have two classes for any average but
/// [`Average::Binary`]. The name has the average: `precision` for binary, `precision_macro` and so on for others.
#[derive(Clone, Debug)]
pub struct Precision {
    average: Average,
    counts: ClassCounts,
}

impl Precision {
    /// The metric over no rows.
    pub fn new(average: Average) -> Self {
        Self { average, counts: ClassCounts::new(averaged_name!("precision", average)) }
    }
}

impl Metric for Precision {
    fn name(&self) -> &str {
        self.counts.metric()
    }

    fn direction(&self) -> Direction {
        Direction::Maximize
    }

    fn reset(&mut self) {
        self.counts.reset();
    }

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        self.counts.count(rows, self.average)
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        self.counts.averaged(self.average, |&[hits, predicted, ..]| ratio(hits, predicted)).map(MetricValue::Number)
    }
}
