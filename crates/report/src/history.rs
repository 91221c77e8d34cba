//! What a page shows of the steps and validations of a run.

use std::str::FromStr;

use brisk_metrics::Scored;
use serde_json::{Map, Value, from_value, json};

use crate::closing_table::{seconds, thousands};
use crate::error::Error;
use crate::kernel_panels::KernelTime;
use crate::metric_label::metric_label;
use crate::panel::Panel;
use crate::report::Report;
use crate::step_log::{BatchWait, check_counts};

/// The metrics at the end of an epoch, or of a validation within one.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochMetrics {
    /// The epoch, from 1.
    pub epoch: usize,
    /// The batch of the epoch, from 1, after which the model was validated: the last one, unless it was validated within the
    /// epoch.
    pub batch: usize,
    /// `train_loss`, `valid_loss`, and the metrics of the task, by name: `valid_auc`, ….
    pub values: Vec<(String, f64)>,
}

impl EpochMetrics {
    /// The mean loss of the training steps of the epoch so far.
    pub fn train_loss(&self) -> f64 {
        self.get("train_loss").unwrap_or(f64::NAN)
    }

    /// The metric of this name, such as `valid_accuracy`.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(found, _)| found == name).map(|&(_, value)| value)
    }

    /// The epochs until then, of `n_batches` each: 1.5 in the middle of the second.
    fn in_epochs(&self, n_batches: usize) -> f64 {
        self.epoch.saturating_sub(1) as f64 + (self.batch as f64 / n_batches.max(1) as f64).min(1.0)
    }
}

/// The batches and validations of a run so far, from which [`report`](Self::report) makes a page. Eight bytes per batch, twelve
/// with replicas.
///
/// # Examples
/// ```
/// use brisk_report::{EpochMetrics, RunFacts, RunHistory};
///
/// let mut history = RunHistory::default();
/// history.add_batches(0, &[0.9, 0.7], &[0.01, 0.01], &[])?;
/// let values = vec![("train_loss".to_owned(), 0.8), ("valid_loss".to_owned(), 0.75)];
/// history.validations.push(EpochMetrics { epoch: 1, batch: 2, values });
/// let (title, ended) = ("letters".to_owned(), "after the last epoch".to_owned());
/// let facts = RunFacts { title, n_batches: 2, ended, ..RunFacts::default() };
/// let html = history.report(&facts)?.to_html();
/// assert!(html.contains("Loss of each batch") && html.contains("Learning rate"));
/// # Ok::<(), brisk_report::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunHistory {
    /// The batch of the run, from 0, that `losses` starts with: 0, unless the run was resumed and nothing is known of its first
    /// part.
    pub first_batch: usize,
    /// The loss of each batch.
    pub losses: Vec<f32>,
    /// The learning rate of each batch.
    pub learning_rates: Vec<f32>,
    /// The seconds for which replicas waited for the last one in each of the last batches, as [`BatchWait::time`]; NaN if that is
    /// not known. A run that resumes starts with none.
    pub waits: Vec<f32>,
    /// The metrics of each validation.
    pub validations: Vec<EpochMetrics>,
    /// Epoch and batch of the best of them.
    pub best: Option<(usize, usize)>,
    /// The warnings of the run, each once.
    pub warnings: Vec<String>,
    /// The time of the run in seconds, before it was resumed.
    pub seconds: f64,
}

