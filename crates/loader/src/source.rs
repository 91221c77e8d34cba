use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// The number of row numbers that are computed at a time on the stack, if a source gathers by number and a range is requested.
pub(crate) const BLOCK: usize = 256;

/// The type of a feature after gathering: usually `f32`, `u8` for images. All plain types implement it automatically.
///
/// Padding is filled with the [`Default`] value.
pub trait Feature: Copy + Default + PartialEq + Debug + Send + Sync + 'static {}

impl<T: Copy + Default + PartialEq + Debug + Send + Sync + 'static> Feature for T {}

/// Rows that can be gathered into a caller's buffers, in any order: the only interface between this crate and data.
///
/// A row is `n_cols` features and one `f32` label, several, or none; a source may also have categories and weights. How they are stored is up to
/// the source. Gathering takes `&self` and several threads gather at once, so a source has no cursor. There are at most 2³² − 1 rows, so
/// that a row number is a `u32` and `u32::MAX` is never a valid one.
///
/// Three methods are required, two of which return sizes. The trait is dyn-compatible with its types specified
/// (`&dyn RowSource<Feature = f32, Error = E>`), and `&S`, `Box<S>` and `Arc<S>` are sources if `S` is. The tests of an implementation
/// should call [`row_source_conformance`](crate::row_source_conformance).
///
/// # Examples
/// Rows that are computed, never stored:
/// ```
/// use brisk_loader::{Error, RowSource};
///
/// struct Squares;
///
/// impl RowSource for Squares {
///     type Feature = f32;
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
    /// The type of a feature after gathering.
    type Feature: Feature;

    /// The error of a failed gather.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The number of rows; the same at every call.
    fn n_rows(&self) -> usize;

    /// The number of features per row; the same at every call.
    fn n_cols(&self) -> usize;

    /// The number of labels per row; the same at every call. The default is 1; 0 for rows without labels.
    fn n_labels(&self) -> usize {
        1
    }

    /// Copies `rows`, in the given order and including repeats, into `features` and `labels`.
    ///
    /// # Shapes
    /// `features`: `[rows.len(), n_cols]`, `labels`: `[rows.len(), n_labels]`, both row-major. `rows` may be empty.
    /// # Errors
    /// A row beyond `n_rows`, or a buffer of the wrong length, is an `Err` and never a panic; so is a failure of the source itself
    /// (such as a failed read). The contents of the buffers are then unspecified. [`check_gather`](crate::check_gather) makes both checks.
    fn gather(&self, rows: &[u32], features: &mut [Self::Feature], labels: &mut [f32]) -> Result<(), Self::Error>;

    /// Like [`gather`](Self::gather) for a range of rows. If rows are stored consecutively, this is a memcpy; the default calls
    /// `gather`.
    ///
    /// # Errors
    /// As for `gather`. A range that ends before it starts is empty.
    fn gather_range(&self, rows: Range<usize>, features: &mut [Self::Feature], labels: &mut [f32]) -> Result<(), Self::Error> {
        gather_range_by_number(self, rows, features, labels)
    }

    /// Copies the labels of `rows` without their features. The default also gathers the features and drops them; a source that stores labels
    /// separately should implement this.
    ///
    /// # Shapes
    /// `labels`: `[rows.len(), n_labels]`, row-major.
    /// # Errors
    /// As for [`gather`](Self::gather).
    fn gather_labels(&self, rows: &[u32], labels: &mut [f32]) -> Result<(), Self::Error> {
        gather_labels_with_features(self, rows, labels)
    }

    /// The number of categories per row: codes that are looked up in an embedding rather than multiplied. The same at every call; the default
    /// is 0.
    fn n_categories(&self) -> usize {
        0
    }

    /// Copies the categories of `rows` into `categories`. A source with categories must implement this.
    ///
    /// # Shapes
    /// `categories`: `[rows.len(), n_categories]`, row-major.
    /// # Errors
    /// As for [`gather`](Self::gather).
    fn gather_categories(&self, _rows: &[u32], _categories: &mut [u32]) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether rows have weights; the same at every call. If not, each row has weight 1.
    fn has_weights(&self) -> bool {
        false
    }

    /// Copies the weights of `rows` into `weights`. A source with weights must implement this.
    ///
    /// # Shapes
    /// `weights`: `[rows.len()]`.
    /// # Errors
    /// As for [`gather`](Self::gather).
    fn gather_weights(&self, _rows: &[u32], weights: &mut [f32]) -> Result<(), Self::Error> {
        weights.fill(1.0);
        Ok(())
    }

    /// The mean and the standard deviation of each column over all rows, if the source already has them, for example from a file: training then uses them to
    /// standardise columns instead of computing its own. `None` if they are unknown, or if a value is missing or not finite. The default returns `None`.
    ///
    /// # Shapes
    /// `[n_cols]`.
    fn column_moments(&self) -> Option<Vec<ColumnMoments>> {
        None
    }

    /// A number that identifies these rows, such as a checksum of the file. A saved run refuses to resume with rows of another fingerprint.
    /// `None` if it is unknown.
    fn fingerprint(&self) -> Option<u64> {
        None
    }

    /// Checks that the rows have not been damaged, if the source has checksums and all bytes in memory: training calls this once before its first step, so
    /// it should cost much less than gathering all rows. The default does nothing.
    ///
    /// # Errors
    /// The error of the source, which names the damage.
    fn check_intact(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The number of row `row` where the rows are stored, for messages, since users look up the row in a file rather than in a split.
    /// Sources that select or reorder rows of another one, such as [`Subset`](crate::Subset), translate it; others return `row`. A row
    /// beyond `n_rows` is returned unchanged.
    fn source_row(&self, row: u32) -> u32 {
        row
    }

    /// The name of a column of the features, for messages; `None` if it is unknown, and for a column beyond `n_cols`.
    fn column_name(&self, _column: usize) -> Option<&str> {
        None
    }

    /// The name of a label, from 0 to `n_labels - 1`, for messages; `None` if it is unknown.
    fn label_name(&self, _label: usize) -> Option<&str> {
        None
    }

    /// A hint: the number of rows, gathered by number, that are enough work for a thread. Small if rows are decoded, large if they are copied.
    fn grain(&self) -> usize {
        BLOCK
    }

    /// A hint that `rows` will be gathered soon. Implementations may do nothing, and must ignore rows beyond `n_rows`.
    fn prefetch(&self, _rows: &[u32]) {}

    /// A hint that many of `rows` will be gathered soon, in any order, so that a source can start reading a block of a file. Implementations may
    /// do nothing, and must ignore rows beyond `n_rows`.
    fn prefetch_range(&self, _rows: Range<usize>) {}

    /// A hint that none of `rows` will be needed again soon, so that a source can release a block. Implementations may do nothing, and must
    /// ignore rows beyond `n_rows`. Released rows can still be gathered.
    fn release_range(&self, _rows: Range<usize>) {}
}

