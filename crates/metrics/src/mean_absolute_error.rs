use crate::direction::Direction;
use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;
use crate::tally::Tally;

/// The mean absolute error.
///
/// `sklearn.metrics.mean_absolute_error(labels, predictions)`. With several labels per row, the mean over the labels.
#[derive(Clone, Debug)]
pub struct MeanAbsoluteError(Tally<Vec<[f64; 1]>>);

impl MeanAbsoluteError {
    /// The metric over no rows.
    pub fn new() -> Self {
        Self(Tally::new("mae"))
    }
}

impl Default for MeanAbsoluteError {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for MeanAbsoluteError {
    /// `mae`.
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
        self.0.add_errors(rows, f64::abs)
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        self.0.mean_of_labels(|mean| mean).map(MetricValue::Number)
    }
}
