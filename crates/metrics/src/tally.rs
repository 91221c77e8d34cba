//! The running sums of a metric, and the checks of the rows that it adds.

use crate::error::Error;
use crate::scored::Scored;
use rayon::prelude::*;

use crate::phrases::count;

/// Rows per rayon task. Fixed, so that sums do not depend on the number of threads.
const CHUNK_ROWS: usize = 16 * 1024;

/// What the outputs and labels of a task are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One logit and a label that is 0 or 1.
    Binary,
    /// A logit per class and the class's number.
    Classes,
    /// As many logits as labels that are 0 or 1.
    Labels,
    /// As many predictions as labels.
    Values,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) outputs: &'a [f32],
    pub(crate) labels: &'a [f32],
    pub(crate) weight: f64,
}

impl Row<'_> {
    /// The label of a row whose target is [`Target::Classes`].
    pub(crate) fn class(&self) -> usize {
        self.labels[0] as usize
    }
}

/// Sums that can be added up.
pub(crate) trait Sums: Clone + Send + Sync {
    fn add(&mut self, other: Self);
}

impl<const N: usize> Sums for [f64; N] {
    fn add(&mut self, other: Self) {
        self.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
    }
}

impl<T: Sums> Sums for Vec<T> {
    fn add(&mut self, other: Self) {
        assert_eq!(self.len(), other.len(), "sums of rows with the same outputs");
        self.iter_mut().zip(other).for_each(|(sums, other)| sums.add(other));
    }
}

/// The sums of a metric.
#[derive(Clone, Debug)]
pub(crate) struct Tally<T> {
    metric: &'static str,
    sums: Option<T>,
    n_rows: usize,
    /// Rows of weight 0.
    n_ignored: usize,
    total_weight: f64,
    target: Target,
    n_outputs: usize,
}

