//! Replicas of a model, each with its part of every batch.

mod agreement;
mod divided;
mod exchange;
mod files;
mod gather;
mod memory;
mod overlap;
mod scatter;
mod staging;
mod threads;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use brisk_nn::tensor::program::{Device, HostStep};
use brisk_nn::tensor::{AllGather, DType, Graph, Persistent, Tensor};
use brisk_nn::{Bound, Kept, Optimizer, Parameters};
use brisk_replicate::{BucketSizes, Collective, CommThread, Described, ReduceOp, Wire, ZeroStage};

use crate::Error;
use exchange::{Exchange, Finish, Start, UnevenRule};
use staging::Staging;

pub use files::CheckpointFiles;
pub use memory::StateMemory;
pub use overlap::Overlap;
pub use threads::run_threads;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// This replica's side of a data-parallel run: what is reduced over all of them is recorded into the training step.
///
/// Every replica holds the whole model, or shares its state with the others ([`DataParallelConfig::zero`]), and takes its part of each batch. Gradients are reduced in buckets, each as soon as the backward pass has made
/// it, on a thread of their own while the rest is computed; then every replica takes the same step. So replicas that start alike stay alike, bit for bit.
///
/// It is for training loops of one's own; [`Trainer::with_replicas`](crate::Trainer::with_replicas) does all of it.
///
/// # Errors
/// What a replica does wrong, or that it is lost, ends the run of every other as [`Error::Replica`]. Call [`fail`](Self::fail) where one gives up for a reason of
/// its own; dropping it without [`finish`](Self::finish) is a failure without a reason.
/// # Reference
/// Li et al. 2020, *PyTorch Distributed*, arXiv:2006.15704: buckets, reduced in one order on every rank while backward runs.
/// # Examples
/// ```
/// use brisk_nn::tensor::program::{Device, HostStep};
/// use brisk_nn::tensor::{Activation, DType, Graph, Persistent, Reduction};
/// use brisk_nn::{Init, Optimizer, ParametersBuilder, Sgd, StepInputs};
/// use brisk_train::{DataParallelConfig, Error, ReduceOp, run_threads};
///
/// // y = w x, of which each replica has one row.
/// let weights = run_threads(2, &DataParallelConfig::default(), |replica| {
///     let mut builder = ParametersBuilder::new();
///     builder.add("w", &[1, 1], Init::Constant(0.0));
///     let params = builder.build(0);
///     let graph = Graph::training("step");
///     let bound = params.bind(&graph)?;
///     let rank = replica.rank() as f32;
///     let x = graph.constant("x", &[1.0 + rank], &[1, 1])?;
///     let y = graph.constant("y", &[3.0 * (1.0 + rank)], &[1, 1])?;
///     let one = graph.constant("one", &[1.0], &[1])?;
///     let loss = x.linear(&bound.tensors()[0], None, Activation::Identity)?.mse_loss(&y, &one, Reduction::Mean)?;
///     graph.backward(&loss)?;
///     replica.reduce_gradients(&graph, &params, &bound, ReduceOp::Mean, None)?;
///     let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
///     Sgd::new(&params).record(&graph, &params, &inputs)?;
///     graph.advance(&inputs.state)?;
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
    communication: Arc<CommThread>,
    engine: String,
    config: DataParallelConfig,
    overlap: Arc<Overlap>,
    staging: Arc<Staging>,
    stop: Arc<Stop>,
    /// How many replicas had a batch in the last step, where that is asked.
    active: Arc<AtomicUsize>,
}

/// What carries buckets of divided state, counts and holds them.
#[derive(Debug, Clone)]
struct Links {
    communication: Arc<CommThread>,
    overlap: Arc<Overlap>,
    staging: Arc<Staging>,
}

/// How replicas talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DataParallelConfig {
    /// How much is reduced together.
    pub buckets: BucketSizes,
    /// In what gradients travel: fewer bits pay on slow networks alone.
    pub wire: Wire,
    /// What of the training state each replica keeps a part of, instead of all: [`DataParallel::divide`] does it.
    pub zero: ZeroStage,
    /// How [`Trainer`](crate::Trainer) writes checkpoints.
    pub files: CheckpointFiles,
    /// By whose statistics batches are normalised in training.
    pub batch_norm: BatchStatistics,
    /// What becomes of replicas that have fewer batches than others. `None` says that all have as many, and nobody asks; so it is with a [`Trainer`](crate::Trainer).
    pub uneven: Option<Uneven>,
}

