use std::fmt;
use std::sync::Arc;

use brisk_loader::{Layout, Names, RowBuffers, RowSelection, RowSource};
use brisk_nn::tensor::Tensor;
use brisk_train::metrics::{Direction, Error as MetricError, Metric, MetricValue, Scored};
use brisk_train::{Error as TrainError, LabelledRows, Labels, Task};

use crate::error::{Error, failed};
use crate::mean::share_of;
use crate::target::Target;
use crate::validated::Validated;

/// The weights of all rows, if they have any.
///
/// # Errors
/// [`Error::RowSet`](brisk_train::Error::RowSet) with the name of the `set` if all are 0;
/// [`Error::Rows`](brisk_train::Error::Rows).
fn weights_of<S: RowSource>(set: &'static str, rows: &S) -> Result<Option<Vec<f32>>, Error> {
    let Layout { n_rows, has_weights, .. } = rows.layout();
    if !has_weights {
        return Ok(None);
    }
    let mut weights = vec![0.0; n_rows];
    let into = RowBuffers { weights: Some(&mut weights), ..RowBuffers::default() };
    rows.gather(RowSelection::Range(0..n_rows), into).map_err(failed(set))?;
    if weights.iter().all(|&weight| weight == 0.0) {
        let found = format!("all {n_rows} weights are 0");
        let expected = "some above 0; leave the weights out, or set some".into();
        return Err(TrainError::RowSet { set, found, expected }.into());
    }
    Ok(Some(weights))
}

/// The labels that the task of the target takes, and the weights of all rows, without outputs.
pub(super) fn labelled<S: RowSource>(target: &Target, set: &'static str, rows: &S) -> Result<Validated, Error> {
    let labels = target.task().labels().read(set, rows)?;
    Ok(Validated { outputs: Vec::new(), labels, weights: weights_of(set, rows)? })
}

/// Rows with other weights, or without any.
#[derive(Debug)]
pub(super) struct Reweighted<'a, S> {
    pub(super) rows: &'a S,
    pub(super) weights: Option<Vec<f32>>,
}

impl<S: RowSource> RowSource for Reweighted<'_, S> {
    type Feature = S::Feature;
    type Error = S::Error;

    fn layout(&self) -> Layout {
        Layout { has_weights: self.weights.is_some(), ..self.rows.layout() }
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, S::Feature>) -> Result<(), S::Error> {
        let n_weights = if self.weights.is_some() { rows.len() } else { 0 };
        if into.weights.as_ref().is_some_and(|to| to.len() != n_weights) {
            // No source has this row: its error is the one for buffers that do not fit.
            return self.rows.gather(RowSelection::Numbers(&[u32::MAX]), RowBuffers::default());
        }
        if let (Some(weights), Some(to)) = (&self.weights, into.weights) {
            // The rows report those that do not exist.
            let of = |row: usize| weights.get(row).copied().unwrap_or(0.0);
            match &rows {
                RowSelection::Range(range) => range.clone().zip(to).for_each(|(row, to)| *to = of(row)),
                RowSelection::Numbers(numbers) => numbers.iter().zip(to).for_each(|(&row, to)| *to = of(row as usize)),
            }
        }
        self.rows.gather(rows, RowBuffers { weights: None, ..into })
    }

    fn names(&self) -> Names<'_> {
        self.rows.names()
    }

    fn check_intact(&self) -> Result<(), S::Error> {
        self.rows.check_intact()
    }

    fn source_row(&self, row: u32) -> u32 {
        self.rows.source_row(row)
    }
}

/// How much the classes of a target count in the loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ClassWeights {
    /// As they are: each row counts by its own weight.
    #[default]
    Observed,
    /// All classes alike, as with scikit-learn's `class_weight="balanced"`: the loss of a row is multiplied by
    /// `n_rows / (n_classes * n_rows_of_its_class)`. The network then learns the probabilities of a population in which all
    /// classes are equally frequent. [`Fitting`](crate::Fitting) undoes that in the [calibration](crate::Calibration), so that
    /// predicted probabilities are those of the observed frequencies. What remains is that rare classes are learned better; which
    /// class is predicted where is a question of the threshold.
    Balanced,
}

impl ClassWeights {
    /// # Errors
    /// [`Error::NotClasses`] for weights of the classes of a number.
    pub(super) fn check(self, target: &Target) -> Result<(), Error> {
        let is_right = self == Self::Observed || !target.classes().is_empty();
        if is_right { Ok(()) } else { Err(Error::NotClasses { target: target.name().to_owned(), what: "weights of classes" }) }
    }

