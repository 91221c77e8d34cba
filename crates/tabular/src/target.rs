use brisk_loader::RowSource;
use brisk_train::{Binary, Classification, FeedElement, Labels, Regression, Task};
use serde::{Deserialize, Serialize};

use crate::calibration::{log_loss, log_losses};
use crate::error::{Error, no_rows};
use crate::mean::{mean_and_deviation, share_of, squared_errors, weighted_mean};
use crate::target_kind::TargetKind;
use crate::target_scale::TargetScale;
use crate::validated::Validated;

/// What is predicted: one of several classes, or a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Target {
    /// A class; of two classes, the model learns the probability of the second.
    Classes {
        /// The column.
        name: String,
        /// The names of the classes.
        classes: Vec<String>,
        /// The label of each class in the rows, ascending.
        labels: Vec<f32>,
    },
    /// A number, scaled for training.
    Number {
        /// The column.
        name: String,
        /// What was subtracted from the numbers before they became the labels of rows, so that large numbers keep their digits;
        /// predictions are in the units of the numbers, labels are not.
        offset: f64,
        /// How it is scaled.
        scale: TargetScale,
        /// The mean of the numbers of the training rows, or of their logarithms; the [offset](Self::offset) is subtracted from
        /// numbers, but not before logarithms are taken.
        mean: f64,
        /// Their standard deviation.
        std: f64,
    },
}

/// Whole numbers with at most this many different values are treated as classes, unless a kind is given.
pub(super) const MAX_GUESSED_CLASSES: usize = 20;

/// The fewest rows per class, on average, with which whole numbers, or more than [`MAX_GUESSED_CLASSES`] names, are treated as
/// classes, unless a kind is given.
const MIN_ROWS_PER_CLASS: usize = 5;

/// Whether so many different whole numbers in so many rows are classes, unless a kind is given.
pub(super) fn are_few(n_classes: usize, n_rows: usize) -> bool {
    n_classes <= 2 || (n_classes <= MAX_GUESSED_CLASSES && n_classes * MIN_ROWS_PER_CLASS <= n_rows)
}

impl Target {
    /// The target in the labels of `rows`, which [`fitted_to`](Self::fitted_to) then fits to the training rows. `class_names` are
    /// the names of the classes that labels are numbers of, none if they are numbers as such.
    ///
    /// Unless `kind` is given, labels are classes if they have names, if there are two different ones, or if they are whole
    /// numbers of which at most 20 are different, with five rows of each on average; else they are numbers to predict.
    ///
    /// # Errors
    /// [`Error::Value`](brisk_train::Error::Value); [`Error::OneLabel`]; [`Error::TargetKind`] if the labels are not of the
    /// `kind`; [`Error::TooManyClasses`] for more than 20 named classes of which most have fewer than 5 rows, unless `kind` is
    /// given; [`Error::Rows`](brisk_train::Error::Rows).
    pub fn detect<S: RowSource<Feature: FeedElement>>(
        name: &str,
        class_names: &[String],
        kind: Option<TargetKind>,
        rows: &S,
    ) -> Result<Self, Error> {
        let mut labels = Labels::Numbers.read("all", rows)?;
        let n_rows = labels.len();
        if n_rows == 0 {
            return Err(no_rows("all", n_rows, rows.n_cols()));
        }
        // 0 and -0 are one label, which is called 0.
        labels.iter_mut().for_each(|label| *label += 0.0);
        labels.sort_unstable_by(f32::total_cmp);
        labels.dedup();
        let target = || name.to_owned();
        let class_name = |label: f32| class_names.get(label as usize).cloned().unwrap_or_else(|| label.to_string());
        if let [label] = labels[..] {
            return Err(Error::OneLabel { target: target(), label: class_name(label), n_rows });
        }
        let n_classes = class_names.len();
        if kind.is_none() && n_classes > MAX_GUESSED_CLASSES && n_classes * MIN_ROWS_PER_CLASS > n_rows {
            return Err(Error::TooManyClasses { target: target(), n_classes, n_rows });
        }
        let are_whole = labels.iter().all(|label| label.fract() == 0.0);
        let are_classes = n_classes > 0 || labels.len() == 2 || (are_whole && are_few(labels.len(), n_rows));
        let kind = kind.unwrap_or(if are_classes { TargetKind::Classes } else { TargetKind::Number });
        let refused = |found: String| Err(Error::TargetKind { target: target(), kind, found });
        match kind {
            TargetKind::Number if !class_names.is_empty() => refused(format!("{} classes with names", class_names.len())),
            TargetKind::Number => Ok(Self::unfitted(target(), 0.0, TargetScale::Standard)),
            TargetKind::Binary if labels.len() != 2 => refused(format!("{} different labels", labels.len())),
            TargetKind::Classes if !are_whole && labels.len() > 2 => refused("numbers with fractions".to_owned()),
            TargetKind::Binary | TargetKind::Classes => {
                let classes = labels.iter().map(|&label| class_name(label)).collect();
                Ok(Self::Classes { name: target(), classes, labels })
            }
        }
    }

