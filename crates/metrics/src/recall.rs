use crate::class_counts::{Average, ClassCounts, averaged_name, ratio};
use crate::direction::Direction;
use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;

/// The share of rows of a class that are predicted as such, `tp / (tp + fn)`; 0 where nothing is labelled.
///
/// `sklearn.metrics.recall_score(labels, predictions, average=average, zero_division=0)`. A binary prediction is 1 if its logit is
/// positive, a multi-class one is the class of the largest logit. Binary rows have two classes for any average but
/// [`Average::Binary`]. The name has the average: `recall` for binary, `recall_macro` and so on for others.
#[derive(Clone, Debug)]
pub struct Recall {
    average: Average,
    counts: ClassCounts,
}

impl Recall {
    /// The metric over no rows.
    pub fn new(average: Average) -> Self {
        Self { average, counts: ClassCounts::new(averaged_name!("recall", average)) }
    }
}

impl Metric for Recall {
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
        self.counts.averaged(self.average, |&[hits, _, labelled, _]| ratio(hits, labelled)).map(MetricValue::Number)
    }
}
