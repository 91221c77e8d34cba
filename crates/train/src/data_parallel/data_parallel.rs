use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use brisk_loader::Shard;
use brisk_nn::tensor::Persistent;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Optimizer, Parameters, Placement};
use brisk_replicate::{BucketSizes, Collective, CommThread, Element};
use brisk_report::BatchWait;

use super::attendance::Attendance;
use super::config::{BatchStatistics, DataParallelConfig};
use super::links::Stop;
use super::overlap::Overlap;
use super::staging::Staging;
use super::waited::{StepWaits, Waited};
use crate::error::Error;
use crate::settings::by_name;

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
    pub(super) communication: Option<Arc<CommThread>>,
    pub(super) engine: String,
    pub(crate) config: DataParallelConfig,
    pub(super) overlap: Arc<Overlap>,
    pub(super) waits: Arc<StepWaits>,
    pub(super) staging: Arc<Staging>,
    pub(super) stop: Arc<Stop>,
    pub(super) attendance: Arc<Attendance>,
    /// Whether `run_threads` calls `finish` for it.
    pub(super) is_within_threads: bool,
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

    pub(super) fn with(communication: Option<Arc<CommThread>>, engine: String, config: DataParallelConfig) -> Self {
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

    pub(super) fn broadcast_from(&self, root: usize, device: &Device, buffers: &[&Persistent]) -> Result<(), Error> {
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

    /// Concatenates the values of all replicas by rank; each has the same number.
    ///
    /// # Errors
    /// [`Error::Replica`].
    pub fn all_gather(&self, mine: Vec<f32>) -> Result<Vec<f32>, Error> {
        self.gathered(mine)
    }

    /// The same for elements of any type.
    pub(super) fn gathered<T: Element>(&self, mine: Vec<T>) -> Result<Vec<T>, Error> {
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

    /// Waits for the others, and ends the group cleanly. [`run_threads`](crate::run_threads) calls it when its replicas return.
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

    pub(super) fn end(&self) -> Result<(), Error> {
        self.communication.as_ref().map_or(Ok(()), |communication| Ok(communication.finish()?))
    }

    /// Tells the other replicas that this one gives up, and why.
    pub fn fail(&self, why: &str) {
        // If the group has already ended, there is no rank left to notify.
        drop(self.communication.as_ref().map(|communication| communication.fail(why).wait()));
    }
}
