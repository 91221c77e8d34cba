//! Writing a table from batches, whichever format they come from.

use std::fmt::Display;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::ArrowOptions;
use super::batch::{Converted, Converter, Problem};
use super::columns::Columns;
use crate::destination::Progress;
use crate::error::{Error, SourceError};
use crate::import::{Dest, ImportReport, Like, NobodyWaits, Origin, Outlet, Sink, guarded, in_order, n_threads};

/// The number of feature values that are converted at a time.
const CHUNK_VALUES: usize = 1 << 18;

const MAX_CHUNK_ROWS: usize = 8192;

/// How to read a source whose schema is known.
pub(super) struct Plan<'a> {
    path: &'a Path,
    options: &'a ArrowOptions,
    pub(super) origin: Origin,
    like: Option<Like>,
    pub(super) columns: Columns,
}

/// Rows of a source, or the error in their place.
pub(super) type ReadRows = Result<RecordBatch, SourceError>;

impl<'a> Plan<'a> {
    pub(super) fn new(path: &'a Path, origin: Origin, schema: &Schema, options: &'a ArrowOptions) -> Result<Self, Error> {
        let like = options.columns.like.as_deref().map(Like::with_columns).transpose()?;
        let columns = Columns::find(schema, &options.columns, like.as_ref()).map_err(|reason| reason.at(path))?;
        Ok(Self { path, options, origin, like, columns })
    }

    /// The number of rows that are converted at a time. It depends only on the columns, so the statistics are the same on any
    /// machine.
    pub(super) fn chunk_rows(&self) -> usize {
        (CHUNK_VALUES / self.columns.roles.rules.n_features().max(1)).clamp(1, MAX_CHUNK_ROWS)
    }

    /// Writes the table of the batches that `read` produces from the jobs that `feed` hands out, reading at most `n_waiting`
    /// batches ahead per job. Batches have the fields that [`Columns::fields`] lists.
    pub(super) fn write<J: Send>(
        &self,
        dest: &Dest<'_>,
        n_waiting: usize,
        feed: impl FnOnce(&mut dyn FnMut(J) -> Result<(), NobodyWaits>) + Send,
        read: impl Fn(J, &mut dyn FnMut(ReadRows) -> Result<(), NobodyWaits>) + Sync,
        progress: &mut dyn FnMut(usize),
    ) -> Result<ImportReport, Error> {
        let Self { path, options, origin, like, columns } = self;
        let mut sink = Sink::create(dest, &columns.roles, like.as_ref(), origin.clone())?;
        let converter = Converter::new(columns, options.columns.bad_rows);
        let work = |job: J, outlet: &Outlet<Result<Converted, SourceError>>| {
            read(job, &mut |batch| outlet.put(batch.map(|batch| converter.convert(&batch))));
        };
        let mut before = 0;
        let take = |converted: Result<Converted, SourceError>| {
            let mut converted = converted.map_err(|reason| reason.at(path))?;
            sink.skip(&converted.rejected, |problem| self.error_of(problem, before))?;
            before += converted.n_rows as u64;
            sink.take(&mut converted.rows)?;
            progress(sink.n_rows());
            Ok(())
        };
        in_order(feed, n_threads(options.n_threads), n_waiting, work, take)?;
        sink.finish(path, "columns and no rows")
    }

    /// The error for a row of a batch that follows `before` other rows.
    fn error_of(&self, problem: &Problem, before: u64) -> Error {
        let Problem { row, col, ref found, expected } = *problem;
        let column = format!("column `{}`", self.columns.roles.names[col]);
        SourceError::Value { row: before + row as u64, column, found: found.clone(), expected }.at(self.path)
    }
}

/// Calls a reader on a part of the file; its errors and panics become those of the source.
pub(super) fn sound<T, E: Display>(part: &str, expected: &str, read: impl FnOnce() -> Result<T, E>) -> Result<T, SourceError> {
    guarded(part, read)?.map_err(|error| SourceError::unexpected(part, error.to_string(), expected, &[]))
}

pub(super) fn report<'a>(
    progress: &'a mut dyn FnMut(Progress),
    total_bytes: u64,
    n_read: impl Fn() -> u64 + 'a,
) -> impl FnMut(usize) + 'a {
    move |n_rows| progress(Progress { bytes_read: n_read(), total_bytes, n_rows })
}