/// The mean and standard deviation of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnMoments {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, `sqrt(Σ (x - mean)² / n_rows)`, as in scikit-learn's `StandardScaler`.
    pub std: f64,
}

/// `gather_range` for sources that only gather by number.
fn gather_range_by_number<S: RowSource + ?Sized>(
    source: &S,
    rows: Range<usize>,
    features: &mut [S::Feature],
    labels: &mut [f32],
) -> Result<(), S::Error> {
    let (n_cols, n_labels) = (source.n_cols(), source.n_labels());
    if labels.len() != rows.len().saturating_mul(n_labels) || features.len() != rows.len().saturating_mul(n_cols) {
        // Only the source can create its error: non-empty buffers are wrong for no rows, and empty buffers are wrong for one row.
        let first = [row_number(rows.start)];
        let n = usize::from(labels.is_empty() && features.is_empty());
        return source.gather(&first[..n], features, labels);
    }
    let mut numbers = [0_u32; BLOCK];
    for first in (0..rows.len()).step_by(BLOCK) {
        let n = BLOCK.min(rows.len() - first);
        let numbers = &mut numbers[..n];
        for (i, number) in numbers.iter_mut().enumerate() {
            *number = row_number(rows.start.saturating_add(first + i));
        }
        source.gather(numbers, &mut features[first * n_cols..][..n * n_cols], &mut labels[first * n_labels..][..n * n_labels])?;
    }
    Ok(())
}

