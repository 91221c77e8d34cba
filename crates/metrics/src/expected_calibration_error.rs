use crate::error::Error;
use crate::metric::{Metric, MetricValue};
use crate::probability::{arg_max, sigmoid, softmax};
use crate::scored::Scored;
use crate::tally::{Row, Tally, Target, tallied};

/// How far predicted probabilities are from observed frequencies: rows are sorted into bins of equal width by their probability,
/// and `|mean probability - frequency|` of the bins is averaged, weighted by the rows in each.
///
/// A binary row has the probability of label 1 and the frequency of that label. A multi-class row has the probability of the
/// predicted class and the frequency of being right.
///
/// # Reference
/// Guo et al. 2017, arXiv:1706.04599; torchmetrics' `CalibrationError(n_bins=15, norm="l1")` for multi-class rows.
#[derive(Clone, Debug)]
pub struct ExpectedCalibrationError {
    n_bins: usize,
    /// Per bin: probabilities, hits, rows.
    tally: Tally<Vec<[f64; 3]>>,
}

/// Each chunk of rows has its own bins.
const MAX_BINS: usize = 65_536;

impl ExpectedCalibrationError {
    /// The metric over no rows, with 15 bins.
    pub fn new() -> Self {
        Self::with_bins(15)
    }

    /// The metric with `n_bins` bins, from 1 to 65 536, which [`Metric::update`] checks.
    pub fn with_bins(n_bins: usize) -> Self {
        Self { n_bins, tally: Tally::new("expected_calibration_error") }
    }

    /// Mean probability and observed frequency of each bin that has rows.
    pub(crate) fn curve(&self) -> Result<Vec<[f64; 2]>, Error> {
        let bins = self.tally.sums()?.0.iter().filter(|[_, _, rows]| *rows > 0.0);
        Ok(bins.map(|[probability, hits, rows]| [probability / rows, hits / rows]).collect())
    }
}

impl Default for ExpectedCalibrationError {
    fn default() -> Self {
        Self::new()
    }
}

impl Metric for ExpectedCalibrationError {
    tallied!(tally, Minimize);

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        let Self { n_bins, ref mut tally } = *self;
        if !(1..=MAX_BINS).contains(&n_bins) {
            let expected = format!("1 to {MAX_BINS}");
            return Err(Error::Setting { metric: tally.metric(), setting: "n_bins", found: n_bins as f64, expected });
        }
        let target = match rows.n_outputs {
            1 => Target::binary(tally.metric(), rows)?,
            _ => Target::classes(tally.metric(), rows)?,
        };
        tally.update(rows, target, vec![[0.0; 3]; n_bins], |bins, row| {
            let (probability, hit) = confidence(row, target);
            let bin = ((probability * n_bins as f64) as usize).min(n_bins - 1);
            bins[bin][0] += row.weight * probability;
            bins[bin][1] += row.weight * hit;
            bins[bin][2] += row.weight;
        })
    }

    fn compute(&self) -> Result<MetricValue, Error> {
        let (bins, total) = self.tally.sums()?;
        // A bin's share of the rows times its gap: the number of its rows cancels.
        Ok(MetricValue::Number(bins.iter().map(|[probability, hits, _]| (probability - hits).abs()).sum::<f64>() / total))
    }
}

fn confidence(row: Row<'_>, target: Target) -> (f64, f64) {
    if target == Target::Binary {
        return (sigmoid(row.outputs[0]), f64::from(row.labels[0]));
    }
    let predicted = arg_max(row.outputs);
    let probability = softmax(row.outputs).nth(predicted).unwrap_or_default();
    (probability, if predicted == row.class() { 1.0 } else { 0.0 })
}
