use std::cell::RefCell;
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use brisk_atomic_file::check_output;
use brisk_metrics::Scored;
use brisk_nn::tensor::program::Profile;
use brisk_report::{EpochMetrics, KernelTime, Panel, RunFacts, RunHistory};

use crate::callback::{BatchesEnd, Callback, RunView, ValidationEnd};
use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::fit_report::FitReport;
use crate::task::{Labels, Task};
use crate::warning::Warning;

/// Writes a [`Report`](brisk_report::Report) of the run when it ends, also with an error: curves of losses and metrics, learning
/// rates, the outputs of the best model for the validation rows, settings and the device. A [`Callback`];
/// [`Trainer::report`](crate::Trainer::report) adds one.
///
/// The report of a run that was resumed is of the whole run: checkpoints have the history of a run with a report, eight bytes per
/// batch. If the checkpoint is from a run without one, the report starts where the run was resumed, and says so.
pub struct ReportFile<'a> {
    path: PathBuf,
    labels: Labels,
    n_labels: usize,
    n_outputs: usize,
    settings: Vec<(String, String)>,
    classes: Vec<String>,
    panels: Option<ReportPanels<'a>>,
    history: RunHistory,
    /// The validation at a limit that ended the run within an epoch, which is not part of the run's history.
    at_limit: Option<EpochMetrics>,
    /// The outputs of the best model so far for the validation rows, and their labels, if they are known.
    best_rows: Option<[Vec<f32>; 2]>,
    /// Whether `history` is that of a checkpoint, from which the run resumes.
    is_resumed: bool,
    started: Instant,
    /// Where an error at the end is put; it is returned if there is no such place.
    unwritten: Option<Unwritten>,
}