    /// The weight of each class; `None` if all are 1.
    pub(super) fn of(self, target: &Target, labels: &[f32], weights: Option<&[f32]>) -> Result<Option<Vec<f32>>, Error> {
        self.check(target)?;
        match self {
            Self::Observed => Ok(None),
            Self::Balanced => {
                let shares: Vec<f64> = (0..target.classes().len()).map(|class| share_of(class, labels, weights)).collect();
                let n_present = shares.iter().filter(|share| **share > 0.0).count() as f64;
                let of_class = |share: &f64| if *share > 0.0 { (1.0 / (n_present * share)) as f32 } else { 1.0 };
                Ok(Some(shares.iter().map(of_class).collect()))
            }
        }
    }
}

/// The weights of rows in the loss: their own, multiplied by those of their classes.
pub(super) fn loss_weights(labels: &[f32], weights: Option<Vec<f32>>, classes: Option<&[f32]>) -> Option<Vec<f32>> {
    let Some(classes) = classes else { return weights };
    let own = |row: usize| weights.as_ref().map_or(1.0, |weights| weights[row]);
    Some(labels.iter().enumerate().map(|(row, &label)| own(row) * classes[label as usize]).collect())
}

/// A task whose metrics weigh the rows, which are always the same ones, from the first on.
#[derive(Debug)]
pub(super) struct WeightedTask {
    pub(super) task: Box<dyn Task>,
    pub(super) weights: Option<Arc<[f32]>>,
}

impl Task for WeightedTask {
    fn labels(&self) -> Labels {
        self.task.labels()
    }

    fn check(&self) -> Result<(), TrainError> {
        self.task.check()
    }

    fn n_outputs(&self) -> usize {
        self.task.n_outputs()
    }

    #[track_caller]
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        self.task.loss(outputs, rows)
    }

    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        let Some(weights) = &self.weights else { return self.task.metrics() };
        let weighted = |metric| Box::new(WeightedMetric { metric, weights: weights.clone(), n_seen: 0 }) as Box<dyn Metric>;
        self.task.metrics().into_iter().map(weighted).collect()
    }

    fn watched(&self) -> &str {
        self.task.watched()
    }
}

/// A metric of rows with weights.
struct WeightedMetric {
    metric: Box<dyn Metric>,
    weights: Arc<[f32]>,
    /// Rows since the last reset.
    n_seen: usize,
}

impl fmt::Debug for WeightedMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of rows with weights", self.metric)
    }
}

impl Metric for WeightedMetric {
    fn name(&self) -> &str {
        self.metric.name()
    }

    fn direction(&self) -> Direction {
        self.metric.direction()
    }

    fn reset(&mut self) {
        self.n_seen = 0;
        self.metric.reset();
    }

    fn update(&mut self, rows: &Scored<'_>) -> Result<(), MetricError> {
        let end = self.n_seen + rows.n_rows();
        let weights = self.weights.get(self.n_seen..end).unwrap_or_default();
        self.metric.update(&rows.with_weights(weights))?;
        self.n_seen = end;
        Ok(())
    }

    fn compute(&self) -> Result<MetricValue, MetricError> {
        self.metric.compute()
    }

    fn is_number(&self) -> bool {
        self.metric.is_number()
    }
}

#[cfg(test)]
mod tests {
    use brisk_loader::{Rows, row_source_conformance};

    use super::*;

    #[test]
    fn balanced_weights_are_those_of_scikit_learn() -> Result<(), Error> {
        let target = |n: usize| Target::Classes {
            name: "y".to_owned(),
            classes: (0..n).map(|class| class.to_string()).collect(),
            labels: (0..n).map(|class| class as f32).collect(),
        };
        let labels = [0.0, 0.0, 0.0, 1.0, 1.0, 2.0];
        // compute_class_weight("balanced", classes=[0, 1, 2], y=labels); the last class has no row.
        let found = ClassWeights::Balanced.of(&target(4), &labels, None)?.expect("weights");
        assert_eq!(found, [2.0 / 3.0, 1.0, 2.0, 1.0]);
        let weights = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
        assert_eq!(ClassWeights::Balanced.of(&target(3), &labels, Some(&weights))?, Some(vec![1.0; 3]));
        assert_eq!(loss_weights(&labels[2..4], Some(vec![3.0, 5.0]), Some(&[2.0, 4.0])), Some(vec![6.0, 20.0]));
        assert_eq!(ClassWeights::Observed.of(&target(3), &labels, None)?, None);
        Ok(())
    }

    #[test]
    fn rows_with_other_weights_are_a_source() {
        let rows = Rows::new(vec![0.5; 12], vec![1.0; 6], 2).and_then(|rows| rows.with_weights(vec![2.0; 6])).expect("rows");
        row_source_conformance(&Reweighted { rows: &rows, weights: None });
        row_source_conformance(&Reweighted { rows: &rows, weights: Some((0..6).map(|row| row as f32).collect()) });
    }
}
