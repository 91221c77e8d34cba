//! How a batch is made: gathered without changes, or gathered and transformed.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::batch::Batch;
use crate::buffers::{Buffers, Fill};
use crate::error::{BoxedError, Error, panic_message};
use crate::gather::Layout;
use crate::key::Key;
use crate::plan::Plan;
use crate::source::{Feature, RowSource};
use crate::timer::{Stage, Stages};

/// What a [`Loader`](crate::Loader) does with the rows that it gathers. Sealed: the implementors are [`AsGathered`] and the types
/// that [`Loader::map`](crate::Loader::map) and [`Loader::map_rows`](crate::Loader::map_rows) create.
pub trait Make<S: RowSource>: Sync {
    /// The type of the features in the resulting batches.
    type Out: Feature;

    #[doc(hidden)]
    type Scratch: Send + Sync + fmt::Debug;

    #[doc(hidden)]
    fn n_cols(&self, n_cols: usize) -> usize;

    #[doc(hidden)]
    fn scratch(&self, size: usize, layout: Layout) -> Self::Scratch;

    /// Makes the batch that `job` describes.
    #[doc(hidden)]
    fn make(&self, source: &S, job: &Job<'_>, scratch: &mut Self::Scratch, out: &mut Buffers<Self::Out>) -> Result<(), Error>;
}

/// One batch to make, and the threads that fill it.
#[derive(Debug)]
pub struct Job<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) nth: usize,
    pub(crate) fill: Fill,
    pub(crate) stages: Stages<'a>,
}

/// Batches without a transform: the default of a [`Loader`](crate::Loader).
#[derive(Clone, Copy, Debug, Default)]
pub struct AsGathered;

impl<S: RowSource> Make<S> for AsGathered {
    type Out = S::Feature;
    type Scratch = ();

    fn n_cols(&self, n_cols: usize) -> usize {
        n_cols
    }

    fn scratch(&self, _size: usize, _layout: Layout) {}

    fn make(&self, source: &S, job: &Job<'_>, (): &mut (), out: &mut Buffers<S::Feature>) -> Result<(), Error> {
        job.stages.run(Stage::Gather, || out.fill(source, job.plan, job.nth, job.fill))
    }
}

/// Batches transformed by a function of the whole batch; created by [`Loader::map`](crate::Loader::map).
pub struct Mapped<F, U, E> {
    pub(crate) n_cols: usize,
    pub(crate) f: F,
    pub(crate) types: PhantomData<fn() -> (U, E)>,
}

impl<S, F, U, E> Make<S> for Mapped<F, U, E>
where
    S: RowSource,
    F: Fn(&Batch<'_, S::Feature>, Key, &mut [U]) -> Result<(), E> + Sync,
    U: Feature,
    E: Into<BoxedError>,
{
    type Out = U;
    type Scratch = Buffers<S::Feature>;

    fn n_cols(&self, _n_cols: usize) -> usize {
        self.n_cols
    }

    fn scratch(&self, size: usize, layout: Layout) -> Buffers<S::Feature> {
        Buffers::new(size, layout)
    }

    fn make(&self, source: &S, job: &Job<'_>, gathered: &mut Buffers<S::Feature>, out: &mut Buffers<U>) -> Result<(), Error> {
        job.stages.run(Stage::Gather, || gathered.fill(source, job.plan, job.nth, job.fill))?;
        job.stages.run(Stage::Transform, || {
            let batch = gathered.batch();
            let mapped = (self.f)(&batch, job.plan.key(), out.features_of(batch.ids.len()));
            mapped.map_err(|error| Error::Transform { batch: batch.index, row: None, cause: error.into() })
        })?;
        out.take_all_but_features(gathered);
        Ok(())
    }
}

/// A gathered row; the argument of the function passed to [`Loader::map_rows`](crate::Loader::map_rows).
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Row<'a, T = f32> {
    /// Its number in the source.
    pub id: u32,
    /// `[n_cols]`.
    pub features: &'a [T],
    /// Its label; if it has several, the first.
    pub label: f32,
    /// `[n_labels]`.
    pub labels: &'a [f32],
    /// `[n_categories]`.
    pub categories: &'a [u32],
}

/// Batches transformed row by row; created by [`Loader::map_rows`](crate::Loader::map_rows).
pub struct MappedRows<F, U, E> {
    pub(crate) n_cols: usize,
    pub(crate) f: F,
    pub(crate) types: PhantomData<fn() -> (U, E)>,
}

/// The number of rows that one thread transforms at a time.
const PIECE: usize = 32;

