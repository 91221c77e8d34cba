use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::mean::weighted_mean;
use crate::target::Target;
use crate::target_scale::TargetScale;
use crate::validated::Validated;

/// How far numbers are from their predictions: intervals that hold a share of the numbers, by split conformal prediction.
///
/// The distances are those of validation rows: differences from the prediction, or ratios to it if the target is scaled by
/// [`TargetScale::Log`], so that intervals are wider where numbers are larger. The bounds are chosen one by one, so that about as
/// many numbers are below as above, also where errors are skewed. For a row that is drawn as the validation rows were, a number
/// is below its interval with a probability of at most `(1 - coverage) / 2`, and above it with the same, whatever the network is
/// and however errors are distributed.
///
/// That guarantee needs rows by which nothing else was chosen. [`Fitting`](crate::Fitting) takes its validation rows, by which
/// training was stopped, networks were kept and predictions were calibrated: errors on them are a little smaller than on new
/// rows, so that intervals may hold a little less than the coverage.
/// [`TabularModel::interval_score`](crate::TabularModel::interval_score) says what they hold of test rows. The guarantee is for
/// the mean over all rows, not for each kind of row; for those of a later time, or of other groups, there is none.
///
/// Quantile regression, conformalised (Romano, Patterson & Candès 2019, *Conformalized Quantile Regression*, arXiv:1905.03222),
/// adapts the width to each row, but needs a network with an output for each bound, trained by the pinball loss; these networks
/// have one output, the mean.
///
/// # Reference
/// Lei, G'Sell, Rinaldo, Tibshirani & Wasserman 2018, *Distribution-Free Predictive Inference for Regression*, arXiv:1604.04173,
/// with a quantile for each side; rows with weights as in Tibshirani, Barber, Candès & Ramdas 2019, *Conformal Prediction Under
/// Covariate Shift*, arXiv:1904.06019, for a new row of mean weight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intervals {
    /// The share of numbers that intervals are to hold, between 0 and 1.
    pub coverage: f64,
    /// The lower bound minus the prediction, or the logarithm of their ratio.
    pub lower: f64,
    /// The upper bound minus the prediction, or the logarithm of their ratio.
    pub upper: f64,
    /// How many validation rows they were chosen by.
    pub n_rows: usize,
}

/// What intervals are worth on rows with labels.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct IntervalScore {
    /// The share of the numbers that are within their intervals, bounds included, by the weights of the rows.
    pub coverage: f64,
    /// The mean width in the unit of the target.
    pub mean_width: f64,
}

/// What errors call them.
pub(super) const NAME: &str = "prediction intervals";

/// In place of smaller numbers, which have no logarithm.
const LEAST: f64 = f32::MIN_POSITIVE as f64;

/// The distance of a number from its prediction.
fn distance(target: &Target, prediction: f64, number: f64) -> f64 {
    match target.scale() {
        TargetScale::Standard => number - prediction,
        TargetScale::Log => number.max(LEAST).ln() - prediction.max(LEAST).ln(),
    }
}

impl Intervals {
    /// For rows with calibrated predictions and labels, both [restored](Target::restore).
    ///
    /// # Errors
    /// [`Error::Coverage`]; [`Error::FewIntervalRows`].
    pub(super) fn fit(target: &Target, coverage: f64, rows: &Validated) -> Result<Self, Error> {
        check(coverage)?;
        let offset = target.offset();
        let of_row = |(row, (&prediction, &label)): (usize, (&f32, &f32))| {
            (distance(target, f64::from(prediction) + offset, f64::from(label) + offset), rows.weight(row))
        };
        let mut distances: Vec<(f64, f64)> = rows.outputs.iter().zip(&rows.labels).enumerate().map(of_row).collect();
        distances.retain(|(_, weight)| *weight > 0.0);
        distances.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let n_rows = distances.len();
        let share = (1.0 - coverage) / 2.0;
        let lower = quantile(distances.iter().copied(), share);
        let upper = quantile(distances.iter().rev().copied(), share);
        let (Some(lower), Some(upper)) = (lower, upper) else {
            // A row of great weight is outside of neither bound.
            let needed = needed(coverage).max(n_rows + 1);
            return Err(Error::FewIntervalRows { target: target.name().to_owned(), coverage, n_rows, needed });
        };
        Ok(Self { coverage, lower, upper, n_rows })
    }

    /// What they are worth on rows with predictions and labels, as in [`fit`](Self::fit).
    pub(super) fn score(&self, target: &Target, rows: &Validated) -> IntervalScore {
        let offset = target.offset();
        let bounds: Vec<[f64; 2]> = rows.outputs.iter().map(|&output| self.around(target, f64::from(output) + offset)).collect();
        let holds = |(&[lower, upper], &label): (&[f64; 2], &f32)| {
            f64::from(u8::from((lower..=upper).contains(&(f64::from(label) + offset))))
        };
        let weights = rows.weights.as_deref();
        IntervalScore {
            coverage: weighted_mean(bounds.iter().zip(&rows.labels).map(holds), weights),
            mean_width: weighted_mean(bounds.iter().map(|[lower, upper]| upper - lower), weights),
        }
    }

    /// Whether a folder's intervals can be such.
    pub(super) fn is_right(&self) -> bool {
        check(self.coverage).is_ok() && self.lower <= self.upper && self.lower.is_finite() && self.upper.is_finite()
    }

