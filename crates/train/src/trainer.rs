mod config;
mod fit;
mod losses;
mod resume;
mod state;
mod step;

use brisk_loader::{Order, RowSource};
use brisk_nn::tensor::Graph;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Module, Optimizer, Parameters};

use crate::feed::inspect::{check_all_finite, check_codes_and_weights, layout_of};
use crate::feed::{Feed, FeedConfig, FeedElement, binary_labels};
use crate::flat::Flat;
use crate::memory_check::check_memory;
use crate::metrics::roc_auc;
use crate::scorer::RecordedScorer;
use crate::{DataParallel, Described, Error, RowDigest, Scorer, Standardisation, StateMemory, Warning};

use step::{RecordedStep, TrainingStep};

pub use config::{GradientClip, TrainerConfig};
pub use fit::{Ended, FitReport, Outputs};

/// Trains a binary classifier, and keeps the model with the largest area under its ROC curve on rows held out for validation.
///
/// The whole step (batch, forward, loss, backward, optimizer) is one recorded program; an epoch is a number of replays of it, and
/// nothing is read back before the epoch ends.
#[derive(Debug)]
pub struct Trainer<'a> {
    config: TrainerConfig,
    device: Device,
    params: &'a Parameters,
    optimizer: &'a dyn Optimizer,
    scale: Standardisation,
    train: Feed<'a>,
    valid_labels: Vec<f32>,
    step: TrainingStep,
    scorer: Scorer<'a>,
    /// The replicas that share the rows of each batch.
    replicas: Option<&'a DataParallel>,
    digests: [RowDigest; 2],
    warnings: Vec<Warning>,
}

impl<'a> Trainer<'a> {
    /// Puts the rows on `device` if they fit there, or sets up their streaming; records the step and the evaluation, plans their memory,
    /// and sets parameters and optimizer to their start.
    ///
    /// `model` gives one logit per row; labels are 0 or 1. Weights of training rows weigh their losses; validation counts each row once.
    ///
    /// # Errors
    /// [`Error::Memory`] if the run takes more memory than is available, before any is taken; [`Error::EmptySet`], [`Error::ColumnCount`],
    /// [`Error::BinaryLabel`], [`Error::NonFinite`], [`Error::CategoryCount`], [`Error::CategoryCode`], [`Error::RowWeight`], [`Error::BatchWeight`], [`Error::NoWeight`] for rows that
    /// cannot be trained on, [`Error::NothingHeldOut`], [`Error::HeldOutOneClass`] for rows that cannot be validated on; [`Error::Tensor`] if the model does not
    /// fit the rows, the device has no room, or the settings are invalid.
    #[track_caller]
    pub fn new<S, V>(
        device: &Device,
        model: &dyn Module,
        params: &'a Parameters,
        optimizer: &'a dyn Optimizer,
        train: &'a S,
        valid: &'a V,
        config: TrainerConfig,
    ) -> Result<Self, Error>
    where
        S: RowSource<Feature: FeedElement>,
        V: RowSource<Feature: FeedElement>,
    {
        Self::with_feed(device, model, params, optimizer, train, valid, config, &FeedConfig::default())
    }

    /// The same with settings of how rows reach the device. Training rows come first: validation rows get the rest of a budget.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::ResidentOrder`] if rows are to be resident in an order that devices do not compute.
    #[expect(clippy::too_many_arguments, reason = "a run consists of all of them, each of another type")]
    #[track_caller]
    pub fn with_feed<S, V>(
        device: &Device,
        model: &dyn Module,
        params: &'a Parameters,
        optimizer: &'a dyn Optimizer,
        train: &'a S,
        valid: &'a V,
        config: TrainerConfig,
        feed: &FeedConfig,
    ) -> Result<Self, Error>
    where
        S: RowSource<Feature: FeedElement>,
        V: RowSource<Feature: FeedElement>,
    {
        Self::shared(device, model, params, optimizer, train, valid, config, feed, None)
    }

    /// The same as one of several replicas, each of which calls this with the same rows and settings on its own device.
    ///
    /// Every replica takes its part of each batch and of the validation rows; weights, losses and the result of the run are those of one device with
    /// all rows, up to rounding, and bit-identical on all replicas. Only replica 0 writes to the run's folder and shows progress; a request to stop on any replica ends
    /// the run of all.
    ///
    /// Replicas compare their model, settings and [digests](RowDigest) of their rows before anything is trained.
    ///
    /// # Errors
    /// As [`with_feed`](Self::with_feed); [`Error::Replica`] if replicas differ in rows, model or settings, or one fails; [`Error::BatchPerReplica`].
    #[expect(clippy::too_many_arguments, reason = "a run consists of all of them, each of another type")]
    #[track_caller]
    pub fn with_replicas<S, V>(
        device: &Device,
        model: &dyn Module,
        params: &'a Parameters,
        optimizer: &'a dyn Optimizer,
        train: &'a S,
        valid: &'a V,
        config: TrainerConfig,
        feed: &FeedConfig,
        replicas: &'a DataParallel,
    ) -> Result<Self, Error>
    where
        S: RowSource<Feature: FeedElement>,
        V: RowSource<Feature: FeedElement>,
    {
        let order = feed.order.as_ref().map_or("shuffled".to_owned(), ToString::to_string);
        let order = Described { what: "order".to_owned(), is: order };
        replicas.agree(config.described().into_iter().chain([order]).collect())?;
        replicas.agree_on_model(params, optimizer)?;
        Self::shared(device, model, params, optimizer, train, valid, config, feed, Some(replicas))
    }

