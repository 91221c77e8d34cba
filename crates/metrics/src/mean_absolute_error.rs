use crate::tally::{Tally, metric};

/// The mean absolute error.
///
/// Called `mae` in logs. `sklearn.metrics.mean_absolute_error(labels, predictions)`. With several labels per row, the mean over
/// the labels.
#[derive(Clone, Debug)]
pub struct MeanAbsoluteError(Tally<Vec<[f64; 1]>>);

metric!(MeanAbsoluteError, "mae", Minimize, |tally, rows| tally.add_errors(rows, f64::abs), Tally::mean_of_labels);