    /// The bounds for a prediction, in the unit of the target, as it is itself.
    pub fn around(&self, target: &Target, prediction: f64) -> [f64; 2] {
        [self.lower, self.upper].map(|distance| match target.scale() {
            TargetScale::Standard => prediction + distance,
            TargetScale::Log => prediction.max(LEAST) * distance.exp(),
        })
    }
}

/// # Errors
/// [`Error::Coverage`] unless it is between 0 and 1.
pub(super) fn check(coverage: f64) -> Result<(), Error> {
    if coverage > 0.0 && coverage < 1.0 { Ok(()) } else { Err(Error::Coverage { coverage }) }
}

/// How many rows a bound needs: of n rows and the new one, at least a share of 1 / (n + 1) is outside of it.
fn needed(coverage: f64) -> usize {
    (2.0 / (1.0 - coverage) - 1.0 - 1e-9).ceil() as usize
}

/// # Errors
/// [`Error::FewIntervalRows`] if there are fewer rows than needed.
pub(super) fn check_rows(target: &Target, coverage: f64, n_rows: usize) -> Result<(), Error> {
    let needed = needed(coverage);
    if n_rows >= needed {
        Ok(())
    } else {
        Err(Error::FewIntervalRows { target: target.name().to_owned(), coverage, n_rows, needed })
    }
}

/// The last of ordered distances, from the outermost one on, that at most this share of the weight of all rows and a new one of
/// mean weight is up to; `None` if that is not even the first.
fn quantile(distances: impl ExactSizeIterator<Item = (f64, f64)> + Clone, share: f64) -> Option<f64> {
    let n_rows = distances.len() as f64;
    let total: f64 = distances.clone().map(|(_, weight)| weight).sum();
    // Rounding must not cost a row.
    let most = share * (n_rows + 1.0) * (1.0 + 1e-12);
    let mut up_to = 0.0;
    let counted = distances.map(|(distance, weight)| {
        up_to += weight * n_rows / total;
        (distance, up_to)
    });
    counted.take_while(|(_, up_to)| *up_to <= most).last().map(|(distance, _)| distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(scale: TargetScale) -> Target {
        Target::Number { name: "y".to_owned(), offset: 0.0, scale, mean: 0.0, std: 1.0 }
    }

    fn rows(distances: impl Iterator<Item = f32>) -> Validated {
        let labels: Vec<f32> = distances.collect();
        Validated {
            outputs: vec![100.0; labels.len()],
            labels: labels.iter().map(|label| 100.0 + label).collect(),
            weights: None,
        }
    }

    #[test]
    fn bounds_are_the_ranks_of_conformal_prediction() -> Result<(), Error> {
        let standard = target(TargetScale::Standard);
        // Of 99 distances the bounds are those of rank 5 from either end.
        let hundred = rows((1..=99).map(|i| i as f32));
        let found = Intervals::fit(&standard, 0.9, &hundred)?;
        assert_eq!(found, Intervals { coverage: 0.9, lower: 5.0, upper: 95.0, n_rows: 99 });
        assert_eq!(found.around(&standard, 10.0), [15.0, 105.0]);
        // Of 98 rows that of rank 4: 5 would be more than 5 % of 99.
        let fewer = Intervals::fit(&standard, 0.9, &rows((1..=98).map(|i| i as f32)))?;
        assert_eq!((fewer.lower, fewer.upper), (4.0, 95.0));
        // Rows of equal weight are rows without; those that count nothing do not exist.
        let weighted = Intervals::fit(&standard, 0.9, &Validated { weights: Some(vec![3.0; 99]), ..hundred.clone() })?;
        assert_eq!(weighted, found);
        let half = rows((1..=198).map(|i| if i % 2 == 0 { (i / 2) as f32 } else { 1e6 }));
        let weights = Some((1..=198).map(|i| if i % 2 == 0 { 1.0 } else { 0.0 }).collect());
        assert_eq!(Intervals::fit(&standard, 0.9, &Validated { weights, ..half })?, found);
        Ok(())
    }

    #[test]
    fn bounds_of_logarithms_are_ratios() -> Result<(), Error> {
        let log = target(TargetScale::Log);
        let found = Intervals::fit(&log, 0.8, &rows((1..=9).map(|i| 20.0 * i as f32 - 100.0)))?;
        let [lower, upper] = found.around(&log, 10.0);
        assert!((lower - 2.0).abs() < 1e-5 && (upper - 18.0).abs() < 1e-5, "{lower}, {upper}");
        assert!(found.around(&log, 0.0)[1] >= 0.0, "a prediction that is rounded to 0 has an interval");
        Ok(())
    }

    #[test]
    fn what_no_interval_can_hold_is_refused() {
        let standard = target(TargetScale::Standard);
        for (n_rows, coverage, is_enough) in [(18, 0.9, false), (19, 0.9, true), (198, 0.99, false), (199, 0.99, true)] {
            let found = Intervals::fit(&standard, coverage, &rows((0..n_rows).map(|i| i as f32)));
            assert_eq!(found.is_ok(), is_enough, "{n_rows} rows for {coverage}");
            if let Err(error) = found {
                assert!(error.to_string().contains(&format!("at least {}", n_rows + 1)), "{error}");
            }
        }
        for coverage in [0.0, 1.0, -0.5, 90.0, f64::NAN] {
            let error = Intervals::fit(&standard, coverage, &rows((0..99).map(|i| i as f32))).expect_err("no coverage");
            assert!(matches!(error, Error::Coverage { .. }), "{error}");
        }
    }
}
