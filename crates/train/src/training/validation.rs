//! The validation of a run: the metrics of its task on the validation rows.

use std::cell::RefCell;

use brisk_metrics::{Direction, Error as MetricError, Metric, MetricValue, Scored};

use crate::error::Error;
use crate::likely_metric::likely_metric;
use crate::reduce_lr_on_plateau::ReduceLrOnPlateau;
use crate::task::Task;
use crate::trainer_config::TrainerConfig;
use crate::warning::Warning;

/// The metrics of a task, the labels for them, and which of them decides.
#[derive(Debug)]
pub(super) struct Validation {
    /// `[n_rows, n_labels]`.
    pub(super) labels: Vec<f32>,
    n_labels: usize,
    n_outputs: usize,
    metrics: RefCell<Vec<Box<dyn Metric>>>,
    pub(super) watched: String,
    /// What it computes, as text.
    pub(super) definition: String,
    pub(super) direction: Direction,
    /// How rates are reduced, if they are, before the first validation.
    pub(super) plateau: Option<ReduceLrOnPlateau>,
    /// What its metric computes.
    pub(super) plateau_definition: Option<String>,
}

impl Validation {
    /// The metrics of `task` on rows with these labels.
    pub(super) fn new(task: &dyn Task, config: &TrainerConfig, labels: Vec<f32>) -> Result<Self, Error> {
        let mut metrics = task.metrics();
        let debug: Vec<String> = metrics.iter().map(|metric| format!("{metric:?}")).collect();
        check_settings(&mut metrics, task)?;
        let watched = config.early_stopping.as_ref().and_then(|early_stopping| early_stopping.monitor.clone());
        let watched = watched.unwrap_or_else(|| format!("valid_{}", task.watched()));
        check_names(&metrics)?;
        let numbers = metrics.iter().zip(debug).filter(|(metric, _)| metric.is_number());
        let named = numbers.map(|(metric, debug)| (format!("valid_{}", metric.name()), metric.direction(), debug));
        let losses = LOSSES.map(|name| (name.to_owned(), Direction::Minimize, "the loss".to_owned()));
        let known: Vec<(String, Direction, String)> = named.chain(losses).collect();
        let (direction, definition) = find(&known, "metric", &watched)?;
        let (mut plateau, mut plateau_definition) = (None, None);
        if let Some(settings) = config.reduce_lr_on_plateau.clone() {
            let monitor = settings.monitor.as_ref().unwrap_or(&watched);
            let (direction, definition) = find(&known, "reduce_lr_on_plateau.monitor", monitor)?;
            (plateau, plateau_definition) = (Some(settings.of_metric(direction)), Some(definition));
        }
        let (n_labels, n_outputs, metrics) = (task.n_labels(), task.n_outputs(), RefCell::new(metrics));
        Ok(Self { labels, n_labels, n_outputs, metrics, watched, definition, direction, plateau, plateau_definition })
    }

    /// The metric by which rates are reduced, if they are.
    pub(super) fn monitored(&self) -> Option<&str> {
        self.plateau.as_ref().map(|plateau| plateau.monitor.as_ref().unwrap_or(&self.watched).as_str())
    }

