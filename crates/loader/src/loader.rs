use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use crate::batch::{Batch, Batching};
use crate::buffers::{Buffers, Fill};
use crate::error::{BoxedError, Error};
use crate::gather::Layout;
use crate::hints::Hints;
use crate::key::Key;
use crate::make::{AsGathered, Job, Make, Mapped, MappedRows, Row, make};
use crate::plan::Plan;
use crate::source::{Feature, RowSource};
use crate::state::{Identity, State};
use crate::timer::{StageTimer, Stages};

/// Iterates over the batches of a source, one epoch at a time.
///
/// [`epoch`](Self::epoch) makes each batch when it is requested, on the caller's rayon pool, and starts no threads;
/// [`run`](Self::run) runs a training loop on a separate pool; [`prefetch`](Self::prefetch) starts worker threads that make
/// batches ahead. All of them give the same batches. All memory is allocated before the first batch.
///
/// [`map`](Self::map) and [`map_rows`](Self::map_rows) transform the gathered rows with a function: for example bytes to floats,
/// or an image to a random crop.
///
/// # Examples
/// ```
/// use brisk_loader::{Batching, Loader, Rows};
///
/// let rows = Rows::new(vec![0.5; 1000 * 3], vec![1.0; 1000], 3)?;
/// let mut loader = Loader::new(&rows, Batching::of(64).shuffled(42))?;
/// let mut seen = 0;
/// for epoch in 0..2 {
///     let mut batches = loader.epoch(epoch);
///     while let Some(batch) = batches.next_batch()? {
///         assert_eq!(batch.features.len(), 64 * 3);
///         seen += batch.rows;
///     }
/// }
/// assert_eq!(seen, 2000);
/// # Ok::<(), brisk_loader::Error>(())
/// ```
#[derive(Debug)]
pub struct Loader<S: RowSource, M: Make<S> = AsGathered> {
    source: S,
    batching: Batching,
    pub(crate) maker: M,
    layout: Layout,
    scratch: M::Scratch,
    buffers: Buffers<M::Out>,
    pub(crate) timer: Option<Arc<StageTimer>>,
}

impl<S: RowSource> Loader<S> {
    /// Creates a loader from a source, or from a reference to one.
    ///
    /// # Errors
    /// [`Error::BatchSize`] for batches of no rows, or for which there is no memory; [`Error::NoColumns`] for a source without
    /// features or categories; [`Error::Shard`] for a rank outside its world, [`Error::Parts`] for a size that is not a multiple
    /// of the batches in it; [`Error::TooManyRows`] beyond 2³² − 1; [`Error::Blocks`], [`Error::Lanes`] and
    /// [`Error::DrawsOfOtherRows`] for an order that does not fit these rows.
    pub fn new(source: S, batching: Batching) -> Result<Self, Error> {
        let layout @ Layout { n_rows, .. } = source.layout();
        if layout.n_cols == 0 && layout.n_categories == 0 {
            return Err(Error::NoColumns { n_rows });
        }
        batching.check()?;
        let buffers = Buffers::checked(&batching, layout)?;
        Plan::new(&batching, n_rows, 0, 0)?;
        Ok(Self { source, batching, maker: AsGathered, layout, scratch: (), buffers, timer: None })
    }

