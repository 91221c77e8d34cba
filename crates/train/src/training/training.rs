use std::cell::RefCell;

use brisk_nn::tensor::Graph;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Optimizer, Parameters};

use super::average::Average;
use super::checkpoint_writer::CheckpointWriter;
use super::computation::Computation;
use super::run_copies::RunCopies;
use super::snapshot_memory::SnapshotMemory;
use super::validation::Validation;
use crate::data_parallel::{DataParallel, StateMemory};
use crate::error::Error;
use crate::feed::Feed;
use crate::flat::Flat;
use crate::row_digest::RowDigest;
use crate::rows::RowNames;
use crate::scorer::Scorer;
use crate::standardisation::Standardisation;
use crate::step::CompiledStep;
use crate::trainer_config::TrainerConfig;
use crate::warning::Warning;

/// A training run that has been prepared: rows on the device or ready to be streamed, step and evaluation recorded and compiled,
/// memory planned. [`Trainer::prepare`](crate::Trainer::prepare) makes one.
///
/// The whole step (batch, forward, loss, backward, optimizer) is one recorded program; an epoch is a number of replays of it, and
/// nothing is read back before the epoch ends.
#[derive(Debug)]
pub struct Training<'a> {
    pub(super) config: TrainerConfig,
    /// The settings that checkpoints record, as JSON.
    pub(super) settings: serde_json::Value,
    pub(super) device: Device,
    pub(super) params: &'a Parameters,
    pub(super) optimizer: &'a dyn Optimizer,
    pub(super) average: Average,
    /// The model that is validated and kept: the parameters, or their [average](Self::average).
    pub(super) evaluated: Parameters,
    pub(super) scale: Standardisation,
    pub(super) train: Feed<'a>,
    pub(super) validation: Validation,
    pub(super) step: CompiledStep,
    pub(super) scorer: Scorer<'a>,
    pub(super) n_batches: usize,
    /// Batches between two validations within an epoch, if there are any.
    pub(super) check_interval: Option<usize>,
    /// The replicas that share the rows of each batch.
    pub(super) replicas: &'a DataParallel,
    pub(super) digests: [RowDigest; 2],
    /// Of the training rows.
    pub(crate) names: RowNames,
    pub(super) computation: Vec<Computation>,
    pub(crate) warnings: Vec<Warning>,
    pub(super) writer: RefCell<CheckpointWriter>,
    pub(super) copies: RefCell<Option<RunCopies>>,
    pub(super) memory: RefCell<SnapshotMemory>,
}

impl<'a> Training<'a> {
    pub(super) fn flat(&self) -> Flat<'_> {
        Flat { params: self.params, replicas: self.replicas }
    }

    /// The recorded step and evaluation, for [`Graph::planned_peak_bytes`].
    pub fn graphs(&self) -> [&Graph; 2] {
        [&self.step.graph, self.scorer.graph()]
    }

    /// Settings that are allowed but hardly ever intended. The caller shows them; this crate does not print them.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Digests of the training rows and of the validation rows.
    pub fn row_digests(&self) -> [RowDigest; 2] {
        self.digests
    }

    /// The memory that the model takes on this device, as planned: all of its state, or this replica's part. Rows, and
    /// accumulated gradients, are not included.
    ///
    /// # Errors
    /// [`Error::Tensor`].
    pub fn memory(&self) -> Result<StateMemory, Error> {
        let memory = StateMemory::of(self.params, self.optimizer, &self.graphs())?;
        Ok(StateMemory { averages: self.average.len_bytes(), ..memory })
    }

    /// How columns are standardised: by mean and deviation of the training rows.
    pub fn scale(&self) -> &Standardisation {
        &self.scale
    }

    /// The training rows of an epoch: all of them, unless batches are left out.
    pub(crate) fn epoch_rows(&self) -> usize {
        self.train.n_rows().min(self.n_batches * self.config.batch_rows)
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
