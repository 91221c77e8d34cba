//! The validation of a run: the metrics of its task on the validation rows.

use std::cell::RefCell;

use super::TrainerConfig;
use crate::metrics::{Metric, MetricValue, Scored};
use crate::{Error, Labels, Mode, Task};

/// The metrics of a task, the labels for them, and which of them decides.
#[derive(Debug)]
pub(super) struct Validation {
    /// `[n_rows, n_labels]`.
    labels: Vec<f32>,
    n_labels: usize,
    kind: Labels,
    metrics: RefCell<Vec<Box<dyn Metric>>>,
    watched: String,
    mode: Mode,
}

impl Validation {
    /// The metrics of `task` on rows with these labels.
    ///
    /// # Errors
    /// [`Error::UnknownMetric`] if early stopping, or the task itself, watches a metric that the task does not have.
    pub(super) fn new(task: &dyn Task, config: &TrainerConfig, labels: Vec<f32>) -> Result<Self, Error> {
        let metrics = task.metrics();
        let watched = config.early_stopping.as_ref().and_then(|early_stopping| early_stopping.monitor.clone());
        let watched = watched.unwrap_or_else(|| format!("valid_{}", task.watched()));
        let named = metrics.iter().map(|metric| (format!("valid_{}", metric.name()), metric.mode()));
        let known: Vec<(String, Mode)> = named.chain(LOSSES.map(|name| (name.to_owned(), Mode::Min))).collect();
        let Some(&(_, mode)) = known.iter().find(|(name, _)| *name == watched) else {
            let known = known.into_iter().map(|(name, _)| name).collect();
            return Err(Error::UnknownMetric { found: watched, known });
        };
        Ok(Self { labels, n_labels: task.n_labels(), kind: task.labels(), metrics: RefCell::new(metrics), watched, mode })
    }

    /// Reports an undefined area under the curve now rather than after an epoch.
    ///
    /// # Errors
    /// [`Error::HeldOutOneClass`].
    pub(super) fn check_classes(&self, n_train_rows: usize) -> Result<(), Error> {
        let needs_both = self.kind == Labels::Binary && self.metrics.borrow().iter().any(|metric| metric.name() == "auc");
        if !needs_both {
            return Ok(());
        }
        let column = |label: usize| self.labels.iter().skip(label).step_by(self.n_labels);
        for label in 0..self.n_labels.min(self.labels.len()) {
            let first = self.labels[label];
            if column(label).all(|&other| other == first) {
                let n_rows = self.labels.len() / self.n_labels;
                let of_several = (self.n_labels > 1).then_some(label);
                return Err(Error::HeldOutOneClass { n_rows, n_train_rows, class: u8::from(first != 0.0), label: of_several });
            }
        }
        Ok(())
    }

    /// The labels of the validation rows, `[n_rows, n_labels]`.
    pub(super) fn labels(&self) -> &[f32] {
        &self.labels
    }

    /// The names of all metrics that are numbers, the training loss first.
    pub(super) fn names(&self) -> Vec<String> {
        let metrics = self.metrics.borrow();
        let names = metrics.iter().filter(|metric| metric.is_number()).map(|metric| format!("valid_{}", metric.name()));
        LOSSES.into_iter().map(str::to_owned).chain(names).collect()
    }

    /// Whether a metric of this name is computed on the validation rows, rather than in training.
    pub(super) fn is_of_validation(&self, name: &str) -> bool {
        name != LOSSES[0] && self.names().iter().any(|found| found == name)
    }

    /// The name of the metric that decides which epoch is the best, such as `valid_auc`.
    pub(super) fn watched(&self) -> &str {
        &self.watched
    }

    /// Whether higher or lower values of it are better.
    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Computes all metrics for the first rows, given the model's outputs for them, to see whether that works. Metrics that are not defined for so few rows, such as the area
    /// under a curve of one class, are skipped.
    pub(super) fn try_out(&self, outputs: &[f32], n_rows: usize) -> Result<(), Error> {
        for metric in self.metrics.borrow_mut().iter_mut() {
            match measured(metric.as_mut(), outputs, &self.labels[..n_rows * self.n_labels], self.n_labels) {
                Err(Error::Metric(error)) if error.is_of_few_rows() => {}
                found => drop(found?),
            }
        }
        Ok(())
    }

    /// All metrics that are numbers, by name, given the model's outputs for all rows, and the losses.
    pub(super) fn measure(&self, outputs: &[f32], train_loss: f64, valid_loss: f64) -> Result<Vec<(String, f64)>, Error> {
        let mut found = vec![(LOSSES[0].to_owned(), train_loss), (LOSSES[1].to_owned(), valid_loss)];
        for metric in self.metrics.borrow_mut().iter_mut() {
            if let MetricValue::Number(value) = measured(metric.as_mut(), outputs, &self.labels, self.n_labels)? {
                found.push((format!("valid_{}", metric.name()), value));
            }
        }
        Ok(found)
    }
}

/// The losses that every run has.
const LOSSES: [&str; 2] = ["train_loss", "valid_loss"];

/// One metric over rows with `n_labels` labels each.
pub(crate) fn measured(metric: &mut dyn Metric, outputs: &[f32], labels: &[f32], n_labels: usize) -> Result<MetricValue, Error> {
    metric.reset();
    let n_outputs = outputs.len() * n_labels / labels.len().max(1);
    metric.update(&Scored { outputs, n_outputs, labels, n_labels, weights: None })?;
    metric.compute()
}
