use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::batch::{Batch, Batching};
use crate::buffers::Buffers;
use crate::error::Error;
use crate::loader::Loader;
use crate::make::Make;
use crate::plan::Plan;
use crate::ring::{NotTaken, Ring};
use crate::source::{Feature, RowSource};
use crate::state::{Identity, State};

/// How many batches are made ahead of the consumer, and by how many threads. Neither changes the batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The number of batches that may be ready or in progress, besides the one that the consumer uses: `depth + 1` are allocated.
    /// 0 counts as 1, and more batches than an epoch has as that many.
    pub depth: usize,
    /// The number of threads, each of which makes a different batch. One is enough for rows in memory; use more if a source
    /// decodes or waits for a disk. 0 counts as 1.
    pub workers: usize,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { depth: 3, workers: 1 }
    }
}

impl<S: RowSource, M: Make<S>> Loader<S, M> {
    /// Starts worker threads that make batches before they are requested. They live in `scope`, across epochs, until the
    /// [`Prefetch`] is dropped, which waits for them. (If a `Prefetch` is leaked, its scope waits forever.)
    ///
    /// # Panics
    /// If there is no memory for so many batches.
    /// # Examples
    /// ```
    /// use brisk_loader::{Ahead, Batching, Loader, Rows};
    ///
    /// let rows = Rows::new(vec![0.5; 1000 * 3], vec![1.0; 1000], 3)?;
    /// let loader = Loader::new(&rows, Batching::of(64).shuffled(42))?;
    /// std::thread::scope(|scope| {
    ///     let mut ahead = loader.prefetch(scope, Ahead::default());
    ///     for epoch in 0..2 {
    ///         let mut batches = ahead.epoch(epoch);
    ///         while let Some(batch) = batches.next_batch()? {
    ///             assert_eq!(batch.labels.len(), 64);
    ///         }
    ///     }
    ///     Ok::<(), brisk_loader::Error>(())
    /// })?;
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn prefetch<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, ahead: Ahead) -> Prefetch<'scope, M::Out> {
        // More than an epoch has would only wait.
        let n_batches = Plan::new(self.batching(), self.identity().n_rows, 0, 0).map_or(1, |plan| plan.n_batches());
        let depth = ahead.depth.clamp(1, n_batches.max(1));
        let n_workers = ahead.workers.clamp(1, depth);
        let ring = Arc::new(Ring::new(depth, n_workers, self.timer.clone(), || self.new_buffers()));
        let workers = (0..n_workers).map(|worker| {
            let (ring, mut scratch) = (Arc::clone(&ring), self.new_scratch());
            scope.spawn(move || ring.work(worker, self.source(), &self.maker, &mut scratch))
        });
        Prefetch { workers: workers.collect(), ring, batching: self.batching().clone(), identity: self.identity(), in_hand: None }
    }
}

/// Worker threads that make batches ahead; created by [`Loader::prefetch`].
#[derive(Debug)]
pub struct Prefetch<'scope, T: Feature = f32> {
    ring: Arc<Ring<T>>,
    workers: Vec<ScopedJoinHandle<'scope, ()>>,
    batching: Batching,
    identity: Identity,
    in_hand: Option<Buffers<T>>,
}

impl<T: Feature> Prefetch<'_, T> {
    /// The batches of `epoch`, the same as those of [`Loader::epoch`].
    pub fn epoch(&mut self, epoch: u32) -> PrefetchEpoch<'_, T> {
        match self.epoch_from(epoch, 0) {
            Ok(batches) => batches,
            Err(error) => unreachable!("`Loader::new` made this plan already: {error}"),
        }
    }

    /// The batches of `epoch` from a position on, the same as those of [`Loader::epoch_from`].
    ///
    /// # Errors
    /// [`Error::Position`] beyond the last row.
    pub fn epoch_from(&mut self, epoch: u32, position: usize) -> Result<PrefetchEpoch<'_, T>, Error> {
        let plan = Plan::new(&self.batching, self.identity.n_rows, epoch, position)?;
        let n_batches = plan.n_batches();
        self.ring.start(Some((&plan, 0)), self.in_hand.take());
        let Self { ring, batching, identity, in_hand, .. } = self;
        Ok(PrefetchEpoch { ring, batching, identity: *identity, in_hand, plan, n_batches, n_taken: 0, has_failed: false })
    }

    /// The batches after a saved state, the same as those of [`Loader::resume`].
    ///
    /// # Errors
    /// [`Error::State`] with the property that differs.
    pub fn resume(&mut self, state: &State) -> Result<PrefetchEpoch<'_, T>, Error> {
        let position = self.identity.position(state, &self.batching.order)?;
        self.epoch_from(state.epoch, position)
    }
}

