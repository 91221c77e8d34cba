//! Replicas without batches left take part in the steps of the others.

use std::sync::atomic::Ordering;

use brisk_nn::Parameters;
use brisk_nn::tensor::program::Executable;
use brisk_replicate::CommThread;

use super::attendance::ran_out;
use super::{BatchStatistics, DataParallel, UnevenInputs};
use crate::error::Error;

impl DataParallel {
    /// For a replica without batches left: replays `step` whenever others do, with gradients of 0, until all have joined. So it
    /// takes the same steps as the others, also of its shard, and keeps the same optimizer state. Then all have the buffers of
    /// the replica that joined last.
    ///
    /// # Errors
    /// [`Error::Replica`], also if joining is [refused](UnevenInputs::Refused); [`Error::Setting`] if the configuration does not
    /// allow it; [`Error::Tensor`] if the device fails.
    /// # Reference
    /// `DistributedDataParallel.join`, with the optimizer steps of `ZeroRedundancyOptimizer`.
    pub fn join(&self, step: &Executable, params: &Parameters) -> Result<(), Error> {
        let (Some(uneven), BatchStatistics::OfReplica) = (self.config.uneven, self.config.batch_norm) else {
            let expected = "the same number of batches on all replicas; or set what is done with others, and normalise batches by each replica's own statistics";
            return Err(Error::setting("uneven", "a replica without batches left", expected));
        };
        let Some(communication) = &self.communication else { return Ok(()) };
        self.attendance.has_joined.store(true, Ordering::Relaxed);
        let joined = self.replay_joined(communication, step, uneven);
        self.attendance.has_joined.store(false, Ordering::Relaxed);
        // The replica that joined last has joined in the fewest steps.
        let joined = self.all_gather(vec![joined? as f32])?;
        let last = (0..self.world_size()).min_by(|&a, &b| joined[a].total_cmp(&joined[b])).unwrap_or(0);
        let buffers: Vec<_> = params.buffers().iter().map(|buffer| buffer.values()).collect();
        self.broadcast_from(last, step.device(), &buffers)
    }

    /// Returns after how many steps all have joined.
    fn replay_joined(&self, communication: &CommThread, step: &Executable, uneven: UnevenInputs) -> Result<u32, Error> {
        let mut n_steps = 0;
        loop {
            match self.attendance.count(communication).wait()? {
                0 => return Ok(n_steps),
                n if uneven == UnevenInputs::Refused => return Err(ran_out(n, self.world_size()).into()),
                _ => step.run(1)?,
            }
            n_steps += 1;
        }
    }
}
