use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;
use crate::tally::{Tally, named, tallied};

/// The square root of the mean squared error.
///
/// Called `rmse` in logs. `sklearn.metrics.root_mean_squared_error(labels, predictions)`. With several labels per row, the mean
/// over the labels.
#[derive(Clone, Debug)]
pub struct RootMeanSquaredError(Tally<Vec<[f64; 1]>>);

named!(RootMeanSquaredError, "rmse");

impl Metric for RootMeanSquaredError {
    tallied!(0, Minimize);

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        self.0.add_errors(rows, |error| error.powi(2))
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        self.0.mean_of_labels(f64::sqrt).map(MetricValue::Number)
    }
}