impl<T: Feature> Drop for Prefetch<'_, T> {
    fn drop(&mut self) {
        self.ring.close();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its source, so the result is not needed.
            let _ = worker.join();
        }
    }
}

/// The batches of one epoch, made ahead; created by [`Prefetch::epoch`]. Dropping it early cancels the remaining batches.
#[derive(Debug)]
pub struct PrefetchEpoch<'a, T: Feature = f32> {
    ring: &'a Ring<T>,
    batching: &'a Batching,
    identity: Identity,
    in_hand: &'a mut Option<Buffers<T>>,
    plan: Plan,
    n_batches: usize,
    n_taken: usize,
    /// Whether the next batch could not be made, so that no worker makes it or a later one.
    has_failed: bool,
}

impl<T: Feature> PrefetchEpoch<'_, T> {
    /// The next batch, borrowed until the following call; `None` at the end. Waits if it is not ready.
    ///
    /// # Errors
    /// [`Error::Source`], [`Error::Transform`] or [`Error::Panicked`] if this batch could not be made, after all batches before
    /// it. The batch then does not count as taken: calling again tries again, as with [`Epoch::next_batch`](crate::Epoch).
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_, T>>, Error> {
        self.take(None)
    }

    /// Like [`next_batch`](Self::next_batch), with a time limit: if a disk hangs, for example, the error names the stage.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if the batch is not ready in time. Nothing is lost: calling again continues to wait. (Dropping the
    /// [`Prefetch`] still waits for workers that are making a batch, because a thread cannot be stopped from outside.)
    pub fn next_batch_within(&mut self, at_most: Duration) -> Result<Option<Batch<'_, T>>, Error> {
        self.take(Some(at_most))
    }

    fn take(&mut self, at_most: Option<Duration>) -> Result<Option<Batch<'_, T>>, Error> {
        if self.n_taken == self.n_batches {
            return Ok(None);
        }
        if std::mem::take(&mut self.has_failed) {
            self.ring.start(Some((&self.plan, self.n_taken)), None);
        }
        match self.ring.take(self.in_hand.take(), at_most) {
            Ok(buffers) => {
                self.n_taken += 1;
                Ok(Some(self.in_hand.insert(buffers).batch()))
            }
            Err(NotTaken::TimedOut { waited, stage }) => {
                Err(Error::TimedOut { batch: self.plan.index(self.n_taken), waited, stage })
            }
            Err(NotTaken::Failed(error)) => {
                self.has_failed = true;
                self.ring.start(None, None);
                Err(error)
            }
        }
    }

    /// The number of remaining batches: exact, and the same for every rank.
    pub fn len(&self) -> usize {
        self.n_batches - self.n_taken
    }

    /// Whether no batches remain.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rows of the epoch that all ranks have consumed with the batches *taken* so far, however many more are ready.
    pub fn position(&self) -> usize {
        self.plan.position_after(self.n_taken)
    }

    /// The state of the epoch, to be saved.
    pub fn state(&self) -> State {
        self.identity.state(&self.plan, &self.batching.order, self.n_taken)
    }
}

impl<T: Feature> Drop for PrefetchEpoch<'_, T> {
    fn drop(&mut self) {
        self.ring.start(None, self.in_hand.take());
    }
}
