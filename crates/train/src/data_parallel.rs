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
mod batch;
mod exchange;
mod feedback;
mod files;
mod gather;
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use brisk_loader::Shard;
use brisk_nn::tensor::program::{Device, Error as ProgramError, Program, Slice};
use brisk_nn::tensor::{AllGather, DType, Graph, Persistent, Tensor};
use brisk_nn::{Bound, Optimizer, Parameters, Placement};
use brisk_replicate::{BucketSizes, Collective, CommThread, Element, ReduceOp, Wire, ZeroStage};
use brisk_report::BatchWait;
use exchange::{Arrival, Exchange, Finish, Start};
use serde::{Deserialize, Serialize};
use staging::Staging;
use uneven::{Attendance, CountActive, UnevenRule};
use waited::StepWaits;

use crate::error::Error;
use crate::settings::by_name;

pub(crate) use batch::PartOfBatch;
pub use files::CheckpointFiles;
pub(crate) use memory::HostShare;
pub use memory::StateMemory;
pub use overlap::Overlap;
pub use threads::run_threads;
pub use waited::Waited;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// This replica's side of a data-parallel run: reductions over all replicas are recorded into the training step.
///
/// Every replica holds the whole model, or a shard of its state ([`DataParallelConfig::zero`]), and trains on its part of each
/// batch. Gradients are reduced in buckets, each as soon as the backward pass has computed it, on a separate thread while the
/// rest is computed; then every replica takes the same step. So replicas that start from the same values stay bit-identical.
///
/// Use it in your own training loop; [`Trainer::replicas`](crate::Trainer::replicas) does all of it. The same loop trains without
/// other replicas if it is given [`single`](Self::single).
///
/// # Errors
/// An error in one replica, or its loss, ends the run of all others with [`Error::Replica`]. Call [`fail`](Self::fail) where a
/// replica gives up for another reason; dropping it without [`finish`](Self::finish) counts as a failure without a reason.
/// # Reference
/// Li et al. 2020, *PyTorch Distributed*, arXiv:2006.15704: buckets, reduced in one order on every rank while backward runs.
/// # Examples
/// ```
/// use brisk_nn::tensor::program::{Device, HostStep};
/// use brisk_nn::tensor::{Activation, DType, Graph, Persistent, Reduction};
/// use brisk_nn::{Init, Optimizer, ParametersBuilder, Sgd, StepInputs};
/// use brisk_train::{DataParallelConfig, Error, ReduceOp, run_threads};
///
/// // y = w x; each replica has one row.
/// let weights = run_threads(2, &DataParallelConfig::default(), |replica| {
///     let mut builder = ParametersBuilder::new();
///     builder.add("w", &[1, 1], Init::Constant(0.0));
///     let params = builder.build(0);
///     let graph = Graph::training("step");
///     let bound = params.bind(&graph);
///     let rank = replica.rank() as f32;
///     let x = graph.constant("x", &[1.0 + rank], &[1, 1]);
///     let y = graph.constant("y", &[3.0 * (1.0 + rank)], &[1, 1]);
///     let one = graph.constant("one", &[1.0], &[1]);
///     let loss = x.linear(&bound.tensors()[0], None, Activation::identity()).mse_loss(&y, &one, Reduction::Mean);
///     graph.backward(&loss)?;
///     replica.reduce_gradients(&graph, &params, &bound, ReduceOp::Mean, None);
///     let inputs = StepInputs::new(&graph, 1);
///     Sgd::new(&params).record(&graph, &params, &inputs);
///     graph.advance(&inputs.state);
///
///     let device = Device::cpu()?;
///     let step = graph.compile(&device)?;
///     params.write_initial(&device)?;
///     device.write(&inputs.lr, &[0.1_f32])?;
///     step.run(50)?;
///     Ok::<_, Error>(device.read::<f32>(params.values())?[0])
/// })?;
/// assert!((weights[0] - 3.0).abs() < 1e-5 && weights[0] == weights[1], "{weights:?}");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct DataParallel {
    /// `None` for a [single](DataParallel::single) replica.
    communication: Option<Arc<CommThread>>,
    engine: String,
    pub(crate) config: DataParallelConfig,
    overlap: Arc<Overlap>,
    waits: Arc<StepWaits>,
    staging: Arc<Staging>,
    stop: Arc<Stop>,
    attendance: Arc<Attendance>,
    /// Whether `run_threads` calls `finish` for it.
    is_within_threads: bool,
}

