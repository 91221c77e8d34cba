mod config;
mod fit;
mod state;
mod step;

use brisk_loader::{Order, RowSource};
use brisk_nn::tensor::Graph;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Module, Optimizer, Parameters};

use crate::feed::inspect::{check_all_finite, check_codes_and_weights, layout_of};
use crate::feed::{Feed, FeedConfig, FeedElement, binary_labels};
use crate::flat::Flat;
use crate::metrics::roc_auc;
use crate::{DataParallel, Described, Error, Scorer, Standardisation, StateMemory};

use step::TrainingStep;

pub use config::{GradientClip, TrainerConfig};
pub use fit::{Ended, FitReport, Outputs};

/// Trains a model that tells two classes apart, by the area under its ROC curve on rows it has not seen.
///
/// The whole step (batch, forward, loss, backward, optimizer) is one recorded program; an epoch is so many replays of it, and
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
    /// With whom the rows of each batch are shared.
    replicas: Option<&'a DataParallel>,
}

impl<'a> Trainer<'a> {
    /// Puts the rows on `device` if they fit there, or sets up their streaming; records the step and the evaluation, lays out their memory,
    /// and sets parameters and optimizer to their start.
    ///
    /// `model` gives one logit a row; labels are 0 or 1. Weights of training rows weigh their losses; validation counts each row once.
    ///
    /// # Errors
    /// [`Error::EmptySet`], [`Error::ColumnCount`], [`Error::BinaryLabel`], [`Error::NonFinite`], [`Error::CategoryCount`], [`Error::CategoryCode`],
    /// [`Error::RowWeight`], [`Error::NoWeight`] for rows that cannot be trained on, [`Error::OneClass`] for rows that cannot be validated on;
    /// [`Error::Tensor`] if the model does not fit them, the device has no room, or the settings make no sense.
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

    /// The same with a say in how rows reach the device. Training rows come first: what they leave of a budget is for those to validate on.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::ResidentOrder`] if rows are to be resident in an order that devices do not compute.
    #[expect(clippy::too_many_arguments, reason = "all of them are what a run is made of, each of another type")]
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

    /// The same as one of several replicas, each of which calls this with the same rows and settings on a device of its own.
    ///
    /// Every replica takes its part of each batch and of the rows to validate on; the weights, the losses and what the run comes to are those of one device with
    /// all rows, up to rounding, and the same bits on all replicas. Replica 0 alone writes to the run's folder and shows progress; whichever is asked to stop ends
    /// the run of all.
    ///
    /// # Errors
    /// As [`with_feed`](Self::with_feed); [`Error::Replica`] if replicas differ in model or settings, or one fails; [`Error::BatchPerReplica`].
    #[expect(clippy::too_many_arguments, reason = "all of them are what a run is made of, each of another type")]
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
        let rows = format!("{} to train on, {} to validate on, of {} columns", train.n_rows(), valid.n_rows(), train.n_cols());
        let settings = [("rows", rows), ("settings", format!("{config:?}"))];
        replicas.agree(settings.map(|(what, is)| Described { what: what.to_owned(), is }).into())?;
        replicas.agree_on_model(params, optimizer)?;
        Self::shared(device, model, params, optimizer, train, valid, config, feed, Some(replicas))
    }

    #[expect(clippy::too_many_arguments, reason = "all of them are what a run is made of, each of another type")]
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
        if train.n_cols() != valid.n_cols() {
            return Err(Error::ColumnCount { set: "valid", found: valid.n_cols(), expected: train.n_cols() });
        }
        layout_of("train", train)?;
        layout_of("valid", valid)?;
        binary_labels("train", train)?;
        let valid_labels = binary_labels("valid", valid)?;
        check_codes_and_weights("train", train, model.categories())?;
        check_codes_and_weights("valid", valid, model.categories())?;
        // A curve that does not exist is better known now than after an epoch.
        roc_auc(&valid_labels, &valid_labels)?;
        let scale = Standardisation::of("train", train)?;
        scale.write(device)?;

        let order = feed.order.clone().unwrap_or(Order::Shuffled { seed: config.seed });
        let train = Feed::new(device, "train", train, order, config.batch_rows, feed)?;
        let left = feed.budget_bytes.map(|budget| budget.saturating_sub(train.len_bytes()));
        let feed = FeedConfig { budget_bytes: left, ..feed.clone() };
        // Resident rows are looked at when they are uploaded, the training rows above; those that are streamed later, now.
        let valid_source = valid;
        let valid = Feed::new(device, "valid", valid_source, Order::Sequential, EVALUATION_ROWS, &feed)?;
        if valid.fact().is_streamed() {
            check_all_finite("valid", valid_source)?;
        }

        let config = TrainerConfig { batch_rows: train.batch_rows(), ..config };
        let step = TrainingStep::record(device, model, params, optimizer, &train, &scale, &config, replicas)?;
        let scorer = match replicas {
            None => Scorer::of_feed(device, model, params, &valid, &scale, config.precision)?,
            Some(replicas) => Scorer::with_replicas(device, model, params, &valid, &scale, config.precision, replicas)?,
        };
        let device = device.clone();
        let trainer = Self { config, device, params, optimizer, scale, train, valid_labels, step, scorer, replicas };
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

    /// What the model takes on this device, by the plan: as much as on any, or this replica's part. Rows, and sums of gradients over several batches, come on top.
    ///
    /// # Errors
    /// [`Error::Tensor`].
    pub fn memory(&self) -> Result<StateMemory, Error> {
        StateMemory::of(self.params, self.optimizer, &self.graphs())
    }

    /// How columns are standardised: by the training rows.
    pub fn scale(&self) -> &Standardisation {
        &self.scale
    }

    /// The training rows, and how they reach the device.
    pub fn train_rows(&self) -> &Feed<'a> {
        &self.train
    }

    /// The rows to validate on, and how they reach the device.
    pub fn valid_rows(&self) -> &Feed<'a> {
        self.scorer.feed()
    }
}

/// Rows scored at a time when evaluating.
pub(crate) const EVALUATION_ROWS: usize = 1024;
