use std::fmt;
use std::time::Duration;

use brisk_loader::{Encoding, Layout, Names, RowBuffers, RowSelection, RowSource};
use brisk_nn::tensor::program::Device;

use crate::digest::digest;
use crate::error::Error;
use crate::fitting::Fitting;
use crate::mean::{mean_and_deviation, squared_errors, weighted_mean};
use crate::preprocessing::Preprocessing;
use crate::reading::shortest;
use crate::recipe::Recipe;
use crate::target::Target;
use crate::target_scale::TargetScale;
use crate::validated::Validated;

/// Why [`Fitting::choose_target_scale`] chose a [`TargetScale`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum TargetScaleReason {
    /// Some numbers have no logarithm, or cannot be told from 0 in the digits of a standardised `f32`. `smallest` is the smallest
    /// of them; 0 if it cannot be told from it.
    NotPositive { smallest: f64 },
    /// The numbers have no long tail above their mean, or the logarithm makes none of it go away. `skewness` is that of the
    /// training rows, `of_logs` that of their logarithms.
    NotSkewed { skewness: f64, of_logs: f64 },
    /// A short training with [`TargetScale::Standard`] and one with [`TargetScale::Log`], and the root mean squared error of each
    /// on the validation rows.
    Validated { standard: f64, log: f64 },
}

impl fmt::Display for TargetScaleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPositive { smallest } => write!(f, "the smallest number is {}, which has no logarithm", shortest(*smallest)),
            Self::NotSkewed { skewness, of_logs } => {
                write!(f, "the skewness of the target is {skewness:.2}, that of its logarithms {of_logs:.2}")
            }
            Self::Validated { standard, log } => {
                let [standard, log] = [standard, log].map(|rmse| *rmse as f32);
                write!(f, "after a short training, the rmse of the validation rows is {standard} with standard, {log} with log")
            }
        }
    }
}

/// The smallest skewness that is worth two short trainings: that of an exponential distribution is 2, of a half-normal one 1.
const MIN_SKEWNESS: f64 = 1.0;

/// How much a number may be off after it was standardised and restored, in standard deviations.
const ROUNDING: f64 = 1e-6;

/// A short training has the epochs and the time of a recipe divided by this.
const SHORT: u32 = 8;

