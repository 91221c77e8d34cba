use serde::{Deserialize, Serialize};

use crate::mean::{squared_errors, weighted_mean};
use crate::validated::Validated;

/// A line that makes numbers predicted by a model those that are observed: `slope * prediction + intercept`, in the units of the
/// labels.
///
/// It is fitted to validation rows by least squares, and is `prediction` itself unless the line predicts them better beyond
/// noise: by the Bayesian information criterion (Schwarz 1978, *Estimating the Dimension of a Model*), which asks two parameters
/// of n rows to divide the squared error by more than `n^(2/n)`. Predictions of a target that is scaled by
/// [`TargetScale::Log`](crate::TargetScale::Log) are only multiplied. On the validation rows, the squared error is never above
/// that of the mean of the training rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberCalibration {
    /// What predictions are multiplied by, at least 0: below 1 for a model whose predictions are too far apart.
    pub slope: f64,
    /// What is then added, in the units of the labels, from which [`Target::offset`](crate::Target::offset) is subtracted.
    pub intercept: f64,
    /// The share of the squared error of the mean of the training rows that calibrated predictions are without, on the validation
    /// rows.
    pub gain: f64,
    /// The standard error of the gain.
    pub gain_error: f64,
}

/// The fewest rows that a line is fitted to.
const MIN_ROWS: f64 = 20.0;

impl NumberCalibration {
    const fn of(slope: f64, intercept: f64) -> Self {
        Self { slope, intercept, gain: 0.0, gain_error: 0.0 }
    }

    /// The calibration for predictions and labels in the same units, where the mean of the training rows is `mean`; with a
    /// `zero`, a line through it.
    pub(super) fn fit(rows: &Validated, mean: f64, zero: Option<f64>) -> Self {
        let n_rows = rows.n_effective();
        let n_parameters = if zero.is_some() { 1.0 } else { 2.0 };
        // By how much the parameters have to lower the logarithm of the squared error.
        let least = n_parameters * n_rows.ln() / n_rows;
        let is_better = |new: Self, old: Self| (old.squared_error(rows) / new.squared_error(rows)).ln() > least;
        let (none, constant) = (Self::of(1.0, 0.0), Self::of(0.0, mean));
        let line = Self::line(rows, zero).filter(|line| n_rows >= MIN_ROWS && is_better(*line, constant));
        let own = line.filter(|line| is_better(*line, none)).unwrap_or(none);
        let best = if own.squared_error(rows) <= constant.squared_error(rows) { own } else { line.unwrap_or(constant) };
        best.with_gain_over(constant, rows)
    }

    fn with_gain_over(self, constant: Self, rows: &Validated) -> Self {
        let (own, of_constant) = (self.squares(rows), constant.squares(rows));
        let mean = |numbers: &mut dyn Iterator<Item = f64>| weighted_mean(numbers, rows.weights.as_deref());
        let whole = mean(&mut of_constant.iter().copied());
        if whole == 0.0 {
            return self;
        }
        let gains: Vec<f64> = own.iter().zip(&of_constant).map(|(own, of_constant)| (of_constant - own) / whole).collect();
        let gain = mean(&mut gains.iter().copied());
        let variance = mean(&mut gains.iter().map(|of_row| (of_row - gain).powi(2)));
        Self { gain, gain_error: (variance / rows.n_effective()).sqrt(), ..self }
    }

    /// The line of least squares, if it rises.
    fn line(Validated { outputs, labels, weights }: &Validated, zero: Option<f64>) -> Option<Self> {
        let mean = |of: &dyn Fn(f64, f64) -> f64| {
            let values = outputs.iter().zip(labels).map(|(&output, &label)| of(output.into(), label.into()));
            weighted_mean(values, weights.as_deref())
        };
        let [x, y] = zero.map_or_else(|| [mean(&|output, _| output), mean(&|_, label| label)], |zero| [zero; 2]);
        let slope = mean(&|output, label| (output - x) * (label - y)) / mean(&|output, _| (output - x).powi(2));
        let line = Self::of(slope, y - slope * x);
        (slope > 0.0 && slope.is_finite() && line.intercept.is_finite()).then_some(line)
    }

    /// Whether all rows are predicted to have the mean of the training rows, since on the validation rows the network was not
    /// better.
    pub fn is_constant(self) -> bool {
        self.slope == 0.0
    }

    /// Whether predictions are those of the network.
    pub fn is_identity(self) -> bool {
        (self.slope, self.intercept) == (1.0, 0.0)
    }

    /// Whether predictions are better than the mean of the training rows by more than two standard errors on the validation rows.
    /// (The best of many epochs was chosen by these rows, so that a network that knows nothing has a gain above 0.)
    pub fn is_better_than_constant(self) -> bool {
        self.gain > 2.0 * self.gain_error
    }

    /// The squared error of each row.
    fn squares(self, rows: &Validated) -> Vec<f64> {
        let mut calibrated = rows.outputs.clone();
        self.apply(&mut calibrated);
        squared_errors(&calibrated, &rows.labels).collect()
    }