/// `gather_labels` for sources that only gather features and labels together.
fn gather_labels_with_features<S: RowSource + ?Sized>(source: &S, rows: &[u32], labels: &mut [f32]) -> Result<(), S::Error> {
    let (n_cols, n_labels) = (source.n_cols(), source.n_labels());
    if labels.len() != rows.len().saturating_mul(n_labels) {
        // Only the source can create its error: a non-empty buffer is wrong for no rows, and an empty one is wrong for one row.
        let n = usize::from(labels.is_empty()).min(rows.len());
        return source.gather(&rows[..n], &mut vec![S::Feature::default(); n * n_cols], labels);
    }
    let mut features = vec![S::Feature::default(); BLOCK.min(rows.len()) * n_cols];
    let follows = |pair: &[u32]| pair[0].checked_add(1) == Some(pair[1]);
    for (rows, labels) in rows.chunks(BLOCK).zip(labels.chunks_mut(BLOCK * n_labels.max(1))) {
        let features = &mut features[..rows.len() * n_cols];
        match rows {
            // Consecutive rows are gathered faster as a range.
            [first, .., last] if rows.windows(2).all(follows) => {
                source.gather_range(*first as usize..*last as usize + 1, features, labels)?;
            }
            _ => source.gather(rows, features, labels)?,
        }
    }
    Ok(())
}

/// Converts a row to a number for `gather`; if it does not fit, to `u32::MAX`, which is never a valid row.
fn row_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

/// Implements the trait for pointers to a source.
macro_rules! forward {
    ($S:ident, $pointer:ty $(, $bound:ident)?) => {
        impl<$S: RowSource $(+ $bound)? + ?Sized> RowSource for $pointer {
            type Feature = S::Feature;
            type Error = S::Error;

            fn n_rows(&self) -> usize {
                S::n_rows(self)
            }
            fn n_cols(&self) -> usize {
                S::n_cols(self)
            }
            fn n_labels(&self) -> usize {
                S::n_labels(self)
            }
            fn gather(&self, rows: &[u32], features: &mut [S::Feature], labels: &mut [f32]) -> Result<(), S::Error> {
                S::gather(self, rows, features, labels)
            }
            fn gather_labels(&self, rows: &[u32], labels: &mut [f32]) -> Result<(), S::Error> {
                S::gather_labels(self, rows, labels)
            }
            fn gather_range(&self, rows: Range<usize>, features: &mut [S::Feature], labels: &mut [f32]) -> Result<(), S::Error> {
                S::gather_range(self, rows, features, labels)
            }
            fn n_categories(&self) -> usize {
                S::n_categories(self)
            }
            fn gather_categories(&self, rows: &[u32], categories: &mut [u32]) -> Result<(), S::Error> {
                S::gather_categories(self, rows, categories)
            }
            fn has_weights(&self) -> bool {
                S::has_weights(self)
            }
            fn gather_weights(&self, rows: &[u32], weights: &mut [f32]) -> Result<(), S::Error> {
                S::gather_weights(self, rows, weights)
            }
            fn column_moments(&self) -> Option<Vec<ColumnMoments>> {
                S::column_moments(self)
            }
            fn fingerprint(&self) -> Option<u64> {
                S::fingerprint(self)
            }
            fn check_intact(&self) -> Result<(), S::Error> {
                S::check_intact(self)
            }
            fn source_row(&self, row: u32) -> u32 {
                S::source_row(self, row)
            }
            fn column_name(&self, column: usize) -> Option<&str> {
                S::column_name(self, column)
            }
            fn label_name(&self, label: usize) -> Option<&str> {
                S::label_name(self, label)
            }
            fn grain(&self) -> usize {
                S::grain(self)
            }
            fn prefetch(&self, rows: &[u32]) {
                S::prefetch(self, rows);
            }
            fn prefetch_range(&self, rows: Range<usize>) {
                S::prefetch_range(self, rows);
            }
            fn release_range(&self, rows: Range<usize>) {
                S::release_range(self, rows);
            }
        }
    };
}

forward!(S, &S);
forward!(S, Box<S>);
forward!(S, Arc<S>, Send);
