use std::sync::Arc;
use std::thread::{Scope, ScopedJoinHandle};

use crate::buffers::{Buffers, Widths};
use crate::plan::Plan;
use crate::ring::Ring;
use crate::{Batch, Batching, Error, Feature, Loader, RowSource};

/// How far ahead of the consumer batches are gathered, and by how many threads. Neither changes any batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Batches that may be ready, or in the making, beside the one in the consumer's hands: `depth + 1` are allocated. 0 is taken as 1.
    pub depth: usize,
    /// Threads, each at a batch of its own. One is enough for rows in memory; a source that decodes or waits for a disk wants more. 0 is taken as 1.
    pub workers: usize,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { depth: 3, workers: 1 }
    }
}

impl<S: RowSource> Loader<S> {
    /// Starts worker threads that gather batches ahead of whoever asks. They live in `scope`, across epochs, until the
    /// [`Prefetch`] is dropped; the drop waits for them. (A `Prefetch` that is leaked instead keeps its scope waiting for ever.)
    ///
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
    pub fn prefetch<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, ahead: Ahead) -> Prefetch<'scope, S::Feature> {
        let (depth, n_workers) = (ahead.depth.max(1), ahead.workers.max(1));
        let batching = self.batching().clone();
        let (n_rows, widths) = (self.source().n_rows(), Widths::of(self.source()));
        let ring = Arc::new(Ring::new(depth, || Buffers::new(batching.size, widths)));
        let workers = (0..n_workers).map(|_| {
            let ring = Arc::clone(&ring);
            scope.spawn(move || ring.work(self.source()))
        });
        Prefetch { workers: workers.collect(), ring, batching, n_rows, in_hand: None }
    }
}

/// Worker threads that gather ahead; from [`Loader::prefetch`].
#[derive(Debug)]
pub struct Prefetch<'scope, T: Feature = f32> {
    ring: Arc<Ring<T>>,
    workers: Vec<ScopedJoinHandle<'scope, ()>>,
    batching: Batching,
    n_rows: usize,
    in_hand: Option<Buffers<T>>,
}

impl<T: Feature> Prefetch<'_, T> {
    /// The batches of `epoch`: those of [`Loader::epoch`].
    pub fn epoch(&mut self, epoch: u32) -> PrefetchEpoch<'_, T> {
        match self.epoch_from(epoch, 0) {
            Ok(batches) => batches,
            Err(error) => unreachable!("`Loader::new` made this plan already: {error}"),
        }
    }

    /// The batches of `epoch` from a position on: those of [`Loader::epoch_from`].
    ///
    /// # Errors
    /// [`Error::Position`] beyond the last row.
    pub fn epoch_from(&mut self, epoch: u32, position: usize) -> Result<PrefetchEpoch<'_, T>, Error> {
        let plan = Plan::new(&self.batching, self.n_rows, epoch, position)?;
        let n_batches = plan.n_batches();
        self.ring.start(Some(&plan), self.in_hand.take());
        Ok(PrefetchEpoch { ring: &self.ring, in_hand: &mut self.in_hand, plan, n_batches, n_taken: 0 })
    }
}

impl<T: Feature> Drop for Prefetch<'_, T> {
    fn drop(&mut self) {
        self.ring.close();
        for worker in self.workers.drain(..) {
            // A worker catches what its source throws, so there is nothing to learn here.
            let _ = worker.join();
        }
    }
}

/// The batches of one epoch, gathered ahead; from [`Prefetch::epoch`]. Dropping it early calls the workers off.
#[derive(Debug)]
pub struct PrefetchEpoch<'a, T: Feature = f32> {
    ring: &'a Ring<T>,
    in_hand: &'a mut Option<Buffers<T>>,
    plan: Plan,
    n_batches: usize,
    n_taken: usize,
}

impl<T: Feature> PrefetchEpoch<'_, T> {
    /// The next batch, lent until the one after it is asked for; `None` at the end. Waits if it is not ready.
    ///
    /// # Errors
    /// [`Error::Source`] or [`Error::WorkerPanicked`], when its turn has come, if this batch could not be gathered. The epoch is then over.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_, T>>, Error> {
        if self.n_taken == self.n_batches {
            return Ok(None);
        }
        match self.ring.take(self.in_hand.take()) {
            Ok(buffers) => {
                self.n_taken += 1;
                Ok(Some(self.in_hand.insert(buffers).batch()))
            }
            Err(error) => {
                self.n_batches = self.n_taken;
                self.ring.start(None, None);
                Err(error)
            }
        }
    }

    /// How many batches are still to come: exact, and the same for every rank.
    pub fn len(&self) -> usize {
        self.n_batches - self.n_taken
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many rows of the epoch all ranks have consumed with the batches *taken* so far, however many are ready.
    pub fn position(&self) -> usize {
        self.plan.position_after(self.n_taken)
    }
}

impl<T: Feature> Drop for PrefetchEpoch<'_, T> {
    fn drop(&mut self) {
        self.ring.start(None, self.in_hand.take());
    }
}