    /// A number to predict, standardised by `rows`.
    ///
    /// # Errors
    /// As [`fitted_to`](Self::fitted_to).
    pub fn numbers<S: RowSource<Feature: FeedElement>>(name: &str, set: &'static str, rows: &S) -> Result<Self, Error> {
        Self::unfitted(name.to_owned(), 0.0, TargetScale::Standard).fitted_to(set, rows)
    }

    fn unfitted(name: String, offset: f64, scale: TargetScale) -> Self {
        Self::Number { name, offset, scale, mean: 0.0, std: 1.0 }
    }

    /// The same target, for labels from which `offset` was subtracted. Classes are not changed.
    pub fn shifted_by(self, offset: f64) -> Self {
        match self {
            Self::Number { name, scale, mean, std, .. } => Self::Number { name, offset, scale, mean, std },
            classes => classes,
        }
    }

    /// The same target, scaled for training in another way, which [`fitted_to`](Self::fitted_to) then fits to the training rows.
    /// `rows` are all those that it will be trained on, validated or tested by.
    ///
    /// # Errors
    /// [`Error::NotNumber`] for classes; [`Error::NotPositive`] for a row with a number that has no logarithm, if it is scaled by
    /// [`TargetScale::Log`]; [`Error::Value`](brisk_train::Error::Value); [`Error::Rows`](brisk_train::Error::Rows).
    pub fn with_scale<S: RowSource<Feature: FeedElement>>(self, scale: TargetScale, rows: &S) -> Result<Self, Error> {
        self.check_number("scales of the target")?;
        let target = Self::unfitted(self.name().to_owned(), self.offset(), scale);
        target.scaled(&Labels::Numbers.read("all", rows)?, |row| rows.source_row(row))?;
        Ok(target)
    }

    /// A number with these labels of training rows, scaled by its logarithms.
    pub(super) fn logarithmic(&self, labels: &[f32]) -> Result<Self, Error> {
        Self::unfitted(self.name().to_owned(), self.offset(), TargetScale::Log).fitted_to_labels(labels, |row| row)
    }

    /// How numbers are scaled for training; as they are for classes.
    pub fn scale(&self) -> TargetScale {
        match self {
            Self::Classes { .. } => TargetScale::Standard,
            Self::Number { scale, .. } => *scale,
        }
    }

    /// The label of the number 0, if numbers are scaled by their ratios to each other.
    pub(super) fn zero(&self) -> Option<f64> {
        (self.scale() == TargetScale::Log).then(|| -self.offset())
    }