impl<T: Sums> Tally<T> {
    pub(crate) fn new(metric: &'static str) -> Self {
        Self { metric, sums: None, n_rows: 0, n_ignored: 0, total_weight: 0.0, target: Target::Values, n_outputs: 0 }
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.metric);
    }

    pub(crate) fn metric(&self) -> &'static str {
        self.metric
    }

    pub(crate) fn target(&self) -> Target {
        self.target
    }

    /// The number of rows with a weight above 0.
    pub(crate) fn n_counted(&self) -> usize {
        self.n_rows - self.n_ignored
    }

    /// The number of rows of weight 0.
    pub(crate) fn n_ignored(&self) -> usize {
        self.n_ignored
    }

    /// Checks the rows, folds chunks of those with a weight above 0 from `zero` in parallel, and adds the results in order. If a
    /// row is refused, nothing has been added.
    pub(crate) fn update(
        &mut self,
        rows: &Scored<'_>,
        target: Target,
        zero: T,
        add: impl Fn(&mut T, Row<'_>) + Sync,
    ) -> Result<(), Error> {
        // A loss of infinity times a weight of 0 must not become NaN.
        self.update_all(rows, target, zero, |sums, row| {
            if row.weight > 0.0 {
                add(sums, row)
            }
        })
    }

    /// The same for all rows, also those of weight 0.
    pub(crate) fn update_all(
        &mut self,
        rows: &Scored<'_>,
        target: Target,
        zero: T,
        add: impl Fn(&mut T, Row<'_>) + Sync,
    ) -> Result<(), Error> {
        let Self { metric, n_rows: first_row, .. } = *self;
        check_counts(metric, rows)?;
        if first_row > 0 && (target, rows.n_outputs) != (self.target, self.n_outputs) {
            let expected = format!("{} and the same kind of labels as before", count(self.n_outputs, "output"));
            return Err(Error::Columns { metric, n_outputs: rows.n_outputs, n_labels: rows.n_labels, expected });
        }
        let chunks: Vec<Result<(T, f64, usize), Error>> = (0..rows.n_rows().div_ceil(CHUNK_ROWS))
            .into_par_iter()
            .map(|chunk| {
                let (mut sums, mut total, mut n_ignored) = (zero.clone(), 0.0, 0);
                for index in chunk * CHUNK_ROWS..rows.n_rows().min((chunk + 1) * CHUNK_ROWS) {
                    let row = row(metric, rows, index, first_row, target)?;
                    total += row.weight;
                    n_ignored += usize::from(row.weight == 0.0);
                    add(&mut sums, row);
                }
                Ok((sums, total, n_ignored))
            })
            .collect();
        let mut chunks = chunks.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter();
        let Some((mut batch, mut weight, mut n_ignored)) = chunks.next() else { return Ok(()) };
        for (sums, total, n) in chunks {
            batch.add(sums);
            weight += total;
            n_ignored += n;
        }
        match &mut self.sums {
            None => self.sums = Some(batch),
            Some(sums) => sums.add(batch),
        }
        (self.target, self.n_outputs) = (target, rows.n_outputs);
        self.n_rows += rows.n_rows();
        self.n_ignored += n_ignored;
        self.total_weight += weight;
        Ok(())
    }

    /// The sums and the sum of the weights, which is positive.
    pub(crate) fn sums(&self) -> Result<(&T, f64), Error> {
        let sums = self.sums.as_ref().ok_or(Error::NoRows { metric: self.metric })?;
        if self.total_weight > 0.0 {
            Ok((sums, self.total_weight))
        } else {
            Err(Error::NoRowWeight { metric: self.metric, n_rows: self.n_rows })
        }
    }
}

/// `new` and [`Default`] of a metric that consists of a [`Tally`].
macro_rules! named {
    ($Metric:ident, $name:literal) => {
        impl $Metric {
            /// The metric over no rows.
            pub fn new() -> Self {
                Self($crate::tally::Tally::new($name))
            }
        }

        impl Default for $Metric {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}
pub(crate) use named;

/// The methods of a metric that are those of its [`Tally`], which is field `$tally`, and its direction.
macro_rules! tallied {
    ($tally:tt, $direction:ident) => {
        fn name(&self) -> &str {
            self.$tally.metric()
        }

        fn direction(&self) -> $crate::direction::Direction {
            $crate::direction::Direction::$direction
        }

        fn reset(&mut self) {
            self.$tally.reset();
        }
    };
}
pub(crate) use tallied;

/// A metric that consists of a [`Tally`]: how it adds rows, and the function that computes its value.
macro_rules! metric {
    ($Metric:ident, $name:literal, $direction:ident, |$tally:ident, $rows:ident| $add:expr, $value:path) => {
        $crate::tally::named!($Metric, $name);

        impl $crate::metric::Metric for $Metric {
            $crate::tally::tallied!(0, $direction);

            fn update(&mut self, $rows: &$crate::scored::Scored<'_>) -> Result<(), $crate::error::Error> {
                let $tally = &mut self.0;
                $add
            }

            fn compute(&self) -> Result<$crate::metric::MetricValue, $crate::error::Error> {
                $value(&self.0).map($crate::metric::MetricValue::Number)
            }
        }
    };
}
pub(crate) use metric;

impl Target {
    /// The kind of classification of the rows.
    pub(crate) fn of_classification(metric: &'static str, rows: &Scored<'_>) -> Result<Self, Error> {
        Self::one_of(&[Self::Binary, Self::Classes, Self::Labels], metric, rows, "one label, or as many labels as outputs")
    }

    /// [`Target::Binary`], for metrics that support nothing else.
    pub(crate) fn binary(metric: &'static str, rows: &Scored<'_>) -> Result<Self, Error> {
        Self::one_of(&[Self::Binary], metric, rows, "one of each: it is for binary classification")
    }

    /// [`Target::Binary`] or [`Target::Labels`], for metrics of scores that are ranked.
    pub(crate) fn binary_or_labels(metric: &'static str, rows: &Scored<'_>) -> Result<Self, Error> {
        let expected = "as many outputs as labels: it is for binary and multi-label classification";
        Self::one_of(&[Self::Binary, Self::Labels], metric, rows, expected)
    }

    /// [`Target::Labels`] or its special case [`Target::Binary`], for metrics of rows with several labels.
    pub(crate) fn labels(metric: &'static str, rows: &Scored<'_>) -> Result<Self, Error> {
        let expected = "as many outputs as labels: it is for multi-label classification";
        Self::one_of(&[Self::Binary, Self::Labels], metric, rows, expected)
    }

    /// [`Target::Classes`], for metrics that support nothing else.
    pub(crate) fn classes(metric: &'static str, rows: &Scored<'_>) -> Result<Self, Error> {
        let expected = "several outputs and one label: it is for multi-class classification";
        Self::one_of(&[Self::Classes], metric, rows, expected)
    }

    /// [`Target::Values`].
    pub(crate) fn values(metric: &'static str, rows: &Scored<'_>) -> Result<Self, Error> {
        Self::one_of(&[Self::Values], metric, rows, "as many labels as outputs")
    }

    /// The first of `targets` that has the outputs and labels of the rows.
    fn one_of(targets: &[Self], metric: &'static str, rows: &Scored<'_>, expected: &str) -> Result<Self, Error> {
        let is_of_rows = |target: &&Self| match (target, rows.n_outputs, rows.n_labels) {
            (Self::Binary, n_outputs, n_labels) => (n_outputs, n_labels) == (1, 1),
            (Self::Classes, n_outputs, n_labels) => n_outputs > 1 && n_labels == 1,
            (Self::Labels, n_outputs, n_labels) => n_outputs == n_labels && n_labels > 1,
            (Self::Values, n_outputs, n_labels) => n_outputs == n_labels && n_labels > 0,
        };
        targets.iter().find(is_of_rows).copied().ok_or_else(|| columns(metric, rows, expected))
    }
}

/// The error for rows whose columns the metric does not take.
pub(crate) fn columns(metric: &'static str, rows: &Scored<'_>, expected: &str) -> Error {
    Error::Columns { metric, n_outputs: rows.n_outputs, n_labels: rows.n_labels, expected: expected.to_owned() }
}

/// Labels of classes as [`Scored`] has them, checked while they are still whole numbers.
pub(crate) fn check_class_labels(metric: &'static str, logits: &[f32], n_classes: usize, labels: &[f32]) -> Result<(), Error> {
    check_predictions(metric, logits, n_classes, labels.len())?;
    if n_classes == 0 && !labels.is_empty() {
        return Err(Error::Setting { metric, setting: "n_classes", found: 0.0, expected: "at least 1".to_owned() });
    }
    let is_class = |label: f32| label >= 0.0 && label.fract() == 0.0 && (label as usize) < n_classes;
    match labels.iter().position(|&label| !is_class(label)) {
        Some(row) => Err(Error::Label { metric, row, found: labels[row], expected: class_of(n_classes) }),
        None if labels.is_empty() => Err(Error::NoRows { metric }),
        None => Ok(()),
    }
}

fn check_counts(metric: &'static str, rows: &Scored<'_>) -> Result<(), Error> {
    if rows.labels.len() != rows.n_rows() * rows.n_labels {
        return Err(columns(metric, rows, &format!("labels of whole rows, found {}", rows.labels.len())));
    }
    check_predictions(metric, rows.outputs, rows.n_outputs, rows.n_rows())?;
    match rows.weights {
        Some(weights) if weights.len() != rows.n_rows() => {
            Err(Error::RowWeightCount { metric, n_rows: rows.n_rows(), found: weights.len() })
        }
        _ => Ok(()),
    }
}

fn check_predictions(metric: &'static str, predictions: &[f32], n_outputs: usize, n_rows: usize) -> Result<(), Error> {
    let expected = n_rows.saturating_mul(n_outputs);
    if predictions.len() == expected {
        Ok(())
    } else {
        Err(Error::PredictionCount { metric, labels: n_rows, expected, found: predictions.len() })
    }
}

/// Row `index` of `rows`, which error messages call `first_row + index`.
fn row<'a>(metric: &'static str, rows: &Scored<'a>, index: usize, first_row: usize, target: Target) -> Result<Row<'a>, Error> {
    let outputs = &rows.outputs[index * rows.n_outputs..][..rows.n_outputs];
    let labels = &rows.labels[index * rows.n_labels..][..rows.n_labels];
    let weight = rows.weights.map_or(1.0, |weights| weights[index]);
    let row = first_row + index;
    if outputs.iter().any(|output| output.is_nan()) {
        return Err(Error::NanPrediction { metric, row });
    }
    let is_label = |label: f32| match target {
        // Exact: a label is 0 or 1.
        Target::Binary | Target::Labels => label == 0.0 || label == 1.0,
        Target::Classes => label >= 0.0 && label.fract() == 0.0 && (label as usize) < rows.n_outputs,
        Target::Values => label.is_finite(),
    };
    if let Some(&label) = labels.iter().find(|&&label| !is_label(label)) {
        let expected = match target {
            Target::Binary | Target::Labels => class_of(2),
            Target::Classes => class_of(rows.n_outputs),
            Target::Values => "a finite number".to_owned(),
        };
        return Err(Error::Label { metric, row, found: label, expected });
    }
    if !(0.0..f32::INFINITY).contains(&weight) {
        return Err(Error::RowWeight { metric, row, found: weight });
    }
    Ok(Row { outputs, labels, weight: f64::from(weight) })
}

/// The numbers of `n_classes` classes.
fn class_of(n_classes: usize) -> String {
    match n_classes {
        0 | 1 => "0".to_owned(),
        2 => "0 or 1".to_owned(),
        _ => format!("a whole number from 0 to {}", n_classes - 1),
    }
}

/// A sum over the rows.
impl Tally<[f64; 1]> {
    /// Adds the `score` of each row.
    pub(crate) fn add_scores(
        &mut self,
        rows: &Scored<'_>,
        target: Target,
        score: impl Fn(Row<'_>, Target) -> f64 + Sync,
    ) -> Result<(), Error> {
        self.update(rows, target, [0.0], |[sum], row| *sum += row.weight * score(row, target))
    }

    pub(crate) fn mean(&self) -> Result<f64, Error> {
        let ([sum], total) = self.sums()?;
        Ok(sum / total)
    }

    /// The mean `score` of these rows only.
    pub(crate) fn mean_of_rows(
        metric: &'static str,
        rows: &Scored<'_>,
        target: Target,
        score: impl Fn(Row<'_>, Target) -> f64 + Sync,
    ) -> Result<f64, Error> {
        let mut tally = Self::new(metric);
        tally.add_scores(rows, target, score)?;
        tally.mean()
    }
}

/// A sum for each label of a row.
impl Tally<Vec<[f64; 1]>> {
    /// Adds `loss(prediction - label)` for each label.
    pub(crate) fn add_errors(&mut self, rows: &Scored<'_>, loss: impl Fn(f64) -> f64 + Sync) -> Result<(), Error> {
        let target = Target::values(self.metric, rows)?;
        self.update(rows, target, vec![[0.0]; rows.n_labels], |columns, row| {
            for (([sum], &output), &label) in columns.iter_mut().zip(row.outputs).zip(row.labels) {
                *sum += row.weight * loss(f64::from(output) - f64::from(label));
            }
        })
    }

    /// The mean over the labels of the means over the rows.
    pub(crate) fn mean_of_labels(&self) -> Result<f64, Error> {
        self.mean_of(|mean| mean)
    }

    /// The same of their square roots.
    pub(crate) fn mean_of_roots(&self) -> Result<f64, Error> {
        self.mean_of(f64::sqrt)
    }

    fn mean_of(&self, of: impl Fn(f64) -> f64) -> Result<f64, Error> {
        let (columns, total) = self.sums()?;
        Ok(columns.iter().map(|[sum]| of(sum / total)).sum::<f64>() / columns.len() as f64)
    }
}
