use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use crate::atomic_file::check_output;
use crate::metrics::Scored;
use crate::position::Position;
use crate::report::{Panel, Report, metric_label};
use crate::{BatchesEnd, Callback, EpochMetrics, Error, FitReport, Labels, RunView, Task, ValidationEnd, seconds, thousands};

/// Writes a [`Report`] of the run when it ends, also with an error: curves of losses and metrics, learning rates, the outputs of the best model for the
/// validation rows, settings and the device. A [`Callback`]; [`Trainer::report`](crate::Trainer::report) adds one.
pub struct ReportFile<'a> {
    path: PathBuf,
    labels: Labels,
    n_labels: usize,
    n_outputs: usize,
    settings: Vec<(String, String)>,
    classes: Vec<String>,
    panels: Option<ReportPanels<'a>>,
    history: Vec<EpochMetrics>,
    /// Rows trained on.
    n_rows: usize,
    losses: Vec<f64>,
    rates: Vec<f64>,
    first_step: usize,
    best: Option<Best>,
    started: Instant,
}

/// The outputs of the best model so far for the validation rows.
#[derive(Debug)]
struct Best {
    metrics: EpochMetrics,
    outputs: Vec<f32>,
    labels: Vec<f32>,
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
            history: Vec::new(),
            n_rows: 0,
            losses: Vec::new(),
            rates: Vec::new(),
            first_step: 0,
            best: None,
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

    fn report(&self, run: &RunView<'_>, ended: &str, fitted: Option<&FitReport>) -> Result<Report, Error> {
        let mut report = Report::new(self.title());
        let n_epochs = self.losses.len() as f64 / run.n_batches.max(1) as f64;
        report.subtitle(format!("{} epochs on {}, {ended}", rounded(n_epochs), run.device.info()));
        let epochs_at = |metrics: &EpochMetrics| {
            let EpochMetrics { epoch, batch, .. } = *metrics;
            Position::of(epoch, (batch < run.n_batches).then_some(batch)).in_epochs(run.n_batches)
        };
        if let Some(Best { metrics, .. }) = &self.best {
            let at = epochs_at(metrics);
            report.best_within(at).figure("Best epoch", rounded(at));
            let is_shown = |name: &str| fitted.is_none_or(|fitted| fitted.watched == name) || name == "valid_loss";
            for (name, value) in metrics.values.iter().filter(|(name, _)| is_shown(name)) {
                report.figure(metric_label(name), format!("{value:.4}"));
            }
        }
        let elapsed = self.started.elapsed();
        report.figure("Time", seconds(elapsed.as_secs_f64()));
        if self.n_rows > 0 {
            report.figure("Rows per second", thousands((self.n_rows as f64 / elapsed.as_secs_f64()) as u64));
        }

        if let Some(fitted) = fitted {
            let warnings: Vec<_> = (1..).zip(&fitted.warnings).collect();
            report.section("Warnings");
            if !warnings.is_empty() {
                report.table("Warnings of the run", &warnings);
            }
        }
        report.section("Training");
        if let Some(first) = self.history.first() {
            let names: Vec<&str> = first.values.iter().map(|(name, _)| name.as_str()).collect();
            let columns: Vec<Vec<f64>> =
                names.iter().map(|name| self.history.iter().map(|epoch| epoch.get(name).unwrap_or(f64::NAN)).collect()).collect();
            let columns: Vec<(&str, &[f64])> = names.iter().copied().zip(columns.iter().map(Vec::as_slice)).collect();
            let epochs: Vec<f64> = self.history.iter().map(epochs_at).collect();
            report.within_epochs(&epochs, &columns);
        }
        if !self.losses.is_empty() {
            report.steps("Loss of each batch", self.first_step, &self.losses);
            report.steps("Learning rate", self.first_step, &self.rates);
        }
        if let Some(best) = &self.best {
            report.section("Validation rows");
            let (n_labels, n_outputs) = (self.n_labels, self.n_outputs);
            let rows = Scored { outputs: &best.outputs, n_outputs, labels: &best.labels, n_labels, weights: None };
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
    fn on_fit_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        (self.started, self.first_step) = (Instant::now(), run.n_steps);
        // If the file cannot be written, the error is reported now rather than after the run.
        let Some(folder) = self.path.parent().filter(|_| run.is_first) else { return Ok(()) };
        std::fs::create_dir_all(folder).map_err(|cause| {
            let action = "create the folder of the report";
            Error::Io { path: folder.to_owned(), action, cause }
        })?;
        check_output(&self.path)
    }

    fn on_batches_end(&mut self, _: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        self.n_rows += batches.n_rows;
        self.losses.extend(batches.losses.iter().map(|&loss| f64::from(loss)));
        self.rates.extend(batches.learning_rates.iter().map(|&rate| f64::from(rate)));
        Ok(())
    }

    fn on_validation_end(&mut self, _: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        self.history.push(validation.metrics.clone());
        if validation.is_best {
            let (outputs, labels) = (validation.outputs.to_vec(), validation.labels.to_vec());
            self.best = Some(Best { metrics: validation.metrics.clone(), outputs, labels });
        }
        Ok(ControlFlow::Continue(()))
    }

    fn on_exception(&mut self, run: &RunView<'_>, error: &Error) {
        if run.is_first && !self.history.is_empty() {
            // The error of the run is the one to report.
            let _ = self.report(run, &format!("ended by an error: {error}"), None).and_then(|report| report.write(&self.path));
        }
    }

    fn on_fit_end(&mut self, run: &RunView<'_>, report: &FitReport) -> Result<(), Error> {
        if !run.is_first {
            return Ok(());
        }
        self.report(run, &format!("ended {}", report.ended), Some(report))?.write(&self.path)
    }
}

/// Epochs for people: two decimals, without trailing zeros.
fn rounded(n_epochs: f64) -> String {
    ((n_epochs * 100.0).round() / 100.0).to_string()
}