    /// Transforms each batch with `f`, which gets the gathered batch, the key of the epoch's randomness, and the features to
    /// fill: `[batch.ids.len(), n_cols]`, with unspecified initial values. Only the features are replaced.
    ///
    /// Workers call `f` in parallel for different batches; the batches do not depend on which worker made them if `f` draws its
    /// randomness by [`Key`] and ids.
    ///
    /// # Errors
    /// [`Error::BatchSize`] if there is no memory for such batches. If `f` fails, that batch is [`Error::Transform`];
    /// if `f` panics, it is [`Error::Panicked`].
    ///
    /// # Examples
    /// ```
    /// use std::convert::Infallible;
    /// use brisk_loader::{Batching, Loader, Rows};
    ///
    /// let images = Rows::new(vec![51_u8; 100 * 12], vec![0.0; 100], 12)?;
    /// let mut loader = Loader::new(&images, Batching::of(10))?.map(12, |batch, _key, features: &mut [f32]| {
    ///     features.iter_mut().zip(batch.features).for_each(|(to, &byte)| *to = f32::from(byte) / 255.0);
    ///     Ok::<(), Infallible>(())
    /// })?;
    /// let mut batches = loader.epoch(0);
    /// assert_eq!(batches.next_batch()?.expect("the first of ten").features, [0.2; 120]);
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn map<F, U, E>(self, n_cols: usize, f: F) -> Result<Loader<S, Mapped<F, U, E>>, Error>
    where
        F: Fn(&Batch<'_, S::Feature>, Key, &mut [U]) -> Result<(), E> + Sync,
        U: Feature,
        E: Into<BoxedError>,
    {
        self.made_by(Mapped { n_cols, f, types: PhantomData })
    }

    /// Transforms each row with `f`, which gets the gathered row, the key of the epoch's randomness, and the `n_cols` features to
    /// fill. Without workers, the threads of the caller's pool share the rows of a batch. `f` is not called for padding, which
    /// has the default value.
    ///
    /// # Errors
    /// As for [`map`](Self::map); errors also name the row.
    ///
    /// # Examples
    /// A random crop of five pixels from each row of eight, different in each epoch, the same on any number of threads:
    /// ```
    /// use std::convert::Infallible;
    /// use brisk_loader::{Batching, Loader, Rows};
    ///
    /// let lines = Rows::new((0..800).map(|i| i as f32).collect::<Vec<_>>(), vec![0.0; 100], 8)?;
    /// let mut loader = Loader::new(&lines, Batching::of(10).shuffled(1))?.map_rows(5, |row, key, crop: &mut [f32]| {
    ///     let left = (key.random(row.id, 0) % 4) as usize;
    ///     crop.copy_from_slice(&row.features[left..left + 5]);
    ///     Ok::<(), Infallible>(())
    /// })?;
    /// assert_eq!(loader.epoch(0).next_batch()?.expect("the first of ten").features.len(), 50);
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn map_rows<F, U, E>(self, n_cols: usize, f: F) -> Result<Loader<S, MappedRows<F, U, E>>, Error>
    where
        F: Fn(Row<'_, S::Feature>, Key, &mut [U]) -> Result<(), E> + Sync,
        U: Feature,
        E: Into<BoxedError>,
    {
        self.made_by(MappedRows { n_cols, f, types: PhantomData })
    }

    fn made_by<M: Make<S>>(self, maker: M) -> Result<Loader<S, M>, Error> {
        let Self { source, batching, layout, timer, .. } = self;
        let out = Layout { n_cols: maker.n_cols(layout.n_cols), ..layout };
        let buffers = Buffers::checked(&batching, out)?;
        let scratch = maker.scratch(batching.n_slots(), layout);
        Ok(Loader { source, batching, maker, layout, scratch, buffers, timer })
    }
}

impl<S: RowSource, M: Make<S>> Loader<S, M> {
    /// Measures where the time goes with `timer`.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use brisk_loader::{Batching, Loader, Rows, StageTimer};
    ///
    /// let rows = Rows::new(vec![0.5; 1000], vec![1.0; 1000], 1)?;
    /// let timer = Arc::new(StageTimer::default());
    /// let mut loader = Loader::new(&rows, Batching::of(64))?.timed(Arc::clone(&timer));
    /// let mut batches = loader.epoch(0);
    /// while batches.next_batch()?.is_some() {}
    /// assert!(timer.report().to_string().starts_with("bottleneck: gather; batches are waited for (16 batches: gather "));
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn timed(self, timer: Arc<StageTimer>) -> Self {
        Self { timer: Some(timer), ..self }
    }

    /// The source that was passed to [`new`](Self::new).
    pub fn source(&self) -> &S {
        &self.source
    }

    /// How rows become batches.
    pub fn batching(&self) -> &Batching {
        &self.batching
    }

    /// The number of batches per epoch: exact, and the same for every rank.
    pub fn len(&self) -> usize {
        self.plan(0, 0).map_or(0, |plan| plan.n_batches())
    }

    /// Whether an epoch has no batches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The batches of `epoch`.
    pub fn epoch(&mut self, epoch: u32) -> Epoch<'_, S, M> {
        match self.epoch_from(epoch, 0) {
            Ok(batches) => batches,
            Err(error) => unreachable!("`Loader::new` made this plan already: {error}"),
        }
    }

    /// The batches of `epoch` from a saved [`Epoch::position`] on. Costs no more than starting an epoch, and the batch size or
    /// the number of ranks may have changed since: the rows before `position` are consumed, the others are not.
    ///
    /// # Errors
    /// [`Error::Position`] beyond the last row, which means that the position was saved with another source.
    pub fn epoch_from(&mut self, epoch: u32, position: usize) -> Result<Epoch<'_, S, M>, Error> {
        let plan = self.plan(epoch, position)?;
        let n_batches = plan.n_batches();
        Ok(Epoch { loader: self, plan, n_batches, n_taken: 0, hints: Hints::default() })
    }

