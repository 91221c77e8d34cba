use crate::class_counts::{Average, ClassCounts, averaged_name, ratio};
use crate::direction::Direction;
use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;

/// The harmonic mean of precision and recall, `2 tp / (2 tp + fp + fn)`; 0 where nothing is predicted or labelled.
///
/// `sklearn.metrics.f1_score(labels, predictions, average=average, zero_division=0)`. A binary prediction is 1 if its logit is
/// positive, a multi-class one is the class of the largest logit. Binary rows have two classes for any average but
/// [`Average::Binary`]. The name has the average: `f1` for binary, `f1_macro` and so on for others.
#[derive(Clone, Debug)]
pub struct F1 {
    average: Average,
    counts: ClassCounts,
}

impl F1 {
    /// The metric over no rows.
    pub fn new(average: Average) -> Self {
        Self { average, counts: ClassCounts::new(averaged_name!("f1", average)) }
    }

    fn score(&self) -> Result<f64, Error> {
        self.counts.averaged(self.average, |&[hits, predicted, labelled, _]| ratio(2.0 * hits, predicted + labelled))
    }
}

impl Metric for F1 {
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
        self.score().map(MetricValue::Number)
    }
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
