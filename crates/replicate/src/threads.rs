mod meeting;
mod shared;

use std::sync::Arc;
use std::time::Duration;

use shared::Shared;

use crate::collective::{Collective, DynSlice, DynSliceMut, check_reduce, check_same, check_shards, typed, typed_mut};
use crate::element::with_element;
use crate::error::Error;
use crate::reduce_op::ReduceOp;

/// One of the replicas that run as threads of one process.
///
/// An all-reduce is one pass: each replica reduces its part of the elements from all buffers and stores the result into all of
/// them, between two rendezvous. There is no staging copy and no temporary of the buffers' size. Floats are summed in f32 along a
/// fixed binary tree of ranks, so that a run repeats bit for bit; f16 and bf16 are rounded once.
///
/// Replicas block inside operations: give each its own thread ([`run_replicas`](crate::run_replicas) does), not a job in a pool.
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    shared: Arc<Shared>,
    finished: bool,
}

/// Settings of a group of [`Threads`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadsConfig {
    /// The number of replicas.
    pub world_size: usize,
    /// How long a rank waits in an operation for the others to call it before it returns [`Error::Timeout`]. Allow minutes, since
    /// other ranks may compile shaders or write a checkpoint meanwhile.
    pub timeout: Duration,
}

impl ThreadsConfig {
    /// `world_size` replicas with a timeout of ten minutes.
    pub const fn new(world_size: usize) -> Self {
        Self { world_size, timeout: Duration::from_secs(600) }
    }
}

/// As [`ThreadsConfig::new`].
impl From<usize> for ThreadsConfig {
    fn from(world_size: usize) -> Self {
        Self::new(world_size)
    }
}

impl Threads {
    /// The handles of a group, by rank: one for each thread.
    ///
    /// # Panics
    /// If `world_size` is 0.
    #[track_caller]
    pub fn group(config: ThreadsConfig) -> Vec<Self> {
        assert!(config.world_size > 0, "a group of 0 replicas; take at least 1");
        let shared = Arc::new(Shared::new(config.world_size, config.timeout));
        (0..config.world_size).map(|rank| Self { rank, shared: shared.clone(), finished: false }).collect()
    }

    /// The error that ended the group, if one did.
    pub(crate) fn ended_with(&self) -> Option<Error> {
        self.shared.dead()
    }

    /// Ends the group cleanly, with an operation of this name.
    pub(crate) fn finish_in_place(&mut self, op: &'static str) -> Result<(), Error> {
        self.finished = true;
        self.shared.barrier(self.rank, op)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.fail(self.rank, "its thread panicked");
        } else if !self.finished {
            self.shared.fail(self.rank, "it left without `finish`");
        }
    }
}

impl Collective for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world_size(&self) -> usize {
        self.shared.n_ranks()
    }

    fn engine(&self) -> &str {
        "threads"
    }

    fn all_reduce_values(&mut self, values: DynSliceMut<'_>, reduce: ReduceOp) -> Result<(), Error> {
        check_reduce("all_reduce", self.rank, values.element(), reduce)?;
        with_element!(values.element(), T => self.shared.all_reduce::<T>(self.rank, typed_mut(values), reduce))
    }

    fn reduce_scatter_values(&mut self, input: DynSlice<'_>, shard: DynSliceMut<'_>, reduce: ReduceOp) -> Result<(), Error> {
        const OP: &str = "reduce_scatter";
        check_reduce(OP, self.rank, input.element(), reduce)?;
        check_same(OP, self.rank, input.element(), shard.element())?;
        check_shards(OP, (self.rank, self.world_size()), shard.len(), ("input", input.len()))?;
        with_element!(input.element(), T => {
            self.shared.reduce_scatter::<T>(self.rank, typed(input), typed_mut(shard), reduce)
        })
    }

    fn all_gather_values(&mut self, shard: DynSlice<'_>, output: DynSliceMut<'_>) -> Result<(), Error> {
        const OP: &str = "all_gather";
        check_same(OP, self.rank, shard.element(), output.element())?;
        check_shards(OP, (self.rank, self.world_size()), shard.len(), ("output", output.len()))?;
        with_element!(shard.element(), T => {
            self.shared.all_gather::<T>(self.rank, typed(shard), typed_mut(output))
        })
    }

    fn broadcast_values(&mut self, values: DynSliceMut<'_>, root: usize) -> Result<(), Error> {
        let (rank, world_size) = (self.rank, self.world_size());
        if root >= world_size {
            return Err(Error::Root { op: "broadcast", rank, root, world_size });
        }
        with_element!(values.element(), T => self.shared.broadcast::<T>(rank, typed_mut(values), root))
    }

    fn barrier(&mut self) -> Result<(), Error> {
        self.shared.barrier(self.rank, "barrier")
    }

    fn take_waits(&mut self) -> Vec<Duration> {
        self.shared.take_waits(self.rank)
    }

    fn fail(&mut self, why: &str) {
        self.shared.fail(self.rank, why);
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.finish_in_place("finish")
    }
}
