use crate::buffers::{Buffers, Fill, Widths};
use crate::plan::Plan;
use crate::{Batch, Batching, Error, RowSource};

/// Batches from a source, an epoch at a time.
///
/// [`epoch`](Self::epoch) gathers each batch when it is asked for, on the rayon pool the caller is in, and starts no thread;
/// [`prefetch`](Self::prefetch) has worker threads gather ahead. Both give the same batches. All memory is allocated before the first
/// batch.
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
pub struct Loader<S: RowSource> {
    source: S,
    batching: Batching,
    buffers: Buffers<S::Feature>,
}

impl<S: RowSource> Loader<S> {
    /// Takes a source, or a reference to one.
    ///
    /// # Errors
    /// [`Error::BatchSize`] for batches of no rows, or too large for memory's addresses; [`Error::NoColumns`] for a source without
    /// features or categories; [`Error::Shard`] for a rank outside its world; [`Error::TooManyRows`] beyond 2³² − 1.
    pub fn new(source: S, batching: Batching) -> Result<Self, Error> {
        let (n_rows, widths, size) = (source.n_rows(), Widths::of(&source), batching.size);
        if size == 0 || widths.len_bytes::<S::Feature>(size).is_none_or(|n| n > isize::MAX as usize) {
            return Err(Error::BatchSize { size, n_cols: widths.n_cols });
        }
        if widths.n_cols == 0 && widths.n_categories == 0 {
            return Err(Error::NoColumns { n_rows });
        }
        batching.shard.check()?;
        Plan::new(&batching, n_rows, 0, 0)?;
        Ok(Self { buffers: Buffers::new(size, widths), source, batching })
    }

    /// The source, as it was given.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// How rows become batches.
    pub fn batching(&self) -> &Batching {
        &self.batching
    }

    /// How many batches an epoch has: exact, and the same for every rank.
    pub fn len(&self) -> usize {
        self.plan(0, 0).map_or(0, |plan| plan.n_batches())
    }

    /// Whether an epoch has no batch at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The batches of `epoch`.
    pub fn epoch(&mut self, epoch: u32) -> Epoch<'_, S> {
        match self.epoch_from(epoch, 0) {
            Ok(batches) => batches,
            Err(error) => unreachable!("`Loader::new` made this plan already: {error}"),
        }
    }

    /// The batches of `epoch` from a position on: what [`Epoch::position`] said when the run was saved. Costs no more than the start of an
    /// epoch, and the batch size or the number of ranks may have changed since: the rows before `position` are consumed, the others are not.
    ///
    /// # Errors
    /// [`Error::Position`] beyond the last row: the position is that of another source.
    pub fn epoch_from(&mut self, epoch: u32, position: usize) -> Result<Epoch<'_, S>, Error> {
        let plan = self.plan(epoch, position)?;
        let n_batches = plan.n_batches();
        Ok(Epoch { source: &self.source, buffers: &mut self.buffers, plan, n_batches, n_taken: 0 })
    }

    pub(crate) fn plan(&self, epoch: u32, position: usize) -> Result<Plan, Error> {
        Plan::new(&self.batching, self.source.n_rows(), epoch, position)
    }
}

/// The batches of one epoch, gathered as they are asked for; from [`Loader::epoch`].
#[derive(Debug)]
pub struct Epoch<'a, S: RowSource> {
    source: &'a S,
    buffers: &'a mut Buffers<S::Feature>,
    plan: Plan,
    n_batches: usize,
    n_taken: usize,
}

impl<S: RowSource> Epoch<'_, S> {
    /// The next batch, lent until the one after it is asked for; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Source`] if the source failed. The batch is not taken: asking again tries again.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_, S::Feature>>, Error> {
        if self.n_taken == self.n_batches {
            return Ok(None);
        }
        self.buffers.fill(self.source, &self.plan, self.n_taken, Fill::Pool)?;
        self.n_taken += 1;
        Ok(Some(self.buffers.batch()))
    }

    /// How many batches are still to come: exact, and the same for every rank.
    pub fn len(&self) -> usize {
        self.n_batches - self.n_taken
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many rows of the epoch all ranks have consumed with the batches taken so far. With the seed and the epoch, this is all
    /// that [`Loader::epoch_from`] needs.
    pub fn position(&self) -> usize {
        self.plan.position_after(self.n_taken)
    }
}