/// What a page shows of a run besides its [`RunHistory`]. What is empty or `None` is left out.
#[derive(Debug, Default)]
pub struct RunFacts<'a> {
    /// The title of the page.
    pub title: String,
    /// Batches of an epoch.
    pub n_batches: usize,
    /// The device that the model is trained on.
    pub device: String,
    /// How the run ended, such as `after the last epoch`.
    pub ended: String,
    /// The metric that decides which model is the best, such as `valid_auc`: of the best epoch, it and `valid_loss` are shown in
    /// large figures. If `None`, all metrics are.
    pub watched: Option<&'a str>,
    /// The time of the run in seconds, with that of [`RunHistory::seconds`].
    pub seconds: f64,
    /// Training rows per second.
    pub train_rows_per_s: Option<f64>,
    /// A validation that is not part of the run's history, since a run that resumes does not have it.
    pub last: Option<&'a EpochMetrics>,
    /// The outputs of the best model for the validation rows, as charts of a classification.
    pub classification: Option<Scored<'a>>,
    /// The outputs of the best model for the validation rows, as charts of a regression.
    pub regression: Option<Scored<'a>>,
    /// The names of the classes.
    pub classes: &'a [String],
    /// Other panels on the validation rows.
    pub panels: &'a [Panel],
    /// The time of each kernel of a step, the slowest first.
    pub kernels: &'a [KernelTime],
    /// For which replica the others waited and how long, in words.
    pub waited: Option<String>,
    /// Names and values of the run's settings.
    pub settings: &'a [(String, String)],
    /// Names and values of what the run depended on besides; the page adds system and processor.
    pub environment: &'a [(String, String)],
}

impl RunHistory {
    /// Adds batches, of which the first is batch `first` of the run: as many learning rates as losses. Batches from `first` on,
    /// which a checkpoint did not include, are replaced. `waits` are empty for a single replica; missing ones at the end are not
    /// known.
    ///
    /// # Errors
    /// [`Error::BatchCounts`]; [`Error::BatchGap`] if `first` is not at most the batch after the last one. Nothing is added then.
    pub fn add_batches(
        &mut self,
        first: usize,
        losses: &[f32],
        learning_rates: &[f32],
        waits: &[Option<BatchWait>],
    ) -> Result<(), Error> {
        check_counts(losses, learning_rates, waits)?;
        let end = self.first_batch + self.losses.len();
        if first > end && !self.losses.is_empty() {
            return Err(Error::BatchGap { log: "the history of the run".to_owned(), last: end as u64 - 1, first: first as u64 });
        }
        if self.losses.is_empty() || first < self.first_batch {
            (self.first_batch, self.losses, self.learning_rates, self.waits) = (first, Vec::new(), Vec::new(), Vec::new());
        }
        self.waits.truncate(first.saturating_sub(self.first_batch + self.losses.len() - self.waits.len()));
        if !waits.is_empty() || !self.waits.is_empty() {
            let known = waits.iter().map(|wait| wait.map_or(f32::NAN, |wait| wait.time.as_secs_f32()));
            self.waits.extend(known.chain(std::iter::repeat(f32::NAN)).take(losses.len()));
        }
        for (all, new) in [(&mut self.losses, losses), (&mut self.learning_rates, learning_rates)] {
            all.truncate(first - self.first_batch);
            all.extend(new);
        }
        Ok(())
    }