/// Why the report of a run that has ended is not written.
pub(crate) type Unwritten = Rc<RefCell<Option<Error>>>;

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
            history: RunHistory::default(),
            at_limit: None,
            best_rows: None,
            is_resumed: false,
            started: Instant::now(),
            unwritten: None,
        }
    }

    /// Puts an error at the end of the run there instead of returning it.
    pub(crate) fn unwritten_to(self, unwritten: &Unwritten) -> Self {
        Self { unwritten: Some(unwritten.clone()), ..self }
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

    fn write(&self, run: &RunView<'_>, ended: String, fitted: Option<&FitReport>) -> Result<(), Error> {
        let (n_labels, n_outputs) = (self.n_labels, self.n_outputs);
        let rows =
            self.best_rows.as_ref().map(|[outputs, labels]| Scored { outputs, n_outputs, labels, n_labels, weights: None });
        // Outputs of another form, such as those of several heads, have no charts but the caller's.
        let (is_class, is_number) = match self.labels {
            Labels::Binary => (n_outputs == n_labels, false),
            Labels::Classes { n_classes } => ((n_labels, n_outputs) == (1, n_classes), false),
            Labels::Numbers => (false, n_outputs == n_labels),
            _ => (false, false),
        };
        let panels = self.panels.as_ref().zip(rows.as_ref()).map(|(panels, rows)| panels(rows)).transpose()?;
        let kernels = fitted.and_then(|fitted| fitted.profile.as_ref()).map(kernel_times);
        let facts = RunFacts {
            title: self.title(),
            n_batches: run.n_batches,
            device: run.device.info().to_string(),
            ended,
            watched: fitted.map(|fitted| fitted.watched.as_str()),
            seconds: self.seconds(),
            train_rows_per_s: fitted.map(|fitted| fitted.train_rows_per_s).filter(|&rate| rate > 0.0),
            last: self.at_limit.as_ref(),
            classification: rows.filter(|_| is_class),
            regression: rows.filter(|_| is_number),
            classes: &self.classes,
            panels: panels.as_deref().unwrap_or_default(),
            kernels: kernels.as_deref().unwrap_or_default(),
            waited: fitted.and_then(|fitted| fitted.waited.as_ref()).map(ToString::to_string),
            settings: &self.settings,
            environment: &[
                ("device".to_owned(), run.device.info().to_string()),
                ("brisk-train".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ],
        };
        Ok(self.history.report(&facts)?.write(&self.path)?)
    }
}

impl Callback for ReportFile<'_> {
    fn on_load_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        (self.history, self.is_resumed) = (history_of(checkpoint)?, true);
        Ok(())
    }

    /// Adds the history, unless another report of the same run has done so.
    fn on_save_checkpoint(&self, checkpoint: &mut Checkpoint) -> Result<(), Error> {
        if checkpoint.has_metadata(HISTORY) {
            return Ok(());
        }
        checkpoint.insert_metadata(HISTORY, self.history.to_json(self.seconds()));
        for (name, values) in [(LOSSES, &self.history.losses), (RATES, &self.history.learning_rates)] {
            checkpoint.insert(name, &[values.len()], values.clone())?;
        }
        Ok(())
    }

    fn on_fit_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        (self.started, self.at_limit, self.best_rows) = (Instant::now(), None, None);
        if !std::mem::take(&mut self.is_resumed) {
            self.history = RunHistory::default();
        }
        // If the file cannot be written, the error is reported now rather than after the run.
        let Some(folder) = self.path.parent().filter(|_| run.is_first) else { return Ok(()) };
        std::fs::create_dir_all(folder).map_err(Error::io(folder, "create the folder of the report"))?;
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
        Ok(self.history.add_batches(first, batches.losses, batches.learning_rates, batches.waits)?)
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
            let _ = self.write(run, format!("ended by an error: {error}"), None);
        }
    }

    fn on_fit_end(&mut self, run: &RunView<'_>, report: &FitReport) -> Result<(), Error> {
        // Nothing is known of a finished run whose checkpoint has no history.
        let is_unknown = self.history.losses.is_empty() && self.history.validations.is_empty() && run.n_steps > 0;
        if !run.is_first || (is_unknown && self.path.exists()) {
            return Ok(());
        }
        match (self.write(run, format!("ended {}", report.ended), Some(report)), &self.unwritten) {
            (Err(error), Some(unwritten)) => *unwritten.borrow_mut() = Some(error),
            (written, _) => written?,
        }
        Ok(())
    }
}

/// The metadata of a checkpoint with everything of the history but losses and rates.
const HISTORY: &str = "report.history";

/// The tensors of a checkpoint with the loss and the learning rate of each batch.
const LOSSES: &str = "report.losses";
const RATES: &str = "report.rates";

/// The history in a checkpoint; empty if it has none.
fn history_of(checkpoint: &Checkpoint) -> Result<RunHistory, Error> {
    let Some(mut history) = checkpoint.metadata_if_any::<RunHistory>(HISTORY, "the history of a run")? else {
        return Ok(RunHistory::default());
    };
    for (name, values) in [(LOSSES, &mut history.losses), (RATES, &mut history.learning_rates)] {
        *values = checkpoint.f32_if_any(name)?.unwrap_or_default();
    }
    Ok(history)
}

fn kernel_times(profile: &Profile) -> Vec<KernelTime> {
    let n_replays = profile.n_replays().max(1);
    let time = |kernel: brisk_nn::tensor::program::KernelProfile| {
        // A byte per nanosecond is a gigabyte per second.
        let per_ns = |work: u64| work as f64 / kernel.total_ns.max(1) as f64;
        KernelTime {
            kernel: kernel.name.to_owned(),
            variant: kernel.dispatches.first().copied().unwrap_or(kernel.name).to_owned(),
            us: 1e-3 * kernel.total_ns as f64 / n_replays as f64,
            n_calls: kernel.n_calls / n_replays as u64,
            gb_per_s: per_ns(kernel.bytes),
            gflop_per_s: per_ns(kernel.flops),
            roofline_share: kernel.roofline_share(profile.roofline()),
        }
    };
    profile.kernels().into_iter().map(time).collect()
}
