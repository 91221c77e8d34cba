//! The trainer: settings with defaults, from which a run is prepared.

use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use brisk_loader::Order;
use brisk_metrics::Scored;
use brisk_nn::tensor::Precision;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Augment, EmaConfig, Module, Optimizer, OptimizerConfig, Parameters, Schedule};
use brisk_report::{Panel, thousands};

use crate::callback::Callback;
use crate::checkpoint::Checkpoint;
use crate::checkpoint_store::CheckpointStore;
use crate::data_parallel::DataParallel;
use crate::early_stopping::EarlyStopping;
use crate::error::{Error, ResumeMismatch};
use crate::feed::{Feed, FeedConfig};
use crate::fit_report::FitReport;
use crate::gradient_clip::GradientClip;
use crate::model::Model;
use crate::progress::Progress;
use crate::reduce_lr_on_plateau::ReduceLrOnPlateau;
use crate::report_file::{ReportFile, ReportPanels, Unwritten};
use crate::rows::FeedRows;
use crate::rows::inspect::check_columns;
use crate::run_folder::RunFolder;
use crate::settings::{by_name, json};
use crate::standardisation::Standardisation;
use crate::stop_flag::StopFlag;
use crate::task::Task;
use crate::trainable::Trainable;
use crate::trainer_config::{Limit, TrainerConfig};
use crate::training::{Outputs, Setup, Training};
use crate::warning::Warning;

/// Trains a [`Model`] for a [`Task`], on rows of any source, and keeps the parameters with the best result on validation rows.
///
/// Settings that are not set have defaults. [`fit`](Self::fit) trains; [`prepare`](Self::prepare) stops before the first step, to
/// show how much memory the run takes.
///
/// # Examples
/// ```
/// use brisk_loader::Rows;
/// use brisk_nn::tensor::program::Device;
/// use brisk_nn::{Activation, Mlp, MlpConfig};
/// use brisk_train::{Classification, Model, Trainer};
///
/// // Two columns, and the class of a row is the larger one.
/// let features: Vec<f32> = (0..400).map(|i| (i * 37 % 101) as f32).collect();
/// let labels: Vec<f32> = features.chunks(2).map(|row| f32::from(u8::from(row[1] > row[0]))).collect();
/// let rows = Rows::new(features, labels, 2)?;
/// let [train, valid] = brisk_loader::split(&rows, 7, [0.8, 0.2])?;
///
/// let sizes = MlpConfig { n_inputs: 2, hidden: vec![16], n_outputs: 2, activation: Activation::relu() };
/// let mut model = Model::new(7, |params| Mlp::new(params, &sizes));
/// let task = Classification::of(2);
/// let mut trainer = Trainer::new(&Device::cpu()?).batch_rows(16).max_epochs(20).learning_rate(0.01);
/// let report = trainer.fit(&mut model, &task, &train, &valid)?;
/// assert!(report.best_value > 0.9, "{report:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Trainer<'a> {
    pub(crate) device: Device,
    pub(crate) config: TrainerConfig,
    feed: FeedConfig,
    scale: Option<Standardisation>,
    augment: Option<Rc<dyn Augment + 'a>>,
    optimizer: Option<MakeOptimizer<'a>>,
    replicas: &'a DataParallel,
    outputs: Outputs<'a>,
    has_progress: bool,
    report: Option<PathBuf>,
    class_names: Vec<String>,
    report_panels: Option<ReportPanels<'a>>,
    report_settings: Vec<(String, String)>,
    /// Differences from the checkpoint that `resume` allows.
    allowed: Vec<ResumeMismatch>,
}

type MakeOptimizer<'a> = Box<dyn Fn(&Parameters) -> Result<Box<dyn Optimizer>, Error> + 'a>;

impl fmt::Debug for Trainer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trainer").field("device", &self.device).field("config", &self.config).finish_non_exhaustive()
    }
}

