use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;
use crate::tally::{Tally, Target, named, tallied};

/// The share of rows whose predictions equal all of their labels, also known as exact match. A positive logit predicts 1.
///
/// For multi-label classification: `sklearn.metrics.accuracy_score(labels, logits > 0)`. [`Accuracy`](crate::Accuracy) counts
/// label by label.
#[derive(Clone, Debug)]
pub struct SubsetAccuracy(Tally<[f64; 1]>);

named!(SubsetAccuracy, "subset_accuracy");

impl Metric for SubsetAccuracy {
    tallied!(0, Maximize);

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        let target = Target::labels(self.0.metric(), rows)?;
        self.0.add_scores(rows, target, |row, _| {
            let is_right = row.outputs.iter().zip(row.labels).all(|(&logit, &label)| (logit > 0.0) == (label > 0.0));
            f64::from(u8::from(is_right))
        })
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        self.0.mean().map(MetricValue::Number)
    }
}
