mod history;

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use brisk_atomic_file::check_output;

use crate::position::Position;
use crate::report::{Panel, Report, metric_label};
use crate::{
    BatchesEnd, Callback, Checkpoint, EpochMetrics, Error, FitReport, Labels, RunView, Task, ValidationEnd, Warning, seconds,
    thousands,
};
use brisk_metrics::Scored;

use history::History;

/// Writes a [`Report`] of the run when it ends, also with an error: curves of losses and metrics, learning rates, the outputs of the best model for the
/// validation rows, settings and the device. A [`Callback`]; [`Trainer::report`](crate::Trainer::report) adds one.
///
/// The report of a run that was resumed is of the whole run: checkpoints have the history of a run with a report, eight bytes per batch. If the checkpoint is from a run without
/// one, the report starts where the run was resumed, and says so.
pub struct ReportFile<'a> {
    path: PathBuf,
    labels: Labels,
    n_labels: usize,
    n_outputs: usize,
    settings: Vec<(String, String)>,
    classes: Vec<String>,
    panels: Option<ReportPanels<'a>>,
    history: History,
    /// The validation at a limit that ended the run within an epoch, which is not part of the run's history.
    at_limit: Option<EpochMetrics>,
    /// The outputs of the best model so far for the validation rows, and their labels, if they are known.
    best_rows: Option<[Vec<f32>; 2]>,
    /// Whether `history` is that of a checkpoint, from which the run resumes.
    is_resumed: bool,
    started: Instant,
}

/// Makes panels of a report from the outputs of the best model for the validation rows.
pub type ReportPanels<'a> = Rc<dyn Fn(&Scored<'_>) -> Result<Vec<Panel>, Error> + 'a>;

impl fmt::Debug for ReportFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReportFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<'a> ReportFile<'a> {
    /// Writes to `path`, replacing an existing file. `settings` are shown as a table.
    pub fn new(path: impl Into<PathBuf>, task: &dyn Task, settings: Vec<(String, String)>) -> Self {
        Self {
            path: path.into(),
            labels: task.labels(),
            n_labels: task.n_labels(),
            n_outputs: task.n_outputs(),
            settings,
            classes: Vec::new(),
            panels: None,
            history: History::default(),
            at_limit: None,
            best_rows: None,
            is_resumed: false,
            started: Instant::now(),
        }
    }

    /// Names the classes, by their numbers.
    pub fn class_names(mut self, names: &[String]) -> Self {
        self.classes = names.to_vec();
        self
    }

    /// Adds panels to those of the validation rows. An error that `panels` returns ends the run, as an error of a callback does.
    pub fn panels(mut self, panels: ReportPanels<'a>) -> Self {
        self.panels = Some(panels);
        self
    }

    /// The name of the file, or that of its folder if the file is `report.html`.
    fn title(&self) -> String {
        let stem = self.path.file_stem().filter(|stem| *stem != "report");
        let folder = self.path.parent().and_then(|folder| folder.file_name());
        stem.or(folder).map_or("Training run".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Seconds of the run, without the time between its parts.
    fn seconds(&self) -> f64 {
        self.history.seconds + self.started.elapsed().as_secs_f64()
    }

    fn report(&self, run: &RunView<'_>, ended: &str, fitted: Option<&FitReport>) -> Result<Report, Error> {
        let mut report = Report::new(self.title());
        let History { first_batch, losses, rates, best, .. } = &self.history;
        let epochs = |n_batches: usize| rounded(n_batches as f64 / run.n_batches.max(1) as f64);
        let from = if *first_batch == 0 { String::new() } else { format!(", shown from {} on", epochs(*first_batch)) };
        report.subtitle(format!("{} epochs on {}, {ended}{from}", epochs(first_batch + losses.len()), run.device.info()));
        let epochs_at = |metrics: &EpochMetrics| {
            let EpochMetrics { epoch, batch, .. } = *metrics;
            Position::of(epoch, (batch < run.n_batches).then_some(batch)).in_epochs(run.n_batches)
        };
        let validations = || self.history.validations.iter().chain(&self.at_limit);
        if let Some(metrics) = validations().find(|metrics| *best == Some((metrics.epoch, metrics.batch))) {
            let at = epochs_at(metrics);
            report.best_within(at).figure("Best epoch", rounded(at));
            let is_shown = |name: &str| fitted.is_none_or(|fitted| fitted.watched == name) || name == "valid_loss";
            for (name, value) in metrics.values.iter().filter(|(name, _)| is_shown(name)) {
                report.figure(metric_label(name), format!("{value:.4}"));
            }
        }
        report.figure("Time", seconds(self.seconds()));
        if let Some(fitted) = fitted.filter(|fitted| fitted.train_rows_per_s > 0.0) {
            report.figure("Training rows per second", thousands(fitted.train_rows_per_s as u64));
        }

        let warnings: Vec<_> = (1..).zip(&self.history.warnings).collect();
        report.section("Warnings");
        if !warnings.is_empty() {
            report.table("Warnings of the run", &warnings);
        }
        report.section("Training");
        if let Some(first) = validations().next() {
            let names: Vec<&str> = first.values.iter().map(|(name, _)| name.as_str()).collect();
            let column = |name: &&str| validations().map(|epoch| epoch.get(name).unwrap_or(f64::NAN)).collect();
            let columns: Vec<Vec<f64>> = names.iter().map(column).collect();
            let columns: Vec<(&str, &[f64])> = names.iter().copied().zip(columns.iter().map(Vec::as_slice)).collect();
            let epochs: Vec<f64> = validations().map(epochs_at).collect();
            report.within_epochs(&epochs, &columns);
        }
        if !losses.is_empty() {
            let numbers = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
            report.steps("Loss of each batch", *first_batch, &numbers(losses));
            report.steps("Learning rate", *first_batch, &numbers(rates));
        }
        if let Some([outputs, labels]) = &self.best_rows {
            report.section("Validation rows");
            let (n_labels, n_outputs) = (self.n_labels, self.n_outputs);
            let rows = Scored { outputs, n_outputs, labels, n_labels, weights: None };
            // Outputs of another form, such as those of several heads, have no charts but the caller's.
            let (is_each, is_class) = (n_outputs == n_labels, |n_classes| (n_labels, n_outputs) == (1, n_classes));
            match self.labels {
                Labels::Binary if is_each => {
                    report.classification(&rows, &self.classes)?;
                }
                Labels::Classes { n_classes } if is_class(n_classes) => {
                    report.classification(&rows, &self.classes)?;
                }
                Labels::Numbers if is_each => {
                    report.regression(&rows)?;
                }
                _ => {}
            }
            if let Some(panels) = &self.panels {
                panels(&rows)?.into_iter().for_each(|panel| {
                    report.panel(panel);
                });
            }
        }
        if let Some(profile) = fitted.and_then(|fitted| fitted.profile.as_ref()) {
            report.section("Profile").profile(profile);
        }
        report.section("Configuration").table("Settings", &self.settings);
        let device = [("device", run.device.info().to_string()), ("brisk-train", env!("CARGO_PKG_VERSION").to_owned())];
        let system = [("system", std::env::consts::OS.to_owned()), ("processor", std::env::consts::ARCH.to_owned())];
        report.table("Environment", &[device, system].concat());
        Ok(report)
    }
}

impl Callback for ReportFile<'_> {
    fn on_load_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        (self.history, self.is_resumed) = (History::of(checkpoint)?, true);
        Ok(())
    }

