use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;
use crate::tally::{Tally, named, tallied};

/// The mean absolute error.
///
/// Called `mae` in logs. `sklearn.metrics.mean_absolute_error(labels, predictions)`. With several labels per row, the mean over
/// the labels.
#[derive(Clone, Debug)]
pub struct MeanAbsoluteError(Tally<Vec<[f64; 1]>>);

named!(MeanAbsoluteError, "mae");

impl Metric for MeanAbsoluteError {
    tallied!(0, Minimize);

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        self.0.add_errors(rows, f64::abs)
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        self.0.mean_of_labels(|mean| mean).map(MetricValue::Number)
    }
}