/// What the exchange of buckets needs.
#[derive(Debug, Clone)]
struct Links {
    communication: Arc<CommThread>,
    overlap: Arc<Overlap>,
    staging: Arc<Staging>,
    attendance: Arc<Attendance>,
}

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
    /// Which training state is sharded across replicas; [`DataParallel::shard_parameters`] shards it.
    pub zero: ZeroStage,
    /// How [`Trainer`](crate::Trainer) writes checkpoints.
    pub files: CheckpointFiles,
    /// Which statistics normalise batches in training.
    pub batch_norm: BatchStatistics,
    /// What happens when replicas have fewer batches than others. `None` if all have the same number, as in a
    /// [`Trainer`](crate::Trainer); this is not checked.
    pub uneven: Option<UnevenInputs>,
}

/// What happens in steps for which only some replicas have a batch, and the others have [joined](DataParallel::join).
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

/// Whether a replica wants the run to end, which it sends with a loss.
#[derive(Debug, Default)]
struct Stop {
    is_wanted: AtomicBool,
    is_agreed: AtomicBool,
}

impl DataParallel {
    /// Starts the thread that communicates.
    pub fn new(collective: Box<dyn Collective>, config: DataParallelConfig) -> Self {
        let engine = collective.engine().to_owned();
        Self::with(Some(Arc::new(CommThread::new(collective))), engine, config)
    }