    #[expect(clippy::too_many_arguments, reason = "a run consists of all of them, each of another type")]
    #[track_caller]
    fn shared<S, V>(
        device: &Device,
        model: &dyn Module,
        params: &'a Parameters,
        optimizer: &'a dyn Optimizer,
        train: &'a S,
        valid: &'a V,
        config: TrainerConfig,
        feed: &FeedConfig,
        replicas: Option<&'a DataParallel>,
    ) -> Result<Self, Error>
    where
        S: RowSource<Feature: FeedElement>,
        V: RowSource<Feature: FeedElement>,
    {
        check_memory(device, params, optimizer, &[], replicas)?;
        if train.n_cols() != valid.n_cols() {
            return Err(Error::ColumnCount { set: "valid", found: valid.n_cols(), expected: train.n_cols() });
        }
        layout_of("train", train)?;
        if valid.n_rows() == 0 {
            return Err(Error::NothingHeldOut { n_train_rows: train.n_rows() });
        }
        layout_of("valid", valid)?;
        let digests = [RowDigest::of("train", train)?, RowDigest::of("valid", valid)?];
        if let Some(replicas) = replicas {
            let rows = [("train", train.n_rows()), ("valid", valid.n_rows())].into_iter().zip(digests);
            replicas.agree(rows.map(|((set, n_rows), digest)| described_rows(set, n_rows, train.n_cols(), digest)).collect())?;
        }
        binary_labels("train", train)?;
        let valid_labels = binary_labels("valid", valid)?;
        check_codes_and_weights("train", train, model.categories(), config.batch_rows)?;
        check_codes_and_weights("valid", valid, model.categories(), 1)?;
        // An AUC that does not exist is reported now rather than after an epoch.
        roc_auc(&valid_labels, &valid_labels).map_err(|error| match error {
            Error::OneClass { n_rows, class } => Error::HeldOutOneClass { n_rows, n_train_rows: train.n_rows(), class },
            error => error,
        })?;
        let scale = Standardisation::of("train", train)?;
        scale.write(device)?;

        let order = feed.order.clone().unwrap_or(Order::Shuffled { seed: config.seed });
        let train = Feed::new(device, "train", train, order, config.batch_rows, feed)?;
        let left = feed.budget_bytes.map(|budget| budget.saturating_sub(train.len_bytes()));
        let feed = FeedConfig { budget_bytes: left, ..feed.clone() };
        // Resident rows are checked when they are uploaded, the training rows above, and rows that will be streamed here.
        let valid_source = valid;
        let valid = Feed::new(device, "valid", valid_source, Order::Sequential, EVALUATION_ROWS, &feed)?;
        if valid.fact().is_streamed() {
            check_all_finite("valid", valid_source)?;
        }

        let warnings = config.warnings(train.n_rows());
        let config = TrainerConfig { batch_rows: train.batch_rows(), ..config };
        let step = RecordedStep::record(model, params, optimizer, &train, &scale, &config, replicas)?;
        let scorer = RecordedScorer::record(device, model, params, &valid, &scale, config.precision, replicas)?;
        check_memory(device, params, optimizer, &[&step.graph, scorer.graph()], replicas)?;
        let (step, scorer) = (step.compile(device)?, scorer.compile(device)?);
        let device = device.clone();
        let trainer =
            Self { config, device, params, optimizer, scale, train, valid_labels, step, scorer, digests, replicas, warnings };
        trainer.start_over()?;
        Ok(trainer)
    }

    fn flat(&self) -> Flat<'_> {
        Flat { params: self.params, replicas: self.replicas }
    }

    /// The recorded step and evaluation, for [`Graph::planned_peak_bytes`].
    pub fn graphs(&self) -> [&Graph; 2] {
        [&self.step.graph, self.scorer.graph()]
    }

    /// Settings that are allowed and hardly ever meant. The caller shows them; nothing here prints.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Digests of the training rows and of the validation rows.
    pub fn row_digests(&self) -> [RowDigest; 2] {
        self.digests
    }

    /// The memory that the model takes on this device, by the plan: all of its state, or this replica's part. Rows, and accumulated gradients, come on top.
    ///
    /// # Errors
    /// [`Error::Tensor`].
    pub fn memory(&self) -> Result<StateMemory, Error> {
        StateMemory::of(self.params, self.optimizer, &self.graphs())
    }

    /// How columns are standardised: by mean and deviation of the training rows.
    pub fn scale(&self) -> &Standardisation {
        &self.scale
    }

    /// The training rows, and how they reach the device.
    pub fn train_rows(&self) -> &Feed<'a> {
        &self.train
    }

    /// The validation rows, and how they reach the device.
    pub fn valid_rows(&self) -> &Feed<'a> {
        self.scorer.feed()
    }
}

/// A set of rows, for replicas to compare.
pub(crate) fn described_rows(set: &str, n_rows: usize, n_cols: usize, digest: RowDigest) -> Described {
    Described { what: format!("{set} rows"), is: format!("{n_rows} rows of {n_cols} columns with digest {digest}") }
}

/// Rows scored at a time when evaluating.
pub(crate) const EVALUATION_ROWS: usize = 1024;
