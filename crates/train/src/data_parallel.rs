//! Replicas of a model, each of which trains on its part of every batch.
//!
//! Communication is a step of the program, neither a hook from outside nor a program cut into pieces, so the planner sees it, and
//! a replay is one call.
//!
//! A batch is that of all replicas together, so a run means the same on any number of them and can resume on another number.
//! PyTorch counts one replica's rows.
//!
//! Each replica records the same step for its part of a batch. Rows are weighted by their shares of the whole batch, so the parts
//! add up to the batch's mean even if they are uneven. `DataParallel` inserts host steps: one after the last kernel that writes
//! to a bucket of gradients starts its all-reduce, and one before the first kernel that reads gradients waits for it. A separate
//! thread carries out the reductions in the order of the buckets. All replicas then have bit-identical sums, and make the same
//! decisions from them: to skip a step, to stop early, or to stop on request, which is exchanged with the loss. Ghost batches
//! have a fixed number of rows, so replicas with whole ghost batches normalise as one device does.
//!
//! With ZeRO, each bucket is divided into one piece per replica, and buckets that are not kept whole are transients of the
//! program: one host step reduces a bucket of gradients to the owners of its pieces, another gathers a bucket of parameters
//! before the first kernel that reads it, again if it was dropped in between (`Program::renewed`). An optimizer records one
//! kernel per piece; Muon also gathers the directions of whole matrices (`brisk_nn::Muon`). Values that then differ between
//! replicas, such as norms and non-finite gradients, take one more message.

mod agreement;
mod attendance;
mod batch;
mod config;
mod conversion;
#[expect(clippy::module_inception, reason = "the type that the folder is about")]
mod data_parallel;
mod exchange;
mod failure;
mod feedback;
mod files;
mod gather;
mod links;
mod memory;
mod overlap;
mod parts;
mod rows;
mod sharded;
mod staging;
mod threads;
mod uneven;
mod waited;

use std::ops::Range;
use std::sync::Arc;

use attendance::{CountActive, UnevenRule};
use brisk_nn::tensor::program::{Error as ProgramError, Program, Slice};
use brisk_nn::tensor::{AllGather, DType, Graph, Persistent, Tensor};
use brisk_nn::{Bound, Parameters};
use brisk_replicate::{CommThread, ReduceOp};
use exchange::{Arrival, Exchange, Finish, Start};
use links::Stop;

pub(crate) use batch::PartOfBatch;
pub use config::{BatchStatistics, CheckpointFiles, DataParallelConfig, UnevenInputs};
pub use data_parallel::DataParallel;
pub(crate) use memory::HostShare;
pub use memory::StateMemory;
pub use overlap::Overlap;
pub use threads::run_threads;
pub use waited::Waited;

impl DataParallel {
    /// Records that gradients are reduced over all replicas; after the backward pass, and before the gradients are read.
    ///
    /// Use the mean if losses are means over batches of one length, and the sum if the losses of all replicas add up to that of
    /// the whole batch. With `state`, that of an [`Accumulate`](brisk_nn::Accumulate) recorded before, nothing is reduced for
    /// batches that do not complete a step, as with PyTorch's `no_sync`. If gradients are sharded, a replica can accumulate only
    /// its own: record `Accumulate` after this, and every batch is reduced.
    ///
    /// Gradients sharded by [`shard_parameters`](Self::shard_parameters) are reduced so that each replica has the sums of its own
    /// pieces; `bound` is the model in `graph`.
    ///
    /// # Cost
    /// A copy of all gradients on the host; with a [`Wire`](crate::Wire) of 16 bits half a copy more, and one for rounding
    /// errors.
    /// # Errors
    /// [`Program`](brisk_nn::Error::Program) if `state` is not that of a run.
    #[track_caller]
    pub fn reduce_gradients(
        &self,
        graph: &Graph,
        params: &Parameters,
        bound: &Bound,
        reduce: ReduceOp,
        state: Option<&Persistent>,
    ) {
        let Some(communication) = &self.communication else { return };
        graph.record(|program| {
            if self.config.uneven.is_some() {
                let (communication, attendance) = (communication.clone(), self.attendance.clone());
                program.insert_host(0, Arc::new(CountActive { communication, attendance }), &[])?;
            }
            let grads = program.persistent(params.grads());
            let state = state.map(|state| program.persistent(state));
            let buckets = match params.sharding() {
                Some(sharding) => self.scattered(communication, program, (params, sharding), bound, reduce),
                None => {
                    let cut = self.cut(params).into_iter();
                    cut.map(|elements| (grads.slice(elements.clone()), self.reduced(communication, elements, reduce, None)))
                        .collect()
                }
            };
            self.record_exchanges(program, buckets, grads, state)
        });
    }