    /// Leaves out the metrics that do not exist for the labels, such as the area under a curve of one class: now rather than
    /// after an epoch. Returns a warning for each.
    pub(super) fn leave_out_undefined(&mut self, n_train_rows: usize) -> Result<Vec<Warning>, Error> {
        let &mut Self { ref labels, n_labels, n_outputs, .. } = self;
        let n_rows = labels.len() / n_labels.max(1);
        // Whether they exist depends on the labels only.
        let outputs = vec![0.0; n_rows * n_outputs];
        let rows = Scored { outputs: &outputs, n_outputs, labels, n_labels, weights: None };
        let mut undefined = Vec::new();
        self.metrics.get_mut().retain_mut(|metric| match metric.measure(&rows) {
            Err(error) if error.is_of_few_rows() => {
                undefined.push((format!("valid_{}", metric.name()), error));
                false
            }
            // Another error may be of these outputs only.
            _ => true,
        });
        let is_needed = |metric: &str| metric == self.watched || Some(metric) == self.monitored();
        let warn = |(metric, error): (String, MetricError)| match error {
            MetricError::OneClass { class, label, .. } if is_needed(&metric) => {
                let of_label = label.map_or(String::new(), |label| format!(" of label {label}"));
                let n_all = n_rows + n_train_rows;
                let found = format!("{n_rows} of {n_all} rows are held out for validation, all of class {class}{of_label}");
                Err(Error::row_set("valid", found, "rows of both classes; use more or shuffled rows, or hold out more of them"))
            }
            error if is_needed(&metric) => Err(Error::Metric(error)),
            error => Ok(Warning::UndefinedMetric { metric, reason: error.to_string() }),
        };
        undefined.into_iter().map(warn).collect()
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

    /// Computes all metrics for some rows, by default the first, given the model's outputs for them, to see whether that works.
    /// Metrics that are not defined for so few rows, such as the area under a curve of one class, are skipped.
    pub(super) fn try_out(&self, outputs: &[f32], rows: Option<&[u32]>) -> Result<(), Error> {
        let n_labels = self.n_labels;
        let of_row = |&row: &u32| &self.labels[row as usize * n_labels..][..n_labels];
        let labels: Option<Vec<f32>> = rows.map(|rows| rows.iter().flat_map(of_row).copied().collect());
        let scored = self.scored(outputs);
        let scored = Scored { labels: labels.as_deref().unwrap_or(scored.labels), ..scored };
        for metric in self.metrics.borrow_mut().iter_mut() {
            match metric.measure(&scored) {
                Err(error) if error.is_of_few_rows() => {}
                found => drop(found?),
            }
        }
        Ok(())
    }

    /// The first rows, for which `outputs` are given.
    fn scored<'a>(&'a self, outputs: &'a [f32]) -> Scored<'a> {
        let &Self { n_labels, n_outputs, .. } = self;
        let labels = &self.labels[..outputs.len() / n_outputs.max(1) * n_labels];
        Scored { outputs, n_outputs, labels, n_labels, weights: None }
    }

    /// All metrics that are numbers, by name, given the model's outputs for all rows, and the losses.
    pub(super) fn measure(&self, outputs: &[f32], train_loss: f64, valid_loss: f64) -> Result<Vec<(String, f64)>, Error> {
        let mut found = vec![(LOSSES[0].to_owned(), train_loss), (LOSSES[1].to_owned(), valid_loss)];
        for metric in self.metrics.borrow_mut().iter_mut() {
            if let MetricValue::Number(value) = metric.measure(&self.scored(outputs))? {
                found.push((format!("valid_{}", metric.name()), value));
            }
        }
        Ok(found)
    }
}

/// The direction of the metric that a setting names, and what it computes.
fn find(known: &[(String, Direction, String)], setting: &'static str, metric: &str) -> Result<(Direction, String), Error> {
    if let Some((_, direction, definition)) = known.iter().find(|(name, ..)| name == metric) {
        return Ok((*direction, definition.clone()));
    }
    let known: Vec<String> = known.iter().map(|(name, ..)| name.clone()).collect();
    let meant = likely_metric(metric, &known).map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    let expected = format!("one of {}{meant}", known.join(", "));
    Err(Error::setting(setting, format!("`{metric}`, which the run does not have"), expected))
}

/// Names of metrics are those of the log's columns.
fn check_names(metrics: &[Box<dyn Metric>]) -> Result<(), Error> {
    let names: Vec<&str> = metrics.iter().map(|metric| metric.name()).collect();
    for (i, name) in names.iter().enumerate() {
        let reason = if names[..i].contains(name) {
            "the task has two metrics of this name"
        } else if *name == "loss" {
            "the loss has this name"
        } else if name.is_empty() || name.contains([',', '"', '\n', '\r']) {
            "it cannot head a column"
        } else {
            continue;
        };
        let expected = "a name of its own, without commas, quotes and line ends";
        return Err(Error::setting("metrics", format!("{name:?}: {reason}"), expected));
    }
    Ok(())
}

/// Checks the settings of metrics by an update without rows. Metrics that brisk does not know may need rows.
fn check_settings(metrics: &mut [Box<dyn Metric>], task: &dyn Task) -> Result<(), Error> {
    let none = Scored { outputs: &[], n_outputs: task.n_outputs(), labels: &[], n_labels: task.n_labels(), weights: None };
    for metric in metrics {
        metric.reset();
        if let Err(error @ MetricError::Setting { .. }) = metric.update(&none) {
            return Err(error.into());
        }
    }
    Ok(())
}

/// The losses that every run has.
const LOSSES: [&str; 2] = ["train_loss", "valid_loss"];
