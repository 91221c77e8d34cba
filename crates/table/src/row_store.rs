use std::ops::Range;
use std::path::Path;

#[cfg(feature = "loader")]
pub(crate) use brisk_loader::{PREFETCHED_ROWS, prefetch};

use crate::dtype::DType;
use crate::error::Error;
use crate::parts::{Part, Parts};
use crate::statistics::ColumnStatistics;

/// The bytes of rows, independent of where they are stored. All three kinds of table implement it, and gathering needs nothing
/// else.
///
/// The trait cannot be named outside of this crate, so no other crate can add kinds of tables.
pub trait RowStore: Sync {
    /// The path for errors.
    fn path(&self) -> &Path;

    /// The parts of rows. For several files, those of the first one, with its own number of rows and its own ranges.
    fn parts(&self) -> &Parts;

    fn n_rows(&self) -> usize;

    /// Whether blocks of rows are read when they are needed, see [`Layout::reads_blocks`](brisk_loader::Layout::reads_blocks).
    fn reads_blocks(&self) -> bool;

    /// The statistics of all rows, if they were stored.
    fn statistics(&self) -> Option<&[ColumnStatistics]> {
        self.parts().metadata.statistics.as_deref()
    }

    /// Calls `take` with the bytes of a part of each row and its index in `rows`, in order. All rows must be within the table,
    /// which must have the part.
    fn each_row(&self, part: Part, rows: &[u32], take: impl FnMut(usize, &[u8])) -> Result<(), Error>;

    /// Like [`each_row`](Self::each_row), for a range of rows. Each call of `take` has several consecutive rows and the index of
    /// the first of them.
    fn each_run(&self, part: Part, rows: Range<usize>, take: impl FnMut(usize, &[u8])) -> Result<(), Error>;

    /// A hint that the rows will be read soon, or `is_later` after those; they must be within the table.
    fn will_need(&self, rows: Range<usize>, is_later: bool);

    /// A hint that the rows will not be read any more; they must be within the table.
    fn done_with(&self, rows: Range<usize>);

    /// A number that identifies these rows; `None` for files without checksums.
    fn fingerprint(&self) -> Option<u64>;

    /// Checks every byte against its checksum; `progress` is called on this thread.
    fn verify(&self, progress: &mut dyn FnMut(Verified)) -> Result<(), Error>;

    /// Checks the bytes against their checksums, if there are any and the bytes are in memory; only once.
    fn check_intact(&self) -> Result<(), Error> {
        Ok(())
    }

    fn rows_out_of_range(&self, rows: Range<usize>) -> Error {
        Error::RowsOutOfRange { path: self.path().to_owned(), start: rows.start, end: rows.end, n_rows: self.n_rows() }
    }

    fn check_range(&self, rows: &Range<usize>) -> Result<(), Error> {
        if rows.start > rows.end || rows.end > self.n_rows() {
            return Err(self.rows_out_of_range(rows.clone()));
        }
        Ok(())
    }

    fn wrong_dtype(&self, tensor: &'static str, stored: DType, asked: DType) -> Error {
        Error::WrongDType { path: self.path().to_owned(), tensor, stored, asked }
    }
}

/// The progress of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The number of bytes that were found to be correct.
    pub n_bytes: u64,
    /// The total number of bytes to check.
    pub of_bytes: u64,
}

/// Without the loader, rows are gathered by nothing that needs it.
#[cfg(not(feature = "loader"))]
pub(crate) const PREFETCHED_ROWS: usize = 1;

#[cfg(not(feature = "loader"))]
pub(crate) fn prefetch<T>(_: &[T]) {}
