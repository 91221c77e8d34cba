use crate::direction::Direction;
use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;
use crate::tally::Tally;

/// The square root of the mean squared error.
///
/// `sklearn.metrics.root_mean_squared_error(labels, predictions)`. With several labels per row, the mean over the labels.
#[derive(Clone, Debug)]
pub struct RootMeanSquaredError(Tally<Vec<[f64; 1]>>);

impl RootMeanSquaredError {
    /// The metric over no rows.
    pub fn new() -> Self {
        Self(Tally::new("rmse"))
    }
}

impl Default for RootMeanSquaredError {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for RootMeanSquaredError {
    /// `rmse`.
    fn name(&self) -> &str {
        self.0.metric()
    }

    fn direction(&self) -> Direction {
        Direction::Minimize
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        self.0.add_errors(rows, |error| error.powi(2))
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        self.0.mean_of_labels(f64::sqrt).map(MetricValue::Number)
    }
}
