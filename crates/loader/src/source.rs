use std::ops::Range;
use std::sync::Arc;

/// How many row numbers are made at a time on the stack, where a source wants numbers and a run was asked for.
pub(crate) const BLOCK: usize = 256;

/// Rows that can be gathered into a caller's buffers, in any order: the only thing this crate asks of data.
///
/// A row is `n_cols` features and one label, all `f32` once gathered; what the source stores is its own affair. Gathering takes `&self`
/// and several threads gather at once, so a source keeps no cursor. There are at most 2³² − 1 rows, so that a row number is a `u32`
/// and `u32::MAX` is never one.
///
/// The trait is dyn-compatible once its error is named (`&dyn RowSource<Error = E>`), and `&S` and `Arc<S>` are sources if `S` is.
/// An implementer calls [`row_source_conformance`](crate::row_source_conformance) from its tests.
///
/// # Examples
/// Rows that are computed, never stored:
/// ```
/// use brisk_loader::{Error, RowSource};
///
/// struct Squares;
///
/// impl RowSource for Squares {
///     type Error = Error;
///     fn n_rows(&self) -> usize {
///         1000
///     }
///     fn n_cols(&self) -> usize {
///         1
///     }
///     fn gather(&self, rows: &[u32], features: &mut [f32], labels: &mut [f32]) -> Result<(), Error> {
///         brisk_loader::check_gather(self, rows, features, labels)?;
///         for ((&row, x), y) in rows.iter().zip(features).zip(labels) {
///             *x = row as f32;
///             *y = *x * *x;
///         }
///         Ok(())
///     }
/// }
/// brisk_loader::row_source_conformance(&Squares);
/// ```
pub trait RowSource: Sync {
    /// Why a gather failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// How many rows there are; the same at every call.
    fn n_rows(&self) -> usize;

    /// How many features a row has; the same at every call.
    fn n_cols(&self) -> usize;

    /// Copies `rows`, in the order given and with repeats, into `features` and `labels`.
    ///
    /// # Shapes
    /// `features`: `[rows.len(), n_cols]`, row-major; `labels`: `[rows.len()]`. No rows at all is fine.
    /// # Errors
    /// A row beyond `n_rows`, or a buffer of another length, is an `Err` and never a panic; so is what the source itself may meet
    /// (a read that failed). The buffers then hold anything. [`check_gather`](crate::check_gather) makes both checks.
    fn gather(&self, rows: &[u32], features: &mut [f32], labels: &mut [f32]) -> Result<(), Self::Error>;

    /// The same for a run of rows in order. Where rows lie one after another this is a memcpy; the default goes through
    /// [`gather`](Self::gather).
    ///
    /// # Errors
    /// As for `gather`. A range that ends before it starts is empty.
    fn gather_range(&self, rows: Range<usize>, features: &mut [f32], labels: &mut [f32]) -> Result<(), Self::Error> {
        gather_range_by_number(self, rows, features, labels)
    }

    /// A hint that `rows` will be gathered soon. Doing nothing is correct; rows beyond `n_rows` are to be ignored.
    fn prefetch(&self, _rows: &[u32]) {}
}

/// `gather_range` for sources that only gather by number.
fn gather_range_by_number<S: RowSource + ?Sized>(
    source: &S,
    rows: Range<usize>,
    features: &mut [f32],
    labels: &mut [f32],
) -> Result<(), S::Error> {
    let n_cols = source.n_cols();
    if labels.len() != rows.len() || features.len() != rows.len() * n_cols {
        // Only the source can make its error. Buffers for some rows are wrong for no row, and buffers for none are wrong for one.
        let first = [row_number(rows.start)];
        let n = usize::from(labels.is_empty() && features.is_empty());
        return source.gather(&first[..n], features, labels);
    }
    let mut numbers = [0_u32; BLOCK];
    for (block, labels) in labels.chunks_mut(BLOCK).enumerate() {
        let first = block * BLOCK;
        let numbers = &mut numbers[..labels.len()];
        for (i, number) in numbers.iter_mut().enumerate() {
            *number = row_number(rows.start.saturating_add(first + i));
        }
        source.gather(numbers, &mut features[first * n_cols..][..labels.len() * n_cols], labels)?;
    }
    Ok(())
}

/// A row as the number that `gather` takes; `u32::MAX`, which is no row of any source, for one that has none.
fn row_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

impl<S: RowSource + ?Sized> RowSource for &S {
    type Error = S::Error;

    fn n_rows(&self) -> usize {
        S::n_rows(self)
    }
    fn n_cols(&self) -> usize {
        S::n_cols(self)
    }
    fn gather(&self, rows: &[u32], features: &mut [f32], labels: &mut [f32]) -> Result<(), S::Error> {
        S::gather(self, rows, features, labels)
    }
    fn gather_range(&self, rows: Range<usize>, features: &mut [f32], labels: &mut [f32]) -> Result<(), S::Error> {
        S::gather_range(self, rows, features, labels)
    }
    fn prefetch(&self, rows: &[u32]) {
        S::prefetch(self, rows);
    }
}

impl<S: RowSource + Send + ?Sized> RowSource for Arc<S> {
    type Error = S::Error;

    fn n_rows(&self) -> usize {
        S::n_rows(self)
    }
    fn n_cols(&self) -> usize {
        S::n_cols(self)
    }
    fn gather(&self, rows: &[u32], features: &mut [f32], labels: &mut [f32]) -> Result<(), S::Error> {
        S::gather(self, rows, features, labels)
    }
    fn gather_range(&self, rows: Range<usize>, features: &mut [f32], labels: &mut [f32]) -> Result<(), S::Error> {
        S::gather_range(self, rows, features, labels)
    }
    fn prefetch(&self, rows: &[u32]) {
        S::prefetch(self, rows);
    }
}