impl Fitting<'_> {
    /// Which scale suits a target that is a number, and why, for rows that have the [labels](crate::Preprocessed::with_target) of
    /// the target with [`TargetScale::Standard`].
    ///
    /// [`TargetScale::Log`] is considered if all numbers are above 0, and if those of the training rows have a skewness of at
    /// least 1 that the logarithm makes smaller. Then the first recipe is trained for an eighth of its epochs with each scale,
    /// and the logarithm is chosen if it lowers the squared error of [calibrated](crate::NumberCalibration) predictions for the
    /// validation rows, in the unit of the target, by more than the standard error of the difference.
    ///
    /// # Errors
    /// As [`fit`](Self::fit); [`Error::NotNumber`] for classes.
    pub fn choose_target_scale<S: RowSource<Feature = f32>, T: RowSource<Feature = f32>>(
        &self,
        device: &Device,
        preprocessing: &Preprocessing,
        target: &Target,
        train: &S,
        valid: &T,
    ) -> Result<(TargetScale, TargetScaleReason), Error> {
        target.check_number("scales of the target")?;
        preprocessing.check_rows(target, "train", train)?;
        preprocessing.check_rows(target, "valid", valid)?;
        let labels = target.task().labels();
        let (mut of_train, mut of_valid) = (labels.read("train", train)?, labels.read("valid", valid)?);
        target.restore(&mut of_train);
        target.restore(&mut of_valid);
        let [numbers, others] = [&of_train, &of_valid]
            .map(|labels| labels.iter().map(|&label| f64::from(label) + target.offset()).collect::<Vec<_>>());
        let smallest = numbers.iter().chain(&others).copied().fold(f64::INFINITY, f64::min);
        // Labels were rounded when they were standardised.
        let [_, deviation] = mean_and_deviation(&numbers);
        let smallest = if smallest.abs() < ROUNDING * deviation { 0.0 } else { smallest };
        if smallest <= 0.0 {
            return Ok((TargetScale::Standard, TargetScaleReason::NotPositive { smallest }));
        }
        let logs: Vec<f64> = numbers.iter().map(|number| number.ln()).collect();
        let [skewness, of_logs] = [&numbers, &logs].map(|numbers| skewness(numbers));
        if !(skewness >= MIN_SKEWNESS && of_logs.abs() < skewness) {
            return Ok((TargetScale::Standard, TargetScaleReason::NotSkewed { skewness, of_logs }));
        }
        let logarithmic = target.logarithmic(&of_train)?;
        let standard = self.short(device, preprocessing, target, train, valid)?;
        let (from, to) = (target, &logarithmic);
        let (train, valid) = (Relabelled { rows: train, from, to }, Relabelled { rows: valid, from, to });
        let log = self.short(device, preprocessing, to, &train, &valid)?;
        let squares = |rows: &Validated| squared_errors(&rows.outputs, &of_valid).collect::<Vec<f64>>();
        let (of_standard, of_log, weights) = (squares(&standard), squares(&log), standard.weights.as_deref());
        let differences: Vec<f64> = of_standard.iter().zip(&of_log).map(|(a, b)| a - b).collect();
        let mean = |numbers: &[f64]| weighted_mean(numbers.iter().copied(), weights);
        let gain = mean(&differences);
        let deviation = mean(&differences.iter().map(|difference| (difference - gain).powi(2)).collect::<Vec<_>>()).sqrt();
        let is_better = gain > deviation / standard.n_effective().sqrt();
        let scale = if is_better { TargetScale::Log } else { TargetScale::Standard };
        let [standard, log] = [mean(&of_standard).sqrt(), mean(&of_log).sqrt()];
        Ok((scale, TargetScaleReason::Validated { standard, log }))
    }

    /// The predictions for the validation rows after a short training.
    fn short<S: RowSource<Feature = f32>, T: RowSource<Feature = f32>>(
        &self,
        device: &Device,
        preprocessing: &Preprocessing,
        target: &Target,
        train: &S,
        valid: &T,
    ) -> Result<Validated, Error> {
        let first = self.recipes.first().ok_or(Error::NoRecipe)?;
        let max_epochs = first.max_epochs.div_ceil(SHORT as usize);
        let fitting = Fitting {
            max_time: self.max_time.map(|time: Duration| time / (2 * SHORT)),
            precision: self.precision,
            configure: Box::new(|trainer, network| (self.configure)(trainer, network)),
            ..Fitting::new(vec![Recipe { max_epochs, ..first.clone() }], self.seed)
        };
        fitting.fit(device, preprocessing.clone(), target.clone(), train, valid)?.model.predicted("valid", valid)
    }
}

/// The mean cube of numbers that are standardised.
fn skewness(numbers: &[f64]) -> f64 {
    let [mean, deviation] = mean_and_deviation(numbers);
    numbers.iter().map(|number| ((number - mean) / deviation).powi(3)).sum::<f64>() / numbers.len() as f64
}

/// Rows with labels of one target as those of another one with the same numbers.
#[derive(Debug)]
struct Relabelled<'a, S> {
    rows: &'a S,
    from: &'a Target,
    to: &'a Target,
}

impl<S: RowSource> RowSource for Relabelled<'_, S> {
    type Feature = S::Feature;
    type Error = S::Error;

    fn layout(&self) -> Layout {
        self.rows.layout()
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, S::Feature>) -> Result<(), S::Error> {
        let RowBuffers { features, mut labels, categories, weights } = into;
        self.rows.gather(rows, RowBuffers { features, labels: labels.as_deref_mut(), categories, weights })?;
        if let Some(labels) = labels {
            self.from.restore(labels);
            labels.iter_mut().for_each(|label| *label = self.to.label(*label));
        }
        Ok(())
    }

    fn names(&self) -> Names<'_> {
        let names = self.rows.names();
        Names { encoding: Encoding { labels: Some(digest(self.to)), ..names.encoding }, ..names }
    }

    fn check_intact(&self) -> Result<(), S::Error> {
        self.rows.check_intact()
    }

    fn source_row(&self, row: u32) -> u32 {
        self.rows.source_row(row)
    }
}
