//! Steps for which only some replicas have a batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use brisk_nn::tensor::program::kernels::Arg;
use brisk_nn::tensor::program::{HostArgs, HostStep};
use brisk_replicate::{CollectiveExt, CommThread, Pending, ReduceOp};

use super::config::UnevenInputs;
use super::failure::Failure;

/// Which replicas have a batch.
#[derive(Debug, Default)]
pub(crate) struct Attendance {
    /// Whether this one has none left, so that it sends gradients of 0.
    pub(super) has_joined: AtomicBool,
    /// How many had one in the last step, if they are counted.
    n_active: AtomicUsize,
}

impl Attendance {
    /// Whether this replica has no batch left.
    pub(crate) fn has_joined(&self) -> bool {
        self.has_joined.load(Ordering::Relaxed)
    }

    /// Starts to count the replicas that have a batch.
    pub(super) fn count(self: &Arc<Self>, communication: &CommThread) -> Pending<usize> {
        let (attendance, mut count) = (self.clone(), [u32::from(!self.has_joined())]);
        communication.start("count_active", move |collective| {
            collective.all_reduce(&mut count, ReduceOp::Sum)?;
            let n_active = count[0] as usize;
            attendance.n_active.store(n_active, Ordering::Relaxed);
            Ok(n_active)
        })
    }
}

/// Counts the replicas that have a batch, before a step exchanges anything else. Those without have already taken part.
#[derive(Debug)]
pub(crate) struct CountActive {
    pub(crate) communication: Arc<CommThread>,
    pub(crate) attendance: Arc<Attendance>,
}

impl HostStep for CountActive {
    fn name(&self) -> &'static str {
        "count_active"
    }

    fn args(&self) -> Vec<Arg> {
        Vec::new()
    }

    fn run(&self, _: &mut HostArgs<'_>) -> Result<(), Failure> {
        if !self.attendance.has_joined() {
            // If it fails, so do the exchanges after it.
            drop(self.attendance.count(&self.communication));
        }
        Ok(())
    }
}

/// What happens when some replicas have a batch and others have none left.
#[derive(Debug, Clone)]
pub(crate) struct UnevenRule {
    pub(crate) uneven: UnevenInputs,
    pub(crate) attendance: Arc<Attendance>,
    pub(crate) world_size: usize,
}

impl UnevenRule {
    /// Corrects what was reduced in this step.
    pub(crate) fn apply(&self, reduced: &mut [f32], reduce: ReduceOp) -> Result<(), Failure> {
        let (n, of) = (self.attendance.n_active.load(Ordering::Relaxed), self.world_size);
        match self.uneven {
            UnevenInputs::Refused if n < of => return Err(ran_out(n, of).into()),
            UnevenInputs::DividedByActive if n > 0 && n < of && reduce == ReduceOp::Mean => {
                let scale = of as f32 / n as f32;
                reduced.iter_mut().for_each(|value| *value *= scale);
            }
            UnevenInputs::Refused | UnevenInputs::DividedByActive | UnevenInputs::DividedByAll => {}
        }
        Ok(())
    }
}

/// The error on all replicas when one has no batch left and that is refused.
pub(super) fn ran_out(n_active: usize, world_size: usize) -> brisk_replicate::Error {
    let of = |n: usize| format!("{n} of {world_size} replicas");
    brisk_replicate::Error::Uneven { has: of(n_active), lacks: of(world_size - n_active) }
}