    /// The labels of rows before they are standardised.
    ///
    /// # Errors
    /// [`Error::NotPositive`] for the first row that has no logarithm, as `source_row` numbers it.
    fn scaled(&self, labels: &[f32], source_row: impl Fn(u32) -> u32) -> Result<Vec<f64>, Error> {
        let scaled: Vec<f64> = labels.iter().map(|&label| self.scaled_label(label)).collect();
        match scaled.iter().position(|number| !number.is_finite()) {
            None => Ok(scaled),
            Some(row) => {
                let (target, number) = (self.name().to_owned(), f64::from(labels[row]) + self.offset());
                Err(Error::NotPositive { target, row: source_row(row as u32) as usize, number })
            }
        }
    }

    fn scaled_label(&self, label: f32) -> f64 {
        match self.scale() {
            TargetScale::Standard => label.into(),
            TargetScale::Log => (f64::from(label) + self.offset()).ln(),
        }
    }

    /// What was subtracted from numbers before they became labels; 0 for classes.
    pub fn offset(&self) -> f64 {
        match self {
            Self::Classes { .. } => 0.0,
            Self::Number { offset, .. } => *offset,
        }
    }

    /// The same target, whose numbers are standardised by `rows`. Classes are not changed.
    ///
    /// # Errors
    /// [`Error::Value`](brisk_train::Error::Value); [`Error::OneLabel`] if all numbers are the same; [`Error::NotPositive`] for a
    /// number without a logarithm, if it is scaled by one; [`Error::Rows`](brisk_train::Error::Rows).
    pub fn fitted_to<S: RowSource<Feature: FeedElement>>(self, set: &'static str, rows: &S) -> Result<Self, Error> {
        if !self.classes().is_empty() {
            return Ok(self);
        }
        self.fitted_to_labels(&Labels::Numbers.read(set, rows)?, |row| rows.source_row(row))
    }

    /// The same for the labels of training rows.
    pub(super) fn fitted_to_labels(self, labels: &[f32], source_row: impl Fn(u32) -> u32) -> Result<Self, Error> {
        let scaled = self.scaled(labels, source_row)?;
        let Self::Number { name, offset, scale, .. } = self else { return Ok(self) };
        let [mean, std] = mean_and_deviation(&scaled);
        if !(std > 0.0 && (1.0 / std).is_finite()) {
            let label = labels.first().map_or_else(String::new, |&label| (f64::from(label) + offset).to_string());
            return Err(Error::OneLabel { target: name, label, n_rows: labels.len() });
        }
        Ok(Self::Number { name, offset, scale, mean, std })
    }

    /// The column.
    pub fn name(&self) -> &str {
        match self {
            Self::Classes { name, .. } | Self::Number { name, .. } => name,
        }
    }

    /// The kind of target.
    pub fn kind(&self) -> TargetKind {
        match self {
            Self::Classes { classes, .. } if classes.len() == 2 => TargetKind::Binary,
            Self::Classes { .. } => TargetKind::Classes,
            Self::Number { .. } => TargetKind::Number,
        }
    }

    /// The names of the classes; none for a number.
    pub fn classes(&self) -> &[String] {
        match self {
            Self::Classes { classes, .. } => classes,
            Self::Number { .. } => &[],
        }
    }

    /// # Errors
    /// [`Error::NotTwoClasses`] unless there are two classes.
    pub(super) fn check_two_classes(&self) -> Result<(), Error> {
        match self.classes().len() {
            2 => Ok(()),
            n_classes => Err(Error::NotTwoClasses { target: self.name().to_owned(), n_classes }),
        }
    }

    /// # Errors
    /// [`Error::NotNumber`] if there are classes, with `what` is for numbers only.
    pub(super) fn check_number(&self, what: &'static str) -> Result<(), Error> {
        match self {
            Self::Number { .. } => Ok(()),
            Self::Classes { name, classes, .. } => Err(Error::NotNumber { target: name.clone(), n_classes: classes.len(), what }),
        }
    }