    /// Their mean; infinite for outputs that are not finite.
    fn squared_error(self, rows: &Validated) -> f64 {
        let error = weighted_mean(self.squares(rows).into_iter(), rows.weights.as_deref());
        if error.is_nan() { f64::INFINITY } else { error }
    }

    /// Replaces predictions by calibrated ones.
    pub(super) fn apply(self, predictions: &mut [f32]) {
        if self.is_identity() {
            return;
        }
        let calibrated = |prediction: f32| {
            // Without the product, so that the constant does not depend on what the network says.
            let own = if self.is_constant() { 0.0 } else { self.slope * f64::from(prediction) };
            (own + self.intercept) as f32
        };
        predictions.iter_mut().for_each(|prediction| *prediction = calibrated(*prediction));
    }
}

#[cfg(test)]
mod tests {
    use brisk_nn::Philox;

    use super::*;

    /// A number from -1 to 1.
    fn noise(row: usize) -> f32 {
        2.0 * Philox::new(7).uniform(0, row as u64) - 1.0
    }

    fn of(n_rows: usize, row: impl Fn(usize) -> (f32, f32)) -> Validated {
        let (outputs, labels) = (0..n_rows).map(row).unzip();
        Validated { outputs, labels, weights: None }
    }

    fn errors(rows: &Validated, mean: f64) -> (NumberCalibration, [f64; 3]) {
        let found = NumberCalibration::fit(rows, mean, None);
        (
            found,
            [found, NumberCalibration::of(1.0, 0.0), NumberCalibration::of(0.0, mean)]
                .map(|calibration| calibration.squared_error(rows)),
        )
    }

    #[test]
    fn predictions_that_are_too_far_apart_or_shifted_are_corrected() {
        for (slope, intercept) in [(0.5_f32, 0.0_f32), (1.5, 0.0), (1.0, 2.0), (0.8, -1.0)] {
            let rows = of(1000, |row| (noise(row), slope * noise(row) + intercept + 0.05 * noise(row + 5000)));
            let (found, [error, raw, constant]) = errors(&rows, intercept.into());
            assert!((found.slope - f64::from(slope)).abs() < 0.02, "{found:?}");
            assert!((found.intercept - f64::from(intercept)).abs() < 0.02, "{found:?}");
            assert!(error < 0.5 * raw && error < 0.5 * constant, "{error}, {raw}, {constant}");
        }
    }

    #[test]
    fn good_predictions_stay_as_they_are() {
        for n_rows in [3, 30, 300] {
            let rows = of(n_rows, |row| (noise(row), noise(row) + 0.3 * noise(row + 5000)));
            let found = NumberCalibration::fit(&rows, 0.0, None);
            assert!(found.is_identity(), "{n_rows}: {found:?}");
            // Of the variance 1/3 of labels, 0.3 times noise of the same variance remains.
            assert!(n_rows < 100 || (found.gain - 0.91).abs() < 0.03 && found.is_better_than_constant(), "{found:?}");
        }
    }

    #[test]
    fn no_model_is_worse_than_the_constant() {
        let knowing_nothing = of(300, |row| (noise(row), 7.0 + noise(row + 5000)));
        let (found, [error, _, constant]) = errors(&knowing_nothing, 7.0);
        assert!(found.is_constant() && found.intercept == 7.0 && error <= constant, "{found:?}");
        assert!(found.gain == 0.0 && !found.is_better_than_constant(), "{found:?}");
        let inverted = of(300, |row| (-noise(row), noise(row)));
        assert!(errors(&inverted, 0.1).0.is_constant(), "a line that falls is none");
        let exploding = of(300, |row| (if row == 7 { 1e30 } else { noise(row) }, noise(row)));
        let (found, [error, _, constant]) = errors(&exploding, 0.0);
        assert!(error <= constant, "{found:?}");
        for value in [f32::NAN, f32::INFINITY, 0.0] {
            let rows = of(300, |row| (value, noise(row) + 1.0));
            let (found, _) = errors(&rows, 1.0);
            let mut predictions = [value];
            found.apply(&mut predictions);
            assert_eq!(predictions, [1.0], "{value}: {found:?}");
        }
    }

    #[test]
    fn predictions_of_positive_numbers_are_only_multiplied() {
        // Numbers from 1 to 3, less 5, and predictions that are a fifth too small.
        let rows = of(300, |row| (0.8 * (2.0 + noise(row)) - 5.0, 2.0 + noise(row) - 5.0));
        let found = NumberCalibration::fit(&rows, -3.0, Some(-5.0));
        assert!((found.slope - 1.25).abs() < 1e-4 && (found.intercept - 1.25).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn rows_count_by_their_weights() {
        // Half of the rows are twice as large as predicted, but do not count.
        let rows = of(1000, |row| (noise(row), if row % 2 == 0 { 2.0 } else { 0.5 } * noise(row)));
        let weights = Some((0..1000).map(|row| (row % 2) as f32).collect());
        let found = NumberCalibration::fit(&Validated { weights, ..rows }, 0.0, None);
        assert!((found.slope - 0.5).abs() < 1e-6, "{found:?}");
    }
}
