//! The check for values that are not finite, for debugging.

use brisk_nn::tensor::{Anomaly, Pass};

use super::Training;
use crate::error::Error;

impl Training<'_> {
    /// Checks the values of the batch that was just trained on, the `batch`-th of its epoch, both from 0. Gradients may overflow
    /// as long as the loss scale can still be reduced.
    pub(super) fn check_anomaly(&self, epoch: usize, batch: usize) -> Result<(), Error> {
        let (graph, device) = (&self.step.graph, &self.device);
        let Some(Anomaly { operation, index, pass, .. }) = graph.first_anomaly(device)? else { return Ok(()) };
        if pass == Pass::Backward && self.step.scaler.config().enabled && self.step.scaler.report(device)?.scale > 1.0 {
            return Ok(graph.clear_anomaly(device)?);
        }
        Err(Error::Anomaly { epoch: epoch + 1, batch: batch + 1, operation, index, pass })
    }
}