    /// One replica without others: nothing is exchanged, no step is recorded for it, and no thread is started.
    pub fn single() -> &'static Self {
        static SINGLE: LazyLock<DataParallel> = LazyLock::new(|| {
            let buckets = BucketSizes { first_bytes: usize::MAX, bytes: usize::MAX };
            DataParallel::with(None, "none".to_owned(), DataParallelConfig { buckets, ..DataParallelConfig::default() })
        });
        &SINGLE
    }

    fn with(communication: Option<Arc<CommThread>>, engine: String, config: DataParallelConfig) -> Self {
        let (overlap, staging, stop, attendance) = <(Arc<_>, Arc<_>, Arc<_>, Arc<_>)>::default();
        let waits = Arc::default();
        Self { communication, engine, config, overlap, waits, staging, stop, attendance, is_within_threads: false }
    }

    /// Which replica this is, from 0.
    pub fn rank(&self) -> usize {
        self.communication.as_ref().map_or(0, |communication| communication.rank())
    }

    /// How many replicas there are.
    pub fn world_size(&self) -> usize {
        self.communication.as_ref().map_or(1, |communication| communication.world_size())
    }

    /// Whether this replica decides by its own clock, callbacks and errors. With others, all of them must decide the same.
    pub(crate) fn is_single(&self) -> bool {
        self.communication.is_none()
    }

    /// Whether batches are normalised by the statistics of each of several replicas' part.
    pub(crate) fn normalises_parts(&self) -> bool {
        self.world_size() > 1 && self.config.batch_norm == BatchStatistics::OfReplica
    }

    /// The communication library: `threads`, `Open MPI 4.1.4`; `none` for a [single](Self::single) replica.
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// This replica's part of `n` rows: parts are in the order of ranks, and differ by at most one row.
    pub fn part_of(&self, n: usize) -> Range<usize> {
        self.shard().part(n)
    }

    /// This replica's part of each batch, for [`FeedConfig::rank`](crate::FeedConfig::rank).
    pub fn shard(&self) -> Shard {
        Shard::parts(self.rank(), self.world_size())
    }

    /// Checks that all replicas have the same entries, before anything is trained.
    ///
    /// # Errors
    /// [`Error::Replica`] with the first entry that differs.
    pub fn agree(&self, mine: Vec<(String, String)>) -> Result<(), Error> {
        let Some(communication) = &self.communication else { return Ok(()) };
        let agreed = communication.start("agree", move |collective| brisk_replicate::agree(collective, &mine));
        Ok(agreed.wait()?)
    }

    /// The same for a model: names, shapes and order of its parameters and buffers, and the optimizer's state.
    ///
    /// # Errors
    /// As [`agree`](Self::agree); [`Error::Tensor`] if parameters or optimizer are not for the stage of
    /// [`DataParallelConfig::zero`].
    pub fn agree_on_model(&self, params: &Parameters, optimizer: &dyn Optimizer) -> Result<(), Error> {
        if self.is_single() {
            return Ok(());
        }
        let entries = params.entries().iter().map(|entry| (entry.name.clone(), format!("{:?} f32", entry.shape)));
        let buffers =
            params.buffers().iter().map(|buffer| (buffer.name().to_owned(), format!("{:?} f32, not trained", buffer.shape())));
        // The lengths of shards differ by the remainder.
        let kept = |len: usize| if params.sharding().is_some() { "a part".to_owned() } else { format!("{len} f32") };
        let state =
            optimizer.state().into_iter().map(|(name, buffer)| (name, format!("{} of the optimizer", kept(buffer.len()))));
        // First: the other entries depend on the stage.
        self.agree(by_name(&self.config)?.into_iter().chain(entries).chain(buffers).chain(state).collect())?;
        self.check_sharding(params, optimizer)
    }

    /// Replaces the values of f32 buffers by those of replica 0.
    ///
    /// # Errors
    /// [`Error::Replica`]; [`Error::Tensor`] if the device fails.
    pub fn broadcast(&self, device: &Device, buffers: &[&Persistent]) -> Result<(), Error> {
        self.broadcast_from(0, device, buffers)
    }

    fn broadcast_from(&self, root: usize, device: &Device, buffers: &[&Persistent]) -> Result<(), Error> {
        let Some(communication) = &self.communication else { return Ok(()) };
        for buffer in buffers {
            let values: Vec<f32> = device.read(buffer)?;
            let values = communication.broadcast(values, root).wait()?;
            if self.rank() != root {
                device.write(buffer, &values)?;
            }
        }
        Ok(())
    }

    /// Sends parameters (unless they are sharded) and buffers of replica 0 to all: once before training, and buffers (running
    /// statistics) again before they are used.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn broadcast_model(&self, device: &Device, params: &Parameters) -> Result<(), Error> {
        if params.sharding().is_none_or(|sharding| sharding.values == Placement::Replicated) {
            self.broadcast(device, &[params.values()])?;
        }
        self.broadcast_buffers(device, params)
    }

    /// The buffers only.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn broadcast_buffers(&self, device: &Device, params: &Parameters) -> Result<(), Error> {
        self.broadcast(device, &params.buffers().iter().map(|buffer| buffer.values()).collect::<Vec<_>>())
    }

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
    /// A copy of all gradients on the host; with a [`Wire`] of 16 bits half a copy more, and one for rounding errors.
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

    /// Concatenates the values of all replicas by rank; each has the same number.
    ///
    /// # Errors
    /// [`Error::Replica`].
    pub fn all_gather(&self, mine: Vec<f32>) -> Result<Vec<f32>, Error> {
        self.gathered(mine)
    }

    /// The same for elements of any type.
    fn gathered<T: Element>(&self, mine: Vec<T>) -> Result<Vec<T>, Error> {
        let Some(communication) = &self.communication else { return Ok(mine) };
        let output = vec![T::zeroed(); mine.len() * self.world_size()];
        Ok(communication.all_gather(mine, output).wait()?.0)
    }

    /// The sum of a number over all replicas. It is sent in f32, as all values; a sum over a few replicas loses little precision.
    pub(crate) fn sum(&self, mine: f64) -> Result<f64, Error> {
        if self.is_single() {
            return Ok(mine);
        }
        Ok(self.gathered(vec![mine as f32])?.iter().map(|&mine| f64::from(mine)).sum())
    }

    /// How long reductions took so far, and how long the computation waited for them.
    pub fn overlap(&self) -> &Overlap {
        &self.overlap
    }

    /// Which replica came last in the steps so far, and how long the others waited for it; about the same on all replicas. `None`
    /// before the end of the second step, for a single replica, and for a communication library that does not measure it.
    pub fn waited(&self) -> Option<Waited> {
        self.waits.waited().filter(|_| self.world_size() > 1)
    }

    /// Requests that the run ends. Returns whether it ends now, because there are no other replicas. Otherwise the request is
    /// sent with the next loss, so that all replicas end after the same step.
    pub(crate) fn ask_to_stop(&self) -> bool {
        if !self.is_single() {
            self.stop.is_wanted.store(true, Ordering::Relaxed);
        }
        self.is_single()
    }

    /// The most batches that may be submitted together: replicas exchange requests to stop with each loss.
    pub(crate) fn most_batches(&self) -> usize {
        if self.is_single() { usize::MAX } else { 1 }
    }

    /// Whether a replica has sent a request to stop to all; the same on all of them.
    pub(crate) fn is_stop_agreed(&self) -> bool {
        self.stop.is_agreed.load(Ordering::Relaxed)
    }

    /// Sets the number of the next step, for the error message of a replica that waits too long and for [`waited`](Self::waited).
    pub fn at_step(&self, step: u64) {
        self.at_batches(step, 1);
    }

    /// The same for a number of batches of a step that are replayed together.
    pub(crate) fn at_batches(&self, step: u64, n_batches: usize) {
        let Some(communication) = &self.communication else { return };
        let waits = self.waits.clone();
        let tell = communication.start("at_step", move |collective| {
            waits.begin(step, n_batches, Instant::now(), &collective.take_waits());
            collective.at_step(step);
            Ok(())
        });
        // This cannot fail, so its result is not awaited.
        drop(tell);
    }

    /// The waits of the batches since the last call, the last of which has ended; none after a failure, which the next exchange
    /// reports. The first call starts to record them.
    pub(crate) fn take_batch_waits(&self) -> Vec<Option<BatchWait>> {
        let Some(communication) = self.communication.as_ref().filter(|_| self.world_size() > 1) else { return Vec::new() };
        let waits = self.waits.clone();
        let taken = communication.start("take_waits", move |collective| Ok(waits.take_batches(&collective.take_waits())));
        taken.wait().unwrap_or_default()
    }

    /// Waits for the others, and ends the group cleanly. [`run_threads`] calls it when its replicas return.
    ///
    /// # Errors
    /// [`Error::Replica`], if another has failed; [`Error::Tensor`] within `run_threads`.
    pub fn finish(&self) -> Result<(), Error> {
        if self.is_within_threads {
            let found = "a replica within `run_threads`, which finishes the replicas itself";
            return Err(Error::refused("finish", found, "no call of `finish` there; return from the closure"));
        }
        self.end()
    }

    fn end(&self) -> Result<(), Error> {
        self.communication.as_ref().map_or(Ok(()), |communication| Ok(communication.finish()?))
    }

    /// Tells the other replicas that this one gives up, and why.
    pub fn fail(&self, why: &str) {
        // If the group has already ended, there is no rank left to notify.
        drop(self.communication.as_ref().map(|communication| communication.fail(why).wait()));
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
