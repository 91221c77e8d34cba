//! What the replicas of a model exchange while a graph runs.

use std::error::Error as StdError;
use std::fmt::Debug;

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