/// What is done in steps in which some replicas have a batch, and others have none left and have [joined](DataParallel::join).
///
/// # Reference
/// `DistributedDataParallel.join`: `divide_by_initial_world_size=True` and `False`, `throw_on_early_termination`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Uneven {
    /// Means are still over all replicas, so that every row counts for as much as the others.
    DividedByAll,
    /// Means are over those that have a batch.
    DividedByActive,
    /// The run ends, on all of them.
    Refused,
}

/// Of which rows the statistics are that a batch normalisation takes in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BatchStatistics {
    /// Of the replica's part of the batch: nobody waits for anybody.
    #[default]
    OfReplica,
    /// Of the whole batch, as on one device: two waits a normalisation and step.
    OfAll,
}

/// Whether anybody wants the run to end, which is told with a loss.
#[derive(Debug, Default)]
struct Stop {
    is_wanted: AtomicBool,
    is_agreed: AtomicBool,
}

impl DataParallel {
    /// Starts the thread that communicates.
    pub fn new(collective: Box<dyn Collective>, config: DataParallelConfig) -> Self {
        let engine = collective.engine().to_owned();
        let communication = Arc::new(CommThread::new(collective));
        let (overlap, staging, stop, active) = <(Arc<_>, Arc<_>, Arc<_>, Arc<_>)>::default();
        Self { communication, engine, config, overlap, staging, stop, active }
    }

    /// Which replica this is, from 0.
    pub fn rank(&self) -> usize {
        self.communication.rank()
    }

    /// How many there are.
    pub fn world_size(&self) -> usize {
        self.communication.world_size()
    }

    /// What carries the values: `threads`, `Open MPI 4.1.4`.
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// This replica's part of `n` rows: parts follow each other by rank, and differ by one row at most.
    pub fn part_of(&self, n: usize) -> Range<usize> {
        self.part_of_rank(self.rank(), n)
    }

    pub(crate) fn part_of_rank(&self, rank: usize, n: usize) -> Range<usize> {
        let cut = |rank: usize| n * rank / self.world_size();
        cut(rank)..cut(rank + 1)
    }

    /// Makes sure that all replicas say the same, before anything is trained.
    ///
    /// # Errors
    /// [`Error::Replica`] with the first entry that differs.
    pub fn agree(&self, mine: Vec<Described>) -> Result<(), Error> {
        let agreed = self.communication.start("agree", move |collective| brisk_replicate::agree(collective, &mine));
        Ok(agreed.wait()?)
    }

    /// The same for a model: names, shapes and order of its parameters and buffers, and what the optimizer keeps.
    ///
    /// # Errors
    /// As [`agree`](Self::agree); [`Error::Tensor`] if parameters or optimizer are not for the stage of [`DataParallelConfig::zero`].
    pub fn agree_on_model(&self, params: &Parameters, optimizer: &dyn Optimizer) -> Result<(), Error> {
        let entries = params.entries().iter().map(|entry| (entry.name.clone(), format!("{:?} f32", entry.shape)));
        let buffers =
            params.buffers().iter().map(|buffer| (buffer.name().to_owned(), format!("{:?} f32, not trained", buffer.shape())));
        // What is divided differs in length by what is left over.
        let kept = |len: usize| if params.division().is_some() { "a part".to_owned() } else { format!("{len} f32") };
        let state =
            optimizer.state().into_iter().map(|(name, buffer)| (name, format!("{} of the optimizer", kept(buffer.len()))));
        let config = [("the configuration".to_owned(), format!("{:?}", self.config))];
        self.agree(entries.chain(buffers).chain(state).chain(config).map(|(what, is)| Described { what, is }).collect())?;
        self.check_division(params, optimizer)
    }

    /// Replaces the values of f32 buffers by those of replica 0.
    ///
    /// # Errors
    /// [`Error::Replica`]; [`Error::Tensor`] if the device fails.
    pub fn broadcast(&self, device: &Device, buffers: &[&Persistent]) -> Result<(), Error> {
        self.broadcast_from(0, device, buffers)
    }

    fn broadcast_from(&self, root: usize, device: &Device, buffers: &[&Persistent]) -> Result<(), Error> {
        for buffer in buffers {
            let values: Vec<f32> = device.read(buffer)?;
            let values = self.communication.broadcast(values, root).wait()?;
            if self.rank() != root {
                device.write(buffer, &values)?;
            }
        }
        Ok(())
    }

