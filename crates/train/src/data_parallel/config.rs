//! The settings of replicas.

use brisk_replicate::{BucketSizes, Wire, ZeroStage};
use serde::{Deserialize, Serialize};

/// How replicas communicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataParallelConfig {
    /// How many gradients are reduced together.
    pub buckets: BucketSizes,
    /// The format in which gradients are sent: fewer bits pay only on slow networks. Rounding errors are fed back into the next
    /// step, and are in checkpoints: a tensor for each replica, as large as all gradients. What counts is their sum over all
    /// replicas, which is kept on any number of them. A run that resumes with f32 instead does without them.
    pub wire: Wire,
    /// Which training state is sharded across replicas; [`DataParallel::shard_parameters`](crate::DataParallel::shard_parameters)
    /// shards it.
    pub zero: ZeroStage,
    /// How [`Trainer`](crate::Trainer) writes checkpoints.
    pub files: CheckpointFiles,
    /// Which statistics normalise batches in training.
    pub batch_norm: BatchStatistics,
    /// What happens when replicas have fewer batches than others. `None` if all have the same number, as in a
    /// [`Trainer`](crate::Trainer); this is not checked.
    pub uneven: Option<UnevenInputs>,
}

/// What happens in steps for which only some replicas have a batch, and the others have [joined](crate::DataParallel::join).
///
/// # Reference
/// `DistributedDataParallel.join`: `divide_by_initial_world_size=True` and `False`, `throw_on_early_termination`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnevenInputs {
    /// Means are still over all replicas, so that every row has the same weight.
    DividedByAll,
    /// Means are over the replicas that have a batch.
    DividedByActive,
    /// The run ends on all replicas.
    Refused,
}

/// Which rows a batch normalisation takes its statistics from in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchStatistics {
    /// The replica's part of the batch: no replica waits for another.
    #[default]
    OfReplica,
    /// The whole batch, as on one device: two waits per normalisation and step.
    OfAll,
}

/// How many files replicas write per checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointFiles {
    /// One file, written by replica 0; the others send it their shards.
    #[default]
    One,
    /// One per replica, `NAME-GENERATION-00001-of-00004.safetensors`, with about as many tensors each, and
    /// `NAME.safetensors.index.json`, which lists where each tensor is, as on model hubs. All replicas need access to the folder
    /// of replica 0. [`Checkpoint::load`](crate::Checkpoint::load) takes the path of either form, and
    /// [`DataParallel::load_checkpoint`](crate::DataParallel::load_checkpoint) reads each file once for all replicas.
    OneAReplica,
}