    /// Records that a tensor, as recorded so far, is reduced over all replicas. It is sent as soon as it is computed, and awaited
    /// here. It has no gradient.
    ///
    /// # Errors
    /// [`Program`](brisk_nn::Error::Program) if the tensor is not f32.
    #[track_caller]
    pub fn all_reduce(&self, graph: &Graph, x: &Tensor, reduce: ReduceOp) -> Tensor {
        self.all_reduce_with(graph, x, reduce, None)
    }

    /// [`all_reduce`](Self::all_reduce), which also sends whether any replica wants to stop.
    pub(crate) fn all_reduce_and_ask(&self, graph: &Graph, x: &Tensor, reduce: ReduceOp) -> Tensor {
        self.all_reduce_with(graph, x, reduce, Some(self.stop.clone()))
    }

    #[track_caller]
    fn all_reduce_with(&self, graph: &Graph, x: &Tensor, reduce: ReduceOp, stop: Option<Arc<Stop>>) -> Tensor {
        let Some(communication) = &self.communication else { return x.clone() };
        let n = x.n_elements();
        let y = graph.with_program(|program| program.transient("all_reduced", DType::F32, n));
        let bucket = (x.slice(), self.reduced(communication, 0..n, reduce, stop));
        graph.record(|program| self.record_exchanges(program, vec![bucket], y, None));
        graph.wrap(y, x.shape())
    }

    /// The all-reduce of some elements of a buffer.
    fn reduced(
        &self,
        communication: &Arc<CommThread>,
        elements: Range<usize>,
        reduce: ReduceOp,
        stop: Option<Arc<Stop>>,
    ) -> Arrival {
        let exchange = Exchange::all_reduce(self.links(communication), elements.clone(), reduce, self.config.wire, stop);
        Arrival { exchange: Arc::new(exchange), start: elements.start, within: elements }
    }

    /// Records that each bucket is sent as soon as it is computed, and that the results are awaited here, in parts of `to`; with
    /// `state`, only in steps that are due.
    fn record_exchanges(
        &self,
        program: &mut Program,
        buckets: Vec<(Slice, Arrival)>,
        to: Slice,
        state: Option<Slice>,
    ) -> Result<(), ProgramError> {
        // Every replica starts the buckets in the same order, whichever is ready first.
        let mut at = 0;
        for (bucket, arrival) in &buckets {
            at = program.last_write(*bucket).map_or(at, |last| at.max(last + 1));
            Start::record(arrival.exchange.clone(), program, at, *bucket, state)?;
            at += 1;
        }
        let arrivals = buckets.into_iter().map(|(_, arrival)| arrival).collect();
        let (attendance, world_size) = (self.attendance.clone(), self.world_size());
        let uneven = self.config.uneven.map(|uneven| UnevenRule { uneven, attendance, world_size });
        program.push_host(Arc::new(Finish { n: to.len(), arrivals, uneven }), &[to])
    }

    /// Sets up a graph, before a model is recorded into it, to normalise batches by the configured statistics.
    pub fn prepare(&self, graph: &Graph) {
        if let (BatchStatistics::OfAll, Some(communication)) = (self.config.batch_norm, &self.communication) {
            graph.synchronise_batch_norm(Arc::new(OnThread(communication.clone())));
        }
    }
}

/// All-gathers of batch normalisations and of optimizers, on the communication thread.
#[derive(Debug)]
struct OnThread(Arc<CommThread>);

impl AllGather for OnThread {
    fn all_gather(&self, mine: &[f32]) -> Result<Vec<f32>, Box<dyn std::error::Error + Send + Sync>> {
        let Self(communication) = self;
        let output = vec![0.0; mine.len() * communication.world_size()];
        Ok(communication.all_gather(mine.to_vec(), output).wait()?.0)
    }
}