impl<S, F, U, E> Make<S> for MappedRows<F, U, E>
where
    S: RowSource,
    F: Fn(Row<'_, S::Feature>, Key, &mut [U]) -> Result<(), E> + Sync,
    U: Feature,
    E: Into<BoxedError>,
{
    type Out = U;
    type Scratch = Buffers<S::Feature>;

    fn n_cols(&self, _n_cols: usize) -> usize {
        self.n_cols
    }

    fn scratch(&self, size: usize, layout: Layout) -> Buffers<S::Feature> {
        Buffers::new(size, layout)
    }

    fn make(&self, source: &S, job: &Job<'_>, gathered: &mut Buffers<S::Feature>, out: &mut Buffers<U>) -> Result<(), Error> {
        job.stages.run(Stage::Gather, || gathered.fill(source, job.plan, job.nth, job.fill))?;
        job.stages.run(Stage::Transform, || {
            let batch = gathered.batch();
            // Repeated rows are transformed too; padding is not.
            let n_rows = batch.ids.iter().position(|&id| id == u32::MAX).unwrap_or(batch.ids.len());
            let (rows, padding) = out.features_of(batch.ids.len()).split_at_mut(n_rows * self.n_cols);
            padding.fill(U::default());
            self.map_rows(&batch, job, 0..n_rows, rows).map_err(|error| with_source_row(error, source))
        })?;
        out.take_all_but_features(gathered);
        Ok(())
    }
}

impl<F, U, E> MappedRows<F, U, E>
where
    U: Feature,
    E: Into<BoxedError>,
{
    fn map_rows<T>(&self, batch: &Batch<'_, T>, job: &Job<'_>, rows: std::ops::Range<usize>, out: &mut [U]) -> Result<(), Error>
    where
        T: Feature,
        F: Fn(Row<'_, T>, Key, &mut [U]) -> Result<(), E> + Sync,
    {
        if matches!(job.fill, Fill::Pool) && rows.len() >= 2 * PIECE {
            let middle = rows.start + rows.len() / 2;
            let (left, right) = out.split_at_mut((middle - rows.start) * self.n_cols);
            let (left, right) = rayon::join(
                || self.map_rows(batch, job, rows.start..middle, left),
                || self.map_rows(batch, job, middle..rows.end, right),
            );
            return left.and(right);
        }
        let n_cols = batch.features.len() / batch.ids.len().max(1);
        let n_labels = batch.labels.len() / batch.ids.len().max(1);
        let n_categories = batch.categories.len() / batch.ids.len().max(1);
        let key = job.plan.key();
        let id = Cell::new(0);
        let mapped = catch_unwind(AssertUnwindSafe(|| {
            for (i, slot) in rows.enumerate() {
                id.set(batch.ids[slot]);
                let labels = &batch.labels[slot * n_labels..][..n_labels];
                let row = Row {
                    id: batch.ids[slot],
                    features: &batch.features[slot * n_cols..][..n_cols],
                    label: labels.first().copied().unwrap_or(0.0),
                    labels,
                    categories: &batch.categories[slot * n_categories..][..n_categories],
                };
                (self.f)(row, key, &mut out[i * self.n_cols..][..self.n_cols])?;
            }
            Ok(())
        }));
        match mapped {
            Ok(mapped) => {
                mapped.map_err(|error: E| Error::Transform { batch: batch.index, row: Some(id.get()), cause: error.into() })
            }
            Err(thrown) => Err(Error::Panicked { batch: batch.index, row: Some(id.get()), message: panic_message(thrown) }),
        }
    }
}

/// Replaces the row in the error by its number where the rows are stored.
fn with_source_row<S: RowSource>(mut error: Error, source: &S) -> Error {
    if let Error::Transform { row: Some(row), .. } | Error::Panicked { row: Some(row), .. } = &mut error {
        *row = source.source_row(*row);
    }
    error
}

impl<F, U, E> fmt::Debug for Mapped<F, U, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped").field("n_cols", &self.n_cols).finish_non_exhaustive()
    }
}

impl<F, U, E> fmt::Debug for MappedRows<F, U, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedRows").field("n_cols", &self.n_cols).finish_non_exhaustive()
    }
}

/// Makes one batch, and turns a panic of the source or of a transform into an error.
pub(crate) fn make<S: RowSource, M: Make<S>>(
    maker: &M,
    source: &S,
    job: &Job<'_>,
    scratch: &mut M::Scratch,
    out: &mut Buffers<M::Out>,
) -> Result<(), Error> {
    // Unwind-safe, because partly filled buffers are still valid: the next batch overwrites them.
    catch_unwind(AssertUnwindSafe(|| maker.make(source, job, scratch, out))).unwrap_or_else(|thrown| {
        Err(Error::Panicked { batch: job.plan.index(job.nth), row: None, message: panic_message(thrown) })
    })
}
