//! What the replicas of a model exchange while a graph runs.

use std::error::Error as StdError;
use std::fmt::Debug;
use std::sync::Arc;

use crate::graph::Graph;

/// Any error of an exchange.
pub(crate) type Failure = Box<dyn StdError + Send + Sync>;

/// How replicas of a model exchange the statistics of their batches.
pub trait AllGather: Debug + Send + Sync + 'static {
    /// The values of all replicas, concatenated by rank. All replicas have equally many.
    ///
    /// # Errors
    /// Any error; it ends the run.
    fn all_gather(&self, mine: &[f32]) -> Result<Vec<f32>, Failure>;
}

impl Graph {
    /// From here on, batches are normalised by the statistics of the rows of all replicas, not only of this one, whose statistics
    /// are noisy if it has few rows. Each normalisation then waits for all replicas twice per step, in the forward and in the
    /// backward pass. Ghost groups are not affected.
    ///
    /// # Reference
    /// `torch.nn.SyncBatchNorm`.
    pub fn synchronise_batch_norm(&self, replicas: Arc<dyn AllGather>) {
        self.inner_mut().replicas = Some(replicas);
    }

    pub(crate) fn replicas(&self) -> Option<Arc<dyn AllGather>> {
        self.inner().replicas.clone()
    }
}
