use std::hint::black_box;
use std::ops::Range;
use std::path::Path;

use crate::parts::{Part, Parts};
use crate::{ColumnStatistics, DType, Error};

/// Bytes of rows, wherever they are kept; what the three kinds of table have in common, and all that gathering needs.
///
/// Nobody outside of this crate can name it: which kinds of table there are is the crate's to say.
pub trait RowStore: Sync {
    /// What errors name.
    fn path(&self) -> &Path;

    /// What rows are made of. Of several files, that of the first: its number of rows and its ranges are its own.
    fn parts(&self) -> &Parts;

    fn n_rows(&self) -> usize;

    /// Of all rows, if they were stored.
    fn statistics(&self) -> Option<&[ColumnStatistics]> {
        self.parts().metadata.statistics.as_deref()
    }

    /// Hands `take` the bytes of each row's part, with its place in `rows`, in order. The rows lie within the table, which has the part.
    fn each_row(&self, part: Part, rows: &[u32], take: impl FnMut(usize, &[u8])) -> Result<(), Error>;

    /// The same for rows in order, a run at a time, with the place of the run's first row.
    fn each_run(&self, part: Part, rows: Range<usize>, take: impl FnMut(usize, &[u8])) -> Result<(), Error>;

    /// A hint; the rows lie within the table.
    fn will_need(&self, rows: Range<usize>);

    /// A hint; the rows lie within the table.
    fn done_with(&self, rows: Range<usize>);

    /// A number that tells these rows from others; `None` for files without checksums.
    fn fingerprint(&self) -> Option<u64>;

    /// Checks the bytes against their checksums, where there are some and the bytes are in memory; once.
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

/// Rows that are [touched](touch) before the first of them is used: enough to keep the memory busy, few enough to be in the first-level cache then.
pub(crate) const TOUCHED: usize = 64;

/// Reads a byte from the start, the middle and the end of a row's bytes.
///
/// Rows of a shuffled order are cache misses. Used one by one, a few are waited for at a time; touched one after another, with nothing in between,
/// the misses overlap.
pub(crate) fn touch(stored: &[u8]) {
    const CACHE_LINE: usize = 64;
    if let (Some(first), Some(last)) = (stored.first(), stored.last()) {
        black_box(*first);
        if stored.len() > CACHE_LINE / 2 {
            black_box((stored[stored.len() / 2], *last));
        }
    }
}