    /// The batches after a saved state: like [`epoch_from`](Self::epoch_from), after checking that the state belongs to these
    /// rows in this order.
    ///
    /// # Errors
    /// [`Error::State`] with the property that differs.
    pub fn resume(&mut self, state: &State) -> Result<Epoch<'_, S, M>, Error> {
        let position = self.identity().position(state, &self.batching.order)?;
        self.epoch_from(state.epoch, position)
    }

    /// Runs a training loop on a separate pool of `n_threads` threads, which share the work for each batch. The threads end
    /// before this returns. 0 counts as 1.
    ///
    /// On a thread of a pool, [`Epoch::next_batch`] does not allocate. (Called from outside, it goes through rayon's queue, which
    /// allocates 1.5 KB in some sixty batches.)
    ///
    /// # Errors
    /// [`Error::Threads`] if the threads cannot be started; then `run` is not called.
    ///
    /// # Examples
    /// ```
    /// use brisk_loader::{Batching, Error, Loader, Rows};
    ///
    /// let rows = Rows::new(vec![0.5; 1000], vec![1.0; 1000], 1)?;
    /// let n_seen = Loader::new(&rows, Batching::of(64).shuffled(42))?.run(2, |loader| {
    ///     let mut n_seen = 0;
    ///     for epoch in 0..3 {
    ///         let mut batches = loader.epoch(epoch);
    ///         while let Some(batch) = batches.next_batch()? {
    ///             n_seen += batch.rows;
    ///         }
    ///     }
    ///     Ok::<usize, Error>(n_seen)
    /// })??;
    /// assert_eq!(n_seen, 3000);
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn run<R: Send>(&mut self, n_threads: usize, run: impl FnOnce(&mut Self) -> R + Send) -> Result<R, Error>
    where
        Self: Send,
    {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads.max(1)).build();
        let pool = pool.map_err(|error| Error::Threads { n_threads, reason: error.to_string() })?;
        Ok(pool.install(|| run(self)))
    }

    pub(crate) fn plan(&self, epoch: u32, position: usize) -> Result<Plan, Error> {
        Plan::new(&self.batching, self.source.n_rows(), epoch, position)
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity { n_rows: self.source.n_rows(), fingerprint: self.source.fingerprint() }
    }

    /// Memory for one batch.
    pub(crate) fn new_buffers(&self) -> Buffers<M::Out> {
        let out = Layout { n_cols: self.maker.n_cols(self.layout.n_cols), ..self.layout };
        Buffers::new(self.batching.n_slots(), out)
    }

    pub(crate) fn new_scratch(&self) -> M::Scratch {
        self.maker.scratch(self.batching.n_slots(), self.layout)
    }
}

/// The batches of one epoch, made when they are requested; created by [`Loader::epoch`].
#[derive(Debug)]
pub struct Epoch<'a, S: RowSource, M: Make<S> = AsGathered> {
    loader: &'a mut Loader<S, M>,
    plan: Plan,
    n_batches: usize,
    n_taken: usize,
    hints: Hints,
}

impl<S: RowSource, M: Make<S>> Epoch<'_, S, M> {
    /// The next batch, borrowed until the following call; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Source`] if the source failed, [`Error::Transform`] if the function of a [`map`](Loader::map) did,
    /// [`Error::Panicked`] if either panicked. The batch then does not count as taken: calling again tries again.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_, M::Out>>, Error> {
        if self.n_taken == self.n_batches {
            return Ok(None);
        }
        let Loader { source, maker, scratch, buffers, timer, .. } = &mut *self.loader;
        let since = timer.as_ref().map(|_| Instant::now());
        self.hints.advance(&self.plan, self.n_taken, self.n_taken).tell(source, &self.plan);
        let stages = Stages { timer: timer.as_deref(), current: None };
        make(maker, source, &Job { plan: &self.plan, nth: self.n_taken, fill: Fill::Pool, stages }, scratch, buffers)?;
        if let Some((timer, since)) = timer.as_ref().zip(since) {
            timer.add_wait_for_producer(since);
            timer.count_batch();
        }
        self.n_taken += 1;
        Ok(Some(self.loader.buffers.batch()))
    }

    /// The number of remaining batches: exact, and the same for every rank.
    pub fn len(&self) -> usize {
        self.n_batches - self.n_taken
    }

    /// Whether no batches remain.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rows of the epoch that all ranks have consumed with the batches taken so far. Together with the seed and the
    /// epoch, this is all that [`Loader::epoch_from`] needs.
    pub fn position(&self) -> usize {
        self.plan.position_after(self.n_taken)
    }

    /// The state of the epoch, to be saved.
    pub fn state(&self) -> State {
        self.loader.identity().state(&self.plan, &self.loader.batching.order, self.n_taken)
    }
}

impl<S: RowSource, M: Make<S>> Drop for Epoch<'_, S, M> {
    fn drop(&mut self) {
        self.hints.finish().tell(&self.loader.source, &self.plan);
    }
}