    /// Parameters (those that are whole) and buffers of replica 0, for all: once before training, and buffers (running statistics) again before they are used.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn broadcast_model(&self, device: &Device, params: &Parameters) -> Result<(), Error> {
        if params.division().is_none_or(|division| division.values == Kept::Whole) {
            self.broadcast(device, &[params.values()])?;
        }
        self.broadcast_buffers(device, params)
    }

    /// The buffers alone.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    pub fn broadcast_buffers(&self, device: &Device, params: &Parameters) -> Result<(), Error> {
        self.broadcast(device, &params.buffers().iter().map(|buffer| buffer.values()).collect::<Vec<_>>())
    }

    /// Records that gradients are reduced over all replicas; behind the backward pass, and before what reads them.
    ///
    /// The mean is what replicas want whose losses are means over batches of one length; the sum, where the losses of all add up to that of the whole batch.
    /// With `state`, that of an [`Accumulate`](brisk_nn::Accumulate) that has been recorded before, nothing is reduced in batches that end no group: what
    /// PyTorch's `no_sync` is for. Where gradients are divided there are none to sum up but a replica's own: then `Accumulate` comes behind this, and every batch is reduced.
    ///
    /// What [`divide`](Self::divide) has divided is reduced so that each replica has the sums of its own pieces; `bound` is the model in `graph`.
    ///
    /// # Cost
    /// A copy of all gradients on the host; another half for a [`Wire`] of 16 bits, and one for what it rounds away.
    /// # Errors
    /// [`Error::Tensor`].
    pub fn reduce_gradients(
        &self,
        graph: &Graph,
        params: &Parameters,
        bound: &Bound,
        reduce: ReduceOp,
        state: Option<&Persistent>,
    ) -> Result<(), Error> {
        let recorded = graph.with_program(|program| {
            if let Some(division) = params.division() {
                return self.scatter_gradients(program, (params, division), bound, reduce, state);
            }
            let cut = self.cut(params);
            let grads = program.persistent(params.grads());
            let state = state.map(|state| program.persistent(state));
            // Buckets start in their order, on every replica, whichever is ready first.
            let (mut at, mut exchanges) = (0, Vec::with_capacity(cut.len()));
            for elements in cut {
                let exchange = self.exchange(elements.clone(), reduce, None, exchanges.is_empty());
                let start = Start { exchange: exchange.clone(), asks_whether_due: state.is_some() };
                let bucket = grads.slice(elements);
                at = program.last_write(bucket).map_or(at, |last| at.max(last + 1));
                program.insert_host(at, Arc::new(start), &[Some(bucket), state].into_iter().flatten().collect::<Vec<_>>())?;
                at += 1;
                exchanges.push(exchange);
            }
            program.push_host(Arc::new(self.finish_of(grads.len(), exchanges)), &[grads])
        });
        Ok(recorded?)
    }

    /// Records that a tensor is reduced over all replicas: what has been recorded of it so far. It is sent off as soon as it is there, and awaited here. There is no
    /// gradient of it.
    ///
    /// # Errors
    /// [`Error::Tensor`].
    pub fn all_reduce(&self, graph: &Graph, x: &Tensor, reduce: ReduceOp) -> Result<Tensor, Error> {
        self.all_reduce_with(graph, x, reduce, None)
    }

    /// The same, which also tells whether any replica wants to stop.
    pub(crate) fn all_reduce_and_ask(&self, graph: &Graph, x: &Tensor, reduce: ReduceOp) -> Result<Tensor, Error> {
        self.all_reduce_with(graph, x, reduce, Some(self.stop.clone()))
    }

    fn all_reduce_with(&self, graph: &Graph, x: &Tensor, reduce: ReduceOp, stop: Option<Arc<Stop>>) -> Result<Tensor, Error> {
        let n = x.n_elements();
        let exchange = self.exchange(0..n, reduce, stop, false);
        let y = graph.with_program(|program| {
            let y = program.transient("all_reduced", DType::F32, n);
            let at = program.last_write(x.slice()).map_or(0, |last| last + 1);
            let start = Start { exchange: exchange.clone(), asks_whether_due: false };
            program.insert_host(at, Arc::new(start), &[x.slice()])?;
            program.push_host(Arc::new(self.finish_of(n, vec![exchange])), &[y]).map(|()| y)
        })?;
        Ok(graph.wrap(y, x.shape())?)
    }

    /// Asks a graph, before a model is recorded into it, to normalise batches by the statistics that the configuration says.
    pub fn prepare(&self, graph: &Graph) {
        if self.config.batch_norm == BatchStatistics::OfAll {
            graph.synchronise_batch_norm(Arc::new(OnThread(self.communication.clone())));
        }
    }

    /// For a replica that has no batch left: takes part in the steps that others take with `graph`, with gradients of 0, until all have come here. Then all have the
    /// model of the one that came last.
    ///
    /// # Errors
    /// [`Error::Replica`], also where that is [refused](Uneven::Refused), or the configuration does not say what is to be done; [`Error::Tensor`] if the device fails.
    /// # Reference
    /// `DistributedDataParallel.join`.
    pub fn join(&self, graph: &Graph, device: &Device, params: &Parameters) -> Result<(), Error> {
        let (Some(uneven), BatchStatistics::OfReplica) = (self.config.uneven, self.config.batch_norm) else {
            return Err(Error::CannotJoin);
        };
        let host_steps: Vec<Arc<dyn HostStep>> = graph.with_program(|program| program.host_steps().cloned().collect());
        let exchanges: Vec<Arc<Exchange>> = host_steps.iter().filter_map(|step| Start::exchange_of(step.as_ref())).collect();
        let mut n_steps = 0_u32;
        'steps: loop {
            for exchange in &exchanges {
                match exchange.join()? {
                    Some(0) => break 'steps,
                    Some(n) if uneven == Uneven::Refused => return Err(exchange::ran_out(n, self.world_size()).into()),
                    _ => {}
                }
            }
            n_steps += 1;
        }
        // Who came last has joined in the fewest steps.
        let joined = self.all_gather(vec![n_steps as f32])?;
        let last = (0..self.world_size()).min_by(|&a, &b| joined[a].total_cmp(&joined[b])).unwrap_or(0);
        let buffers = params.buffers().iter().map(|buffer| buffer.values());
        self.broadcast_from(last, device, &std::iter::once(params.values()).chain(buffers).collect::<Vec<_>>())
    }

    fn exchange(&self, elements: Range<usize>, reduce: ReduceOp, stop: Option<Arc<Stop>>, counts: bool) -> Arc<Exchange> {
        let (communication, overlap) = (self.communication.clone(), self.overlap.clone());
        let active = self.config.uneven.filter(|_| counts).map(|_| self.active.clone());
        Arc::new(Exchange::new(communication, overlap, elements, reduce, self.config.wire, stop, active))
    }

    fn finish_of(&self, n: usize, exchanges: Vec<Arc<Exchange>>) -> Finish {
        let (world_size, active) = (self.world_size(), self.active.clone());
        let uneven = self.config.uneven.map(|uneven| UnevenRule { uneven, active, world_size });
        Finish { n, exchanges, uneven }
    }

    /// Puts what all replicas have, each as much, one behind the other by rank.
    ///
    /// # Errors
    /// [`Error::Replica`].
    pub fn all_gather(&self, mine: Vec<f32>) -> Result<Vec<f32>, Error> {
        let output = vec![0.0; mine.len() * self.world_size()];
        Ok(self.communication.all_gather(mine, output).wait()?.0)
    }

    /// How long reductions took so far, and how long computation waited for them.
    pub fn overlap(&self) -> &Overlap {
        &self.overlap
    }

    /// Says with the next loss that this replica wants to stop.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.is_wanted.store(true, Ordering::Relaxed);
    }

    /// Whether a replica has said so with a loss; the same on all of them.
    pub(crate) fn is_stop_agreed(&self) -> bool {
        self.stop.is_agreed.load(Ordering::Relaxed)
    }

    /// Says which step comes next, for the message of a replica that waits too long.
    pub fn at_step(&self, step: u64) {
        let tell = self.communication.start("at_step", move |collective| {
            collective.at_step(step);
            Ok(())
        });
        // It cannot fail, and nobody waits for it.
        drop(tell);
    }

    /// Waits for the others, and ends the group cleanly.
    ///
    /// # Errors
    /// [`Error::Replica`], if another has failed.
    pub fn finish(&self) -> Result<(), Error> {
        Ok(self.communication.finish()?)
    }

    /// Tells the others that this replica gives up, and why.
    pub fn fail(&self, why: &str) {
        // Where the group is dead already there is nobody to tell.
        drop(self.communication.fail(why).wait());
    }
}

/// What normalisations ask of the communication thread.
#[derive(Debug)]
struct OnThread(Arc<CommThread>);

impl AllGather for OnThread {
    fn all_gather(&self, mine: &[f32]) -> Result<Vec<f32>, Box<dyn std::error::Error + Send + Sync>> {
        let Self(communication) = self;
        let output = vec![0.0; mine.len() * communication.world_size()];
        Ok(communication.all_gather(mine.to_vec(), output).wait()?.0)
    }
}

/// Whether a batch of `batch_rows` gives each of `world_size` replicas a row.
pub(crate) fn check_batch(batch_rows: usize, world_size: usize) -> Result<(), Error> {
    if batch_rows >= world_size { Ok(()) } else { Err(Error::BatchPerReplica { batch_rows, world_size }) }
}
