use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use crate::collective::{Collective, CollectiveExt};
use crate::element::Element;
use crate::error::Error;
use crate::reduce_op::ReduceOp;
use crate::run::message_of;

/// A thread that owns a [`Collective`] and performs operations one after the other while the replica continues computing.
///
/// Buffers are moved in and returned by [`Pending::wait`], so nothing is borrowed meanwhile and nothing is copied. Operations run
/// in the order in which they were started; start them in the same order on every rank. After one has failed, those started after
/// it return its error too.
///
/// It makes blocking calls on a thread because few engines make progress on a nonblocking operation unless they are called.
///
/// # Examples
/// ```
/// use brisk_replicate::{CommThread, ReduceOp, Threads, ThreadsConfig};
///
/// let replicas = Threads::group(ThreadsConfig::new(2)).into_iter().map(|replica| {
///     std::thread::spawn(move || {
///         let communication = CommThread::new(Box::new(replica));
///         let last_layer = communication.all_reduce(vec![1.0_f32; 1000], ReduceOp::Mean);
///         // … the gradients of the first layer are computed here …
///         let first_layer = communication.all_reduce(vec![2.0_f32; 10], ReduceOp::Mean);
///         assert_eq!(last_layer.wait()?, [1.0; 1000]);
///         assert_eq!(first_layer.wait()?, [2.0; 10]);
///         communication.finish()
///     })
/// });
/// for replica in replicas.collect::<Vec<_>>() {
///     replica.join().expect("no panic")?;
/// }
/// # Ok::<(), brisk_replicate::Error>(())
/// ```
#[derive(Debug)]
pub struct CommThread {
    running: Mutex<Option<Running>>,
    rank: usize,
    world_size: usize,
}

#[derive(Debug)]
struct Running {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<Box<dyn Collective>>,
}

type Job = Box<dyn FnOnce(&mut dyn Collective) + Send>;

/// An operation that has been started.
#[derive(Debug)]
#[must_use = "an operation that is not waited for may fail unseen"]
pub struct Pending<T> {
    op: &'static str,
    result: mpsc::Receiver<Result<T, Error>>,
}

impl CommThread {
    /// Starts the thread.
    pub fn new(collective: Box<dyn Collective>) -> Self {
        let (rank, world_size) = (collective.rank(), collective.world_size());
        let (jobs, queue) = mpsc::channel::<Job>();
        let thread = std::thread::spawn(move || {
            let mut collective = collective;
            for job in queue {
                job(collective.as_mut());
            }
            collective
        });
        Self { running: Mutex::new(Some(Running { jobs, thread })), rank, world_size }
    }

    /// The index of this replica, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of replicas.
    pub fn world_size(&self) -> usize {
        self.world_size
    }

    /// Starts [`CollectiveExt::all_reduce`], which returns the reduced values.
    pub fn all_reduce<T: Element>(&self, mut values: Vec<T>, reduce: ReduceOp) -> Pending<Vec<T>> {
        self.start("all_reduce", move |collective| collective.all_reduce(&mut values, reduce).map(|()| values))
    }

    /// Starts [`CollectiveExt::reduce_scatter`], which returns this rank's shard and `input`.
    pub fn reduce_scatter<T: Element>(&self, input: Vec<T>, mut shard: Vec<T>, reduce: ReduceOp) -> Pending<(Vec<T>, Vec<T>)> {
        self.start("reduce_scatter", move |collective| {
            collective.reduce_scatter(&input, &mut shard, reduce).map(|()| (shard, input))
        })
    }

    /// Starts [`CollectiveExt::all_gather`], which returns the filled `output` and the shard.
    pub fn all_gather<T: Element>(&self, shard: Vec<T>, mut output: Vec<T>) -> Pending<(Vec<T>, Vec<T>)> {
        self.start("all_gather", move |collective| collective.all_gather(&shard, &mut output).map(|()| (output, shard)))
    }

    /// Starts [`CollectiveExt::broadcast`].
    pub fn broadcast<T: Element>(&self, mut values: Vec<T>, root: usize) -> Pending<Vec<T>> {
        self.start("broadcast", move |collective| collective.broadcast(&mut values, root).map(|()| values))
    }

    /// Starts [`Collective::barrier`].
    pub fn barrier(&self) -> Pending<()> {
        self.start("barrier", |collective| collective.barrier())
    }

    /// Runs `operation` on the thread, after the operations that were started before. If it panics, that is a failure of this
    /// rank, [`Error::PeerFailed`], for it and for all ranks.
    pub fn start<T: Send + 'static>(
        &self,
        op: &'static str,
        operation: impl FnOnce(&mut dyn Collective) -> Result<T, Error> + Send + 'static,
    ) -> Pending<T> {
        let (sender, result) = mpsc::channel();
        if let Some(Running { jobs, .. }) = &*self.lock() {
            let job: Job = Box::new(move |collective| {
                // Unwind-safe, because no rank uses the group after a failure.
                let ended = catch_unwind(AssertUnwindSafe(|| operation(collective))).unwrap_or_else(|panic| {
                    let why = message_of(panic.as_ref());
                    collective.fail(&why);
                    Err(Error::PeerFailed { rank: collective.rank(), why })
                });
                // If the caller has dropped the `Pending`, the result is discarded.
                drop(sender.send(ended));
            });
            // A thread that has ended drops the job and its sender, which `wait` notices.
            drop(jobs.send(job));
        }
        Pending { op, result }
    }

    /// Waits for all started operations, and ends the group cleanly. Operations started after that return [`Error::Closed`].
    ///
    /// # Errors
    /// As [`Collective::finish`]; [`Error::Closed`] if this has been called before.
    pub fn finish(&self) -> Result<(), Error> {
        self.close().ok_or(Error::Closed { op: "finish" })?.finish()
    }

    /// Waits for the thread to end; `None` if it was closed before.
    fn close(&self) -> Option<Box<dyn Collective>> {
        let Running { jobs, thread } = self.lock().take()?;
        drop(jobs);
        thread.join().ok()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the other ranks that this one has failed, after the operations that were started before.
    pub fn fail(&self, why: &str) -> Pending<()> {
        let why = why.to_owned();
        self.start("fail", move |collective| {
            collective.fail(&why);
            Ok(())
        })
    }
}

impl Drop for CommThread {
    /// Waits for the started operations. The other ranks see a failure, since `finish` was not called.
    fn drop(&mut self) {
        drop(self.close());
    }
}

impl<T> Pending<T> {
    /// Waits for the operation and returns its result.
    ///
    /// # Errors
    /// Those of the operation; [`Error::PeerFailed`] if it panicked; [`Error::Closed`] if it was started after
    /// [`CommThread::finish`].
    pub fn wait(self) -> Result<T, Error> {
        self.result.recv().unwrap_or(Err(Error::Closed { op: self.op }))
    }
}
