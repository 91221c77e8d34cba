use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::scored::Scored;
use crate::tally::{Tally, tallied};

/// The pinball loss of predicted quantiles: the mean of `max(q (label - prediction), (q - 1) (label - prediction))`.
///
/// `sklearn.metrics.mean_pinball_loss(labels, predictions, alpha=q)`. With several labels per row, the mean over the labels.
#[derive(Clone, Debug)]
pub struct PinballLoss {
    quantile: f64,
    tally: Tally<Vec<[f64; 1]>>,
}

impl PinballLoss {
    /// The metric over no rows, for the quantile `quantile`, from 0 to 1, which [`Metric::update`] checks.
    pub fn new(quantile: f64) -> Self {
        Self { quantile, tally: Tally::new("pinball_loss") }
    }
}

impl Metric for PinballLoss {
    tallied!(tally, Minimize);

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        let Self { quantile, ref mut tally } = *self;
        let metric = tally.metric();
        if !(0.0..=1.0).contains(&quantile) {
            let expected = "a number from 0 to 1".to_owned();
            return Err(Error::Setting { metric, setting: "quantile", found: quantile, expected });
        }
        tally.add_errors(rows, |error| if error < 0.0 { -quantile * error } else { (1.0 - quantile) * error })
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        self.tally.mean_of_labels().map(MetricValue::Number)
    }
}