impl<'a> Trainer<'a> {
    /// Trains on `device` with Adam and the settings of [`TrainerConfig::default`].
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            config: TrainerConfig::default(),
            feed: FeedConfig::default(),
            scale: None,
            augment: None,
            optimizer: None,
            replicas: DataParallel::single(),
            outputs: Outputs::default(),
            has_progress: false,
            report: None,
            class_names: Vec::new(),
            report_panels: None,
            report_settings: Vec::new(),
            allowed: Vec::new(),
        }
    }

    /// Replaces all settings of the run at once, such as those of a [file](TrainerConfig::load).
    pub fn config(mut self, config: TrainerConfig) -> Self {
        self.config = config;
        self
    }

    /// Changes settings that have no method of their own.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::tensor::program::Device;
    /// use brisk_train::{Trainer, ValidationInterval};
    ///
    /// let trainer = Trainer::new(&Device::cpu()?).configure(|config| {
    ///     config.validate_within_epoch = Some(ValidationInterval::Share(0.25));
    ///     config.keep_best = 3;
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn configure(mut self, change: impl FnOnce(&mut TrainerConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Sets the rows per batch, of all replicas together.
    pub fn batch_rows(mut self, n_rows: usize) -> Self {
        self.config.batch_rows = n_rows;
        self
    }

    /// Sets the batches per step of the optimizer, which uses the mean of their gradients.
    pub fn accumulate(mut self, n_batches: usize) -> Self {
        self.config.accumulate = n_batches;
        self
    }

    /// Sets the maximum number of epochs.
    pub fn max_epochs(mut self, n_epochs: usize) -> Self {
        self.config.max_epochs = n_epochs;
        self
    }

    /// Ends the run after this many steps of the optimizer, with a validation, if that comes before the last epoch.
    pub fn max_steps(mut self, n_steps: usize) -> Self {
        self.config.max_steps = Some(n_steps);
        self
    }

    /// Trains on the same few batches in every epoch, to see whether the model can overfit to them: a first test.
    pub fn overfit_batches(mut self, n_batches: usize) -> Self {
        self.config.limit_train_batches = Some(Limit::Batches(n_batches));
        self.feed.order = Some(Order::Sequential);
        self
    }

    /// Runs a few batches and a validation, without a folder or a report: a test that everything fits together. Turns off early
    /// stopping, reductions of the learning rate and validation within the epoch. Call it last, since later calls set these
    /// again. Your callbacks are still called, such as a [`TensorBoard`](crate::TensorBoard), which then writes its file.
    pub fn fast_dev_run(mut self, n_batches: usize) -> Self {
        self.config.limit_train_batches = Some(Limit::Batches(n_batches));
        (self.config.max_epochs, self.config.early_stopping, self.outputs.folder) = (1, None, None);
        (self.config.validate_within_epoch, self.config.min_epochs, self.report) = (None, 0, None);
        self.config.reduce_lr_on_plateau = None;
        self
    }

    /// Sets the precision of matrix products; parameters are always f32, and f16 scales the loss.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.config.precision = precision;
        self
    }

    /// Sets the optimizer, as a function that creates one for the parameters.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::tensor::program::Device;
    /// use brisk_nn::{Adam, Augment, Sgd, WeightDecay};
    /// use brisk_train::Trainer;
    ///
    /// # let device = Device::cpu()?;
    /// let trainer = Trainer::new(&device).optimizer(Sgd::new);
    /// let trainer = Trainer::new(&device).optimizer(|params| Adam::new(params).weight_decay(WeightDecay::Decoupled(0.01)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn optimizer<O: Optimizer + 'static>(self, make: impl Fn(&Parameters) -> O + 'a) -> Self {
        self.try_optimizer(move |params| Ok(make(params)))
    }

    /// [`optimizer`](Self::optimizer) with a function that may fail, as for groups of parameters.
    pub fn try_optimizer<O: Optimizer + 'static>(
        mut self,
        make: impl Fn(&Parameters) -> Result<O, brisk_nn::Error> + 'a,
    ) -> Self {
        self.optimizer = Some(Box::new(move |params| Ok(Box::new(make(params)?))));
        self
    }

    /// Sets a constant learning rate.
    pub fn learning_rate(self, lr: f64) -> Self {
        self.schedule(Schedule::constant(lr))
    }

    /// Sets the learning rate of each step.
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.config.schedule = schedule;
        self
    }

    /// Multiplies the learning rate by a factor when a metric no longer improves.
    pub fn reduce_lr_on_plateau(mut self, plateau: ReduceLrOnPlateau) -> Self {
        self.config.reduce_lr_on_plateau = Some(plateau);
        self
    }

    /// Clips gradients that are too large.
    pub fn clip(mut self, clip: GradientClip) -> Self {
        self.config.clip = Some(clip);
        self
    }

    /// Keeps an exponential moving average of parameters and buffers, updated after each step; validation, checkpoints and the
    /// model after [`fit`](Self::fit) have the average. Training continues with the parameters themselves, which checkpoints
    /// contain as well, so that runs resume bit-identically. Not supported with state sharded across replicas.
    ///
    /// # Reference
    /// `EMAWeightAveraging` of PyTorch Lightning; `torch.optim.swa_utils.AveragedModel` with `use_buffers=True`.
    /// # Examples
    /// ```
    /// use brisk_nn::EmaConfig;
    /// use brisk_nn::tensor::program::Device;
    /// use brisk_train::Trainer;
    ///
    /// let trainer = Trainer::new(&Device::cpu()?).ema(0.999);
    /// let trainer = Trainer::new(&Device::cpu()?).ema(EmaConfig::new(0.95).every(5).from_initial());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ema(mut self, ema: impl Into<EmaConfig>) -> Self {
        self.config.ema = Some(ema.into());
        self
    }

    /// Ends the run when a metric no longer improves.
    pub fn early_stopping(mut self, early_stopping: EarlyStopping) -> Self {
        self.config.early_stopping = Some(early_stopping);
        self
    }

    /// Sets the seed of the order of rows, and of random numbers that the model draws, such as those of
    /// [`Dropout`](brisk_nn::Dropout).
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = seed;
        self
    }

    /// Sets how rows reach the device.
    pub fn feed(mut self, feed: &FeedConfig) -> Self {
        self.feed = feed.clone();
        self
    }

    /// Sets how columns are standardised. By default, they are standardised by the mean and deviation of the training rows; a
    /// model that has been trained or loaded keeps its own.
    pub fn standardisation(mut self, scale: Standardisation) -> Self {
        self.scale = Some(scale);
        self
    }

    /// Makes the input of training batches with `augment`; validation still gathers rows unchanged. Rows may be
    /// resident on the device or streamed, with the same result; rows that are mixed with others must be resident.
    pub fn augment(mut self, augment: impl Augment + 'a) -> Self {
        self.augment = Some(Rc::new(augment));
        self
    }

    /// Trains as one of several replicas, which call [`fit`](Self::fit) with the same rows, model and settings on their devices.
    ///
    /// Every replica processes its part of each batch and of the validation rows; weights, losses and the result of the run are
    /// those of one device with all rows, up to rounding, and bit-identical on all replicas. Only replica 0 writes to the run's
    /// folder and shows progress; a request to stop on any replica ends the run of all.
    ///
    /// Replicas compare their model, settings and [digests](crate::RowDigest) of their rows before anything is trained. If their
    /// sources have the same [fingerprint](brisk_loader::RowSource::fingerprint), each reads only its share of the rows for that;
    /// and of rows that are streamed only its part, see [`FeedConfig::rank`].
    pub fn replicas(mut self, replicas: &'a DataParallel) -> Self {
        self.replicas = replicas;
        self
    }

    /// Writes checkpoints and logs to the folder.
    pub fn folder(mut self, folder: &RunFolder) -> Self {
        self.outputs.folder = Some(folder.clone());
        self
    }

    /// Copies each checkpoint to a store as well, such as a folder at a URL, once it is in the run's [folder](Self::folder). All
    /// replicas need this. [`RunFolder::fetch`] copies a run back, to resume it on another machine.
    ///
    /// A thread copies, so that training does not wait: first the log and the settings, then a checkpoint. What cannot be copied
    /// is a [warning](crate::Warning::NotCopied), and is copied with the next checkpoint.
    pub fn store(mut self, store: impl CheckpointStore + 'static) -> Self {
        self.outputs.store = Some(Arc::new(store));
        self
    }

    /// Lets [`resume`](Self::resume) continue from a checkpoint although the run differs in these respects from the one that
    /// wrote it, for example in its rows.
    pub fn resume_anyway(mut self, allowed: &[ResumeMismatch]) -> Self {
        self.allowed = allowed.to_vec();
        self
    }

    /// Ends the run after its current steps when the flag is set, as by Ctrl-C.
    pub fn stop_on(mut self, stop: &StopFlag) -> Self {
        self.outputs.stop = stop.clone();
        self
    }

    /// Shows a progress bar on standard error, if that is a terminal, else a line for each epoch and each validation within one.
    pub fn progress(mut self) -> Self {
        self.has_progress = true;
        self
    }

    /// Writes a report of the run to `path` when it ends: one HTML page with curves, charts of the model's errors, and settings
    /// ([`ReportFile`]). If it cannot be written at the end, the model is trained nevertheless, and the run has a warning
    /// ([`Warning::NoReport`]); an error of its [panels](Self::report_panels) counts as such.
    pub fn report(mut self, path: impl Into<PathBuf>) -> Self {
        self.report = Some(path.into());
        self
    }

    /// Names the classes in the [report](Self::report), by their numbers.
    pub fn class_names(mut self, names: &[String]) -> Self {
        self.class_names = names.to_vec();
        self
    }

    /// Adds panels to the [report](Self::report), which `panels` makes from the outputs of the best model for the validation
    /// rows, and their labels.
    ///
    /// # Examples
    /// The most confident wrong predictions, of rows that are images:
    /// ```
    /// use brisk_loader::Rows;
    /// use brisk_nn::tensor::program::Device;
    /// use brisk_train::report::ImageGrid;
    /// use brisk_train::Trainer;
    ///
    /// let images = Rows::new(vec![0_u8; 10 * 9], (0..10).map(|row| (row % 2) as f32).collect::<Vec<_>>(), 9)?;
    /// let trainer = Trainer::new(&Device::cpu()?)
    ///     .report("target/report.html")
    ///     .report_panels(|scored| Ok(vec![ImageGrid::wrong_predictions(&images, [3, 3, 1], scored, &[], 20)?.into()]));
    /// # drop(trainer);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn report_panels(mut self, panels: impl Fn(&Scored<'_>) -> Result<Vec<Panel>, Error> + 'a) -> Self {
        self.report_panels = Some(Rc::new(panels));
        self
    }

    /// Adds settings to those in the [report](Self::report), by name, or replaces what it says of one of the trainer's: of
    /// `optimizer`, for example, if a function creates it.
    pub fn report_settings(mut self, settings: impl IntoIterator<Item = (String, String)>) -> Self {
        self.report_settings.extend(settings);
        self
    }

    /// Adds a callback, which is notified of the run's progress.
    pub fn callback(mut self, callback: impl Callback + 'a) -> Self {
        self.outputs.callbacks.push(Box::new(callback));
        self
    }

    /// Prepares a run: puts the rows on the device if they fit there, or sets up their streaming; records the step and the
    /// evaluation, plans their memory, and sets parameters and optimizer to their initial values.
    ///
    /// The model's output must have the columns that the task requires. Losses of training rows are weighted by the rows'
    /// weights; validation counts each row once, and a [warning](crate::Warning::UnusedWeights) says so of rows with weights.
    /// Columns, labels, classes and categories must have the same [names](brisk_loader::RowSource::names) in both sets, in the
    /// same order, where both have names: rows are matched by position only.
    ///
    /// # Errors
    /// [`Error::Memory`] if the run takes more memory than is available, before any is taken; [`Error::RowSet`],
    /// [`Error::RowLayout`], [`Error::Value`] for rows that cannot be trained on or validated on; [`Error::Setting`], also if
    /// rows must be resident in an order that devices do not compute; [`Error::Tensor`] if the model does not fit the rows or the
    /// task, the device has no room, or the settings are invalid; [`Error::Replica`] if replicas differ in rows, model or
    /// settings, or one fails; [`Error::Setting`].
    #[track_caller]
    pub fn prepare<'r, S: FeedRows, V: FeedRows>(
        &self,
        trainable: Trainable<'r>,
        task: &dyn Task,
        train: &'r S,
        valid: &'r V,
    ) -> Result<Training<'r>, Error>
    where
        'a: 'r,
    {
        if let Some(config) = &self.config.optimizer {
            return Err(second_optimizer(config, "no such setting, since `Trainable` has the optimizer"));
        }
        let setup = self.setup(self.scale.clone(), false);
        Training::new(setup, trainable, task, (train, valid))
    }

    fn setup(&self, scale: Option<Standardisation>, is_scale_kept: bool) -> Setup<'_, 'a> {
        let Self { device, config, feed, augment, replicas, .. } = self;
        Setup { device, config: config.clone(), feed, scale, is_scale_kept, augment: augment.clone(), replicas }
    }

    /// How rows with labels of `task` reach the device, and in which order, where no replicas share them.
    pub(crate) fn feed_for(&self, task: &dyn Task) -> (FeedConfig, Order) {
        let order = self.feed.order.clone().unwrap_or(Order::Shuffled { seed: self.config.seed });
        (FeedConfig { labels: task.labels().dtype(), ..self.feed.clone() }, order)
    }

    /// The settings of a step over all batches of an epoch that only searches for other settings.
    pub(crate) fn search_settings(&self) -> TrainerConfig {
        let config = self.config.clone();
        TrainerConfig { detect_anomaly: false, record_grad_norms: false, limit_train_batches: None, ..config }
    }

    /// How columns are standardised, unless by the training rows.
    pub(crate) fn scale_of<M: Module>(&self, model: &Model<M>) -> Option<Standardisation> {
        self.scale.clone().or_else(|| model.standardisation().cloned())
    }

    /// The batches of `feed` as they are trained on: augmented, and without a short last one, as the settings say.
    pub(crate) fn training_batches<'f, M: Module>(&self, model: &Model<M>, feed: Feed<'f>) -> Result<Feed<'f>, Error>
    where
        'a: 'f,
    {
        let feed = if self.config.drop_last { feed.drop_last() } else { feed };
        match &self.augment {
            Some(augment) => Ok(feed.augmented(augment.clone())),
            None => check_columns("train", feed.n_cols(), model.module()).map(|()| feed),
        }
    }

    pub(crate) fn make_optimizer(&self, params: &Parameters) -> Result<Box<dyn Optimizer>, Error> {
        match (&self.optimizer, &self.config.optimizer) {
            (Some(make), None) => make(params),
            (None, config) => Ok(config.clone().unwrap_or_default().build(params)?),
            (Some(_), Some(config)) => Err(second_optimizer(config, "`Trainer::optimizer` or the setting, not both")),
        }
    }

    /// Trains `model` until the epochs are done, validation no longer improves, or a stop is requested; the model then has the
    /// best parameters that were validated. Calling it again continues from these.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare) and [`Training::fit`].
    #[track_caller]
    pub fn fit<M: Module, S: FeedRows, V: FeedRows>(
        &mut self,
        model: &mut Model<M>,
        task: &dyn Task,
        train: &S,
        valid: &V,
    ) -> Result<FitReport, Error> {
        self.run(model, task, (train, valid), Start::Model)
    }

    /// Resumes from a checkpoint that a [`fit`](Self::fit) of the same model, rows and settings wrote, as [`Training::resume`]
    /// does. The model then has the best parameters, as after a run without interruption.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare) and [`Training::resume`]; [`resume_anyway`](Self::resume_anyway) allows differences.
    ///
    /// # Examples
    /// ```
    /// use brisk_loader::Rows;
    /// use brisk_nn::tensor::program::Device;
    /// use brisk_nn::{Activation, Mlp, MlpConfig};
    /// use brisk_train::{Checkpoint, Model, Regression, RunFolder, Trainer};
    ///
    /// # let path = std::env::temp_dir().join(format!("brisk-train-resume-{}", std::process::id()));
    /// let x: Vec<f32> = (0..64).map(|row| row as f32 / 32.0 - 1.0).collect();
    /// let labels = x.iter().map(|x| 2.0 * x).collect::<Vec<_>>();
    /// let rows = Rows::new(x, labels, 1)?;
    /// let sizes = MlpConfig { n_inputs: 1, hidden: vec![8], n_outputs: 1, activation: Activation::tanh() };
    /// let new_model = || Model::new(7, |params| Mlp::new(params, &sizes));
    /// let folder = RunFolder::create_at(&path)?;
    /// let device = Device::cpu()?;
    /// let trainer = |epochs| Trainer::new(&device).batch_rows(16).max_epochs(epochs).folder(&folder);
    ///
    /// trainer(2).fit(&mut new_model(), &Regression::mse(), &rows, &rows)?;
    /// // Later, perhaps in another process:
    /// let mut model = new_model();
    /// let checkpoint = Checkpoint::load(folder.last())?;
    /// let report = trainer(5).resume(&mut model, &checkpoint, &Regression::mse(), &rows, &rows)?;
    /// assert_eq!(report.n_epochs, 5);
    /// # std::fs::remove_dir_all(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn resume<M: Module, S: FeedRows, V: FeedRows>(
        &mut self,
        model: &mut Model<M>,
        checkpoint: &Checkpoint,
        task: &dyn Task,
        train: &S,
        valid: &V,
    ) -> Result<FitReport, Error> {
        self.run(model, task, (train, valid), Start::Checkpoint(checkpoint))
    }

    /// Resumes from the checkpoint in a file, as [`resume`](Self::resume) does, of which each replica loads what it needs
    /// ([`Training::load_checkpoint`]). All replicas call it.
    ///
    /// # Errors
    /// As [`resume`](Self::resume) and [`Training::load_checkpoint`].
    #[track_caller]
    pub fn resume_from<M: Module, S: FeedRows, V: FeedRows>(
        &mut self,
        model: &mut Model<M>,
        path: impl AsRef<Path>,
        task: &dyn Task,
        train: &S,
        valid: &V,
    ) -> Result<FitReport, Error> {
        self.run(model, task, (train, valid), Start::File(path.as_ref()))
    }

    /// The settings that have no effect on this run.
    fn without_effect(&self, start: Start<'_>) -> impl Iterator<Item = Warning> {
        let no_report = "the run writes no report (`Trainer::report`)";
        let no_checkpoint = "the run starts from the model, not from a checkpoint (`Trainer::resume`)";
        let all = [
            ("class_names", !self.class_names.is_empty() && self.report.is_none(), no_report),
            ("report_panels", self.report_panels.is_some() && self.report.is_none(), no_report),
            ("report_settings", !self.report_settings.is_empty() && self.report.is_none(), no_report),
            ("resume_anyway", !self.allowed.is_empty() && matches!(start, Start::Model), no_checkpoint),
        ];
        let unused = all.into_iter().filter(|(_, is_unused, _)| *is_unused);
        unused.map(|(setting, _, reason)| Warning::NoEffect { setting, reason: reason.to_owned() })
    }

    /// Trains `model` with the requested outputs.
    #[track_caller]
    fn run<M: Module, S: FeedRows, V: FeedRows>(
        &mut self,
        model: &mut Model<M>,
        task: &dyn Task,
        (train, valid): (&S, &V),
        start: Start<'_>,
    ) -> Result<FitReport, Error> {
        model.params_mut().fetch()?;
        let params = self.replicas.shard_parameters(model.params().clone())?;
        let optimizer = self.make_optimizer(&params)?;
        let scale = self.scale_of(model);
        let is_scale_kept = self.scale.is_none() && scale.is_some();
        let setup = self.setup(scale, is_scale_kept);
        let trainable = Trainable::new(model.module(), &params, &*optimizer);
        model.names.check_encoding("train", train.names().encoding, task.n_labels() > 0)?;
        let mut training = Training::new(setup, trainable, task, (train, valid))?;
        training.warnings.extend(self.without_effect(start));
        let (scale, names) = (training.scale().clone(), training.names.clone());
        if self.has_progress {
            self.outputs.progress = Progress::stderr(self.config.max_epochs, training.epoch_rows() as u64);
        }
        if self.replicas.rank() == 0 {
            training.warnings().iter().for_each(|warning| self.outputs.progress.note(&format!("warning: {warning}")));
        }
        let n_callbacks = self.outputs.callbacks.len();
        let config = self.outputs.config.clone();
        self.outputs.config = Some(config.clone().map_or_else(|| json(&self.config), Ok)?);
        let unwritten = Unwritten::default();
        if let Some(path) = &self.report {
            let mut settings = self.report_settings.clone();
            // The loss is scaled in f16 only.
            let is_scaled = self.config.precision == Precision::F16;
            let own = by_name(&self.config)?.into_iter().filter(|(name, _)| is_scaled || !name.starts_with("scaler"));
            settings.extend(own.filter(|(name, _)| !self.report_settings.iter().any(|(given, _)| given == name)));
            settings.push(("parameters".to_owned(), thousands(params.n_trained() as u64)));
            let file = ReportFile::new(path, task, settings).class_names(&self.class_names).unwritten_to(&unwritten);
            let file = self.report_panels.iter().fold(file, |file, panels| file.panels(panels.clone()));
            self.outputs.callbacks.push(Box::new(file));
        }
        let mut resume = |checkpoint: &Checkpoint| training.resume_with(checkpoint, &self.allowed, &mut self.outputs);
        let report = match start {
            Start::Model => training.fit(&mut self.outputs),
            Start::Checkpoint(checkpoint) => resume(checkpoint),
            Start::File(path) => training.load_checkpoint(path).and_then(|checkpoint| resume(&checkpoint)),
        };
        self.outputs.callbacks.truncate(n_callbacks);
        self.outputs.config = config;
        // Of a run that failed, the device has values from before the error.
        model.params().keep_initial();
        let mut report = report?;
        drop(training);
        model.take_trained(&self.device, &params, self.replicas, (scale, names), self.config.precision)?;
        if let Some(error) = unwritten.take() {
            let warning = Warning::NoReport { reason: error.to_string() };
            self.outputs.progress.note(&format!("warning: {warning}"));
            report.warnings.push(warning);
        }
        Ok(report)
    }
}

#[derive(Clone, Copy)]
enum Start<'a> {
    Model,
    Checkpoint(&'a Checkpoint),
    File(&'a Path),
}

fn second_optimizer(config: &OptimizerConfig, expected: &'static str) -> Error {
    Error::setting("optimizer", format!("{config:?} besides another optimizer"), expected)
}