    /// A page with curves of losses and metrics, learning rates, charts of the validation rows, kernels, settings and
    /// environment.
    ///
    /// # Errors
    /// [`Error::Metric`] for validation rows that are not those of a classification or a regression.
    pub fn report(&self, facts: &RunFacts<'_>) -> Result<Report, Error> {
        let mut report = Report::new(&facts.title);
        let epochs = |n_batches: usize| rounded(n_batches as f64 / facts.n_batches.max(1) as f64);
        let from = if self.first_batch == 0 { String::new() } else { format!(", shown from {} on", epochs(self.first_batch)) };
        let n_epochs = epochs(self.first_batch + self.losses.len());
        report.subtitle(format!("{n_epochs} epochs on {}, {}{from}", facts.device, facts.ended));
        let validations = || self.validations.iter().chain(facts.last);
        let is_best = |metrics: &&EpochMetrics| self.best == Some((metrics.epoch, metrics.batch));
        if let Some(metrics) = validations().find(is_best) {
            let at = metrics.in_epochs(facts.n_batches);
            report.best_within(at).figure("Best epoch", rounded(at));
            let is_shown = |name: &str| facts.watched.is_none_or(|watched| watched == name) || name == "valid_loss";
            for (name, value) in metrics.values.iter().filter(|(name, _)| is_shown(name)) {
                report.figure(metric_label(name), format!("{value:.4}"));
            }
        }
        report.figure("Time", seconds(facts.seconds));
        if let Some(rate) = facts.train_rows_per_s {
            report.figure("Training rows per second", thousands(rate as u64));
        }

        let warnings: Vec<_> = (1..).zip(&self.warnings).collect();
        report.section("Warnings");
        if !warnings.is_empty() {
            report.table("Warnings of the run", &warnings);
        }
        report.section("Training");
        if let Some(first) = validations().next() {
            let names = first.values.iter().map(|(name, _)| name.as_str());
            let values = |name: &str| validations().map(|epoch| epoch.get(name).unwrap_or(f64::NAN)).collect();
            let columns: Vec<(&str, Vec<f64>)> = names.map(|name| (name, values(name))).collect();
            let columns: Vec<(&str, &[f64])> = columns.iter().map(|(name, values)| (*name, &values[..])).collect();
            let epochs: Vec<f64> = validations().map(|metrics| metrics.in_epochs(facts.n_batches)).collect();
            report.within_epochs(&epochs, &columns);
        }
        if !self.losses.is_empty() {
            let numbers = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
            report.steps("Loss of each batch", self.first_batch, &numbers(&self.losses));
            report.steps("Learning rate", self.first_batch, &numbers(&self.learning_rates));
            if !self.waits.is_empty() {
                let first = self.first_batch + self.losses.len() - self.waits.len();
                report.steps("Wait for the last replica, in seconds", first, &numbers(&self.waits));
            }
        }
        if let Some(waited) = &facts.waited {
            report.table("Replicas", &[("over the steps", waited)]);
        }
        report.section("Validation rows");
        if let Some(rows) = &facts.classification {
            report.classification(rows, facts.classes)?;
        }
        if let Some(rows) = &facts.regression {
            report.regression(rows)?;
        }
        report.panels(facts.panels.iter().cloned());
        if !facts.kernels.is_empty() {
            report.section("Profile").kernels(facts.kernels);
        }
        report.section("Configuration").table("Settings", facts.settings);
        let system = [("system", std::env::consts::OS), ("processor", std::env::consts::ARCH)];
        let system = system.map(|(name, value)| (name.to_owned(), value.to_owned()));
        report.table("Environment", &[facts.environment, &system].concat());
        Ok(report)
    }

    /// Everything but the losses and learning rates of batches, as JSON that parses back. `seconds` is the time of the run so
    /// far.
    pub fn to_json(&self, seconds: f64) -> String {
        // Numbers as text, since JSON has neither NaN nor infinities.
        let value = |(name, value): &(String, f64)| json!([name, value.to_string()]);
        let validation = |of: &EpochMetrics| json!([of.epoch, of.batch, of.values.iter().map(value).collect::<Vec<_>>()]);
        let history = json!({
            "first_batch": self.first_batch,
            "validations": self.validations.iter().map(validation).collect::<Vec<_>>(),
            "best": self.best,
            "warnings": self.warnings,
            "seconds": if seconds.is_finite() { json!(seconds) } else { json!(seconds.to_string()) },
        });
        history.to_string()
    }
}

/// Parses what [`RunHistory::to_json`] returns. `losses` and `learning_rates` are empty.
impl FromStr for RunHistory {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text).ok().and_then(parsed).ok_or(Error::History)
    }
}

fn parsed(mut history: Map<String, Value>) -> Option<RunHistory> {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let validation = |(epoch, batch, values): (usize, usize, Vec<(String, Value)>)| {
        let values = values.into_iter().map(|(name, value)| Some((name, number(&value)?))).collect::<Option<_>>()?;
        Some(EpochMetrics { epoch, batch, values })
    };
    let validations: Vec<_> = from_value(history.remove("validations")?).ok()?;
    Some(RunHistory {
        first_batch: from_value(history.remove("first_batch")?).ok()?,
        validations: validations.into_iter().map(validation).collect::<Option<_>>()?,
        best: from_value(history.remove("best")?).ok()?,
        // Earlier versions did not keep them.
        warnings: history.remove("warnings").map_or(Some(Vec::new()), |all| from_value(all).ok())?,
        seconds: number(history.get("seconds")?)?,
        ..RunHistory::default()
    })
}

/// Epochs for people: two decimals, without trailing zeros.
fn rounded(n_epochs: f64) -> String {
    ((n_epochs * 100.0).round() / 100.0).to_string()
}