    /// The task that a model is trained for: [`Binary`] for two classes, [`Classification`], or [`Regression`] by the squared
    /// error.
    pub fn task(&self) -> Box<dyn Task> {
        match self {
            Self::Classes { classes, .. } if classes.len() == 2 => Box::new(Binary::new()),
            Self::Classes { classes, .. } => Box::new(Classification::of(classes.len())),
            Self::Number { .. } => Box::new(Regression::mse()),
        }
    }

    /// The label that the [task](Self::task) takes: the number of a class, or a standardised number. NaN, which no task takes,
    /// for a label that is none of the classes.
    pub fn label(&self, label: f32) -> f32 {
        match self {
            Self::Classes { labels, .. } => {
                labels.iter().position(|&other| other == label).map_or(f32::NAN, |class| class as f32)
            }
            Self::Number { mean, std, .. } => ((self.scaled_label(label) - mean) / std) as f32,
        }
    }

    /// The log loss of logits, or the root mean squared error of numbers that are [restored](Self::restore), as labels are.
    pub(super) fn loss(&self, outputs: &[f32], labels: &[f32], weights: Option<&[f32]>) -> f64 {
        match self {
            Self::Classes { .. } => log_loss(outputs, labels, weights),
            Self::Number { .. } => weighted_mean(squared_errors(outputs, labels), weights).sqrt(),
        }
    }

    /// What the [`loss`](Self::loss) is computed from: the log loss or the squared error of each row.
    pub(super) fn losses(&self, outputs: &[f32], labels: &[f32]) -> Vec<f64> {
        match self {
            Self::Classes { .. } => log_losses(outputs, labels).collect(),
            Self::Number { .. } => squared_errors(outputs, labels).collect(),
        }
    }

    /// The name of the [`loss`](Self::loss) as a metric.
    pub(super) fn loss_name(&self) -> &'static str {
        if self.classes().is_empty() { "rmse" } else { "log_loss" }
    }

    /// The lowest [`loss`](Self::loss) that one prediction for all rows has: that of the frequencies of the classes, or of the
    /// mean.
    pub(super) fn constant_loss(&self, labels: &[f32], weights: Option<&[f32]>) -> f64 {
        match self {
            Self::Classes { classes, .. } => (0..classes.len())
                .map(|class| share_of(class, labels, weights))
                .filter(|share| *share > 0.0)
                .map(|share| -share * share.ln())
                .sum(),
            Self::Number { .. } => {
                let mean = weighted_mean(labels.iter().map(|&label| f64::from(label)), weights);
                weighted_mean(labels.iter().map(|&label| (f64::from(label) - mean).powi(2)), weights).sqrt()
            }
        }
    }

    /// The best constant prediction of rows with labels of the [task](Self::task): the share of each class, where a class that
    /// does not occur counts as if one row of mean weight had it; or the mean of the numbers, [restored](Self::restore).
    pub(super) fn constant_of(&self, Validated { labels, weights, .. }: &Validated) -> Vec<f64> {
        let weights = weights.as_deref();
        match self {
            Self::Classes { classes, .. } => {
                let least = 1.0 / labels.len() as f64;
                (0..classes.len()).map(|class| share_of(class, labels, weights).max(least)).collect()
            }
            Self::Number { .. } => {
                let mut labels = labels.clone();
                self.restore(&mut labels);
                vec![weighted_mean(labels.iter().map(|&label| f64::from(label)), weights)]
            }
        }
    }

    /// A model's output in the units of the labels: numbers are no longer standardised, logits stay as they are.
    pub fn restore(&self, outputs: &mut [f32]) {
        if let Self::Number { offset, scale, mean, std, .. } = self {
            let restored = |output: f64| match scale {
                TargetScale::Standard => output * std + mean,
                // Finite, however large the logarithm is.
                TargetScale::Log => (output * std + mean).exp().min(f32::MAX.into()) - offset,
            };
            outputs.iter_mut().for_each(|output| *output = restored((*output).into()) as f32);
        }
    }
}
