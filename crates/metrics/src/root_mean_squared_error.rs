use crate::tally::{Tally, metric};

/// The square root of the mean squared error.
///
/// Called `rmse` in logs. `sklearn.metrics.root_mean_squared_error(labels, predictions)`. With several labels per row, the mean
/// over the labels.
#[derive(Clone, Debug)]
pub struct RootMeanSquaredError(Tally<Vec<[f64; 1]>>);

metric!(RootMeanSquaredError, "rmse", Minimize, |tally, rows| tally.add_errors(rows, |e| e.powi(2)), Tally::mean_of_roots);
