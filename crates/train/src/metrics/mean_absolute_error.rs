use super::tally::{Tally, Target};
use super::{Metric, MetricValue, Scored};
use crate::{Error, Mode};

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

    fn mode(&self) -> Mode {
        Mode::Min
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        let target = Target::values(self.0.metric(), rows)?;
        self.0.update(
            rows,
            target,
            || vec![[0.0]; rows.n_labels],
            |columns, row| {
                for (([sum], &output), &label) in columns.iter_mut().zip(row.outputs).zip(row.labels) {
                    *sum += row.weight * (f64::from(output) - f64::from(label)).abs();
                }
            },
        )
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        let (columns, total) = self.0.sums()?;
        Ok(MetricValue::Number(columns.iter().map(|[sum]| sum / total).sum::<f64>() / columns.len() as f64))
    }
}
