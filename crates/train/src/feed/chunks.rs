//! Chunks of rows in an epoch's order, gathered in advance by threads: a loader whose batches are chunks, for any source.

use std::fmt;
use std::ops::ControlFlow;

use brisk_loader::{Ahead, Batching, Loader, Prefetch, RowSource, with_causes};

use super::table::Chunk;
use crate::error::Error;
use crate::rows::inspect::{CheckedValues, check_unchanged};
use crate::rows::{FeedRows, RowLayout, Sealed};

/// A loader of chunks, with its type erased.
pub(crate) trait Chunks: fmt::Debug {
    /// Starts the threads, for as long as `f` runs.
    fn open(&self, f: &mut dyn FnMut(&mut dyn OpenChunks) -> Result<(), Error>) -> Result<(), Error>;
}

/// The same while its threads run.
pub(crate) trait OpenChunks {
    /// Calls `f` with the number of each chunk of the epoch, from chunk `from` on, and the chunk, the last filled up with zeros.
    fn each_chunk(&mut self, epoch: u32, from: usize, f: EachChunk<'_>) -> Result<(), Error>;
}

pub(crate) type EachChunk<'f> = &'f mut dyn FnMut(usize, Chunk<'_>) -> Result<ControlFlow<()>, Error>;

pub(crate) struct SourceChunks<'a, S: RowSource> {
    set: &'static str,
    loader: Loader<&'a S>,
    /// Of the source, when the feed was set up.
    n_rows: usize,
    layout: RowLayout,
    chunk_batches: usize,
    ahead: Ahead,
}

impl<'a, S: FeedRows> SourceChunks<'a, S> {
    /// Chunks of `chunk_batches` batches, or of a rank's parts of them; `batching` is in units of chunks.
    pub(crate) fn new(
        set: &'static str,
        source: &'a S,
        layout: RowLayout,
        batching: Batching,
        chunk_batches: usize,
        ahead: Ahead,
    ) -> Result<Self, Error> {
        let loader = Loader::new(source, batching).map_err(|error| Error::Rows { set, reason: error.to_string() })?;
        Ok(Self { set, n_rows: source.n_rows(), loader, layout, chunk_batches, ahead })
    }
}

impl<S: RowSource> fmt::Debug for SourceChunks<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceChunks").field("set", &self.set).field("ahead", &self.ahead).finish_non_exhaustive()
    }
}

impl<S: FeedRows> Chunks for SourceChunks<'_, S> {
    fn open(&self, f: &mut dyn FnMut(&mut dyn OpenChunks) -> Result<(), Error>) -> Result<(), Error> {
        std::thread::scope(|scope| {
            let prefetch = self.loader.prefetch(scope, self.ahead);
            f(&mut Running { chunks: self, prefetch })
        })
    }
}

struct Running<'scope, 'a, S: RowSource> {
    chunks: &'scope SourceChunks<'a, S>,
    prefetch: Prefetch<'scope, S::Feature>,
}

impl<S: FeedRows> OpenChunks for Running<'_, '_, S> {
    fn each_chunk(&mut self, epoch: u32, from: usize, f: EachChunk<'_>) -> Result<(), Error> {
        let SourceChunks { set, n_rows, loader, layout, chunk_batches, .. } = self.chunks;
        let source = *loader.source();
        check_unchanged(set, source, *n_rows)?;
        let failed = |error| stream_error(set, epoch, *chunk_batches, &error);
        let mut chunks = self.prefetch.epoch_from(epoch, from * loader.batching().size).map_err(failed)?;
        let mut index = from;
        loop {
            let Some(batch) = chunks.next_batch().map_err(failed)? else { return Ok(()) };
            let values = CheckedValues { features: batch.features, labels: batch.labels, weights: batch.weights };
            values.check(set, source, *layout, |row| batch.ids[row] as usize)?;
            let features = S::Feature::features(batch.features);
            let (labels, categories, weights, ids) = (batch.labels, batch.categories, batch.weights, batch.ids);
            if f(index, Chunk { features, labels, categories, weights, batch_weights: &[], ids })?.is_break() {
                return Ok(());
            }
            index += 1;
        }
    }
}

/// Converts a loader's error, so that it names batches of the run rather than chunks.
fn stream_error(set: &'static str, epoch: u32, chunk_batches: usize, error: &brisk_loader::Error) -> Error {
    use brisk_loader::Error as LoaderError;
    let (chunk, reason) = match error {
        LoaderError::Source { batch, cause } => (*batch, with_causes(&**cause)),
        LoaderError::Panicked { batch, message, .. } => (*batch, format!("the source panicked: {message}")),
        other => return Error::Rows { set, reason: other.to_string() },
    };
    let first_batch = chunk * chunk_batches + 1;
    Error::Stream { set, epoch: epoch as usize + 1, first_batch, last_batch: first_batch + chunk_batches - 1, reason }
}