    fn on_save_checkpoint(&self, checkpoint: &mut Checkpoint) -> Result<(), Error> {
        self.history.insert_into(checkpoint, self.seconds())
    }

    fn on_fit_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        (self.started, self.at_limit, self.best_rows) = (Instant::now(), None, None);
        if !std::mem::take(&mut self.is_resumed) {
            self.history = History::default();
        }
        // If the file cannot be written, the error is reported now rather than after the run.
        let Some(folder) = self.path.parent().filter(|_| run.is_first) else { return Ok(()) };
        std::fs::create_dir_all(folder).map_err(|cause| {
            let action = "create the folder of the report";
            Error::Io { path: folder.to_owned(), action, cause }
        })?;
        Ok(check_output(&self.path)?)
    }

    fn on_warning(&mut self, warning: &Warning) {
        let said = warning.to_string();
        // A run that resumes repeats those that follow from its settings.
        if !self.history.warnings.contains(&said) {
            self.history.warnings.push(said);
        }
    }

    fn on_batches_end(&mut self, run: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        let first = run.first_batch() as usize + batches.first_batch;
        self.history.add_batches(first, batches.losses, batches.learning_rates);
        Ok(())
    }

    fn on_validation_end(&mut self, _: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        let metrics = validation.metrics.clone();
        if validation.is_best {
            self.history.best = Some((metrics.epoch, metrics.batch));
            self.best_rows = Some([validation.outputs.to_vec(), validation.labels.to_vec()]);
        }
        if validation.is_at_limit {
            self.at_limit = Some(metrics);
        } else {
            self.history.validations.push(metrics);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn needs_best_outputs(&self) -> bool {
        true
    }

    fn on_best_outputs(&mut self, _: &RunView<'_>, outputs: &[f32], labels: &[f32]) -> Result<(), Error> {
        self.best_rows = Some([outputs.to_vec(), labels.to_vec()]);
        Ok(())
    }

    fn on_exception(&mut self, run: &RunView<'_>, error: &Error) {
        if run.is_first && !self.history.validations.is_empty() {
            // The error of the run is the one to report.
            let _ = self.report(run, &format!("ended by an error: {error}"), None).and_then(|report| report.write(&self.path));
        }
    }

    fn on_fit_end(&mut self, run: &RunView<'_>, report: &FitReport) -> Result<(), Error> {
        // Nothing is known of a finished run whose checkpoint has no history.
        let is_unknown = self.history.losses.is_empty() && self.history.validations.is_empty() && run.n_steps > 0;
        if !run.is_first || (is_unknown && self.path.exists()) {
            return Ok(());
        }
        self.report(run, &format!("ended {}", report.ended), Some(report))?.write(&self.path)
    }
}

/// Epochs for people: two decimals, without trailing zeros.
fn rounded(n_epochs: f64) -> String {
    ((n_epochs * 100.0).round() / 100.0).to_string()
}
