use std::fmt::Debug;
use std::sync::Arc;

use crate::gather::{Layout, RowBuffers, RowSelection};

/// The type of a feature after gathering: usually `f32`, `u8` for images. All plain types implement it automatically.
///
/// Padding is filled with the [`Default`] value.
pub trait Feature: Copy + Default + PartialEq + Debug + Send + Sync + 'static {}

impl<T: Copy + Default + PartialEq + Debug + Send + Sync + 'static> Feature for T {}

/// Rows that can be gathered into a caller's buffers, in any order: the only interface between this crate and data.
///
/// A row is `n_cols` features and one `f32` label, several, or none; a source may also have categories and weights. How they are
/// stored is up to the source. Gathering takes `&self` and several threads gather at once, so a source has no cursor. There are
/// at most 2³² − 1 rows, so that a row number is a `u32` and `u32::MAX` is never a valid one.
///
/// Two methods are required. The trait is dyn-compatible with its types specified (`&dyn RowSource<Feature = f32, Error = E>`),
/// and `&S`, `Box<S>` and `Arc<S>` are sources if `S` is. The tests of an implementation should call
/// [`row_source_conformance`](crate::row_source_conformance).
///
/// # Examples
/// Rows that are computed, never stored:
/// ```
/// use brisk_loader::{Error, Layout, RowBuffers, RowSource, RowSelection};
///
/// struct Squares;
///
/// impl RowSource for Squares {
///     type Feature = f32;
///     type Error = Error;
///     fn layout(&self) -> Layout {
///         Layout::new(1000, 1)
///     }
///     fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Error> {
///         into.check(&rows, &self.layout())?;
///         into.for_each_row(&rows, &self.layout(), |row, into| {
///             let x = row as f32;
///             into.features.into_iter().for_each(|features| features[0] = x);
///             into.labels.into_iter().for_each(|labels| labels[0] = x * x);
///             Ok(())
///         })
///     }
/// }
/// brisk_loader::row_source_conformance(&Squares);
/// ```
pub trait RowSource: Sync {
    /// The type of a feature after gathering.
    type Feature: Feature;

    /// The error of a failed gather.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The number of rows and what each consists of; the same at every call.
    fn layout(&self) -> Layout;

    /// Copies what the buffers want of `rows`, in the given order and including repeats.
    ///
    /// # Errors
    /// A row beyond the last one, or a buffer of the wrong length, is an `Err` and never a panic; so is a failure of the source
    /// itself (such as a failed read). The contents of the buffers are then unspecified. [`RowBuffers::check`] makes both checks.
    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, Self::Feature>) -> Result<(), Self::Error>;

    /// The names of columns, labels, classes and categories. They are in messages, and the sets of a run whose names differ are
    /// refused, since their values then mean something else. The default has none, which agrees with everything but rows of an
    /// [encoding](Names::encoding).
    fn names(&self) -> Names<'_> {
        Names::default()
    }

    /// The mean and the standard deviation of each column over all rows, if the source already has them, for example from a file:
    /// training then uses them to standardise columns instead of computing its own. `None` if they are unknown, or if a value is
    /// missing or not finite. The default returns `None`.
    ///
    /// # Shapes
    /// `[n_cols]`.
    fn column_moments(&self) -> Option<Vec<ColumnMoments>> {
        None
    }

    /// A number that identifies these rows, such as a checksum of the file. A saved run refuses to resume with rows of another
    /// fingerprint. `None` if it is unknown.
    fn fingerprint(&self) -> Option<u64> {
        None
    }

    /// Checks that the rows have not been damaged, if the source has checksums and all bytes in memory: training calls this once
    /// before its first step, so it should cost much less than gathering all rows. The default does nothing.
    ///
    /// # Errors
    /// The error of the source, which names the damage.
    fn check_intact(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// The number of row `row` where the rows are stored, for messages, since users look up the row in a file rather than in a
    /// split. Sources that select or reorder rows of another one, such as [`Subset`](crate::Subset), translate it; others return
    /// `row`. A row beyond the last one is returned unchanged.
    fn source_row(&self, row: u32) -> u32 {
        row
    }

    /// A hint on how `rows` will be used. Implementations may do nothing, and must ignore rows that do not exist.
    fn hint(&self, _rows: RowSelection<'_>, _advice: Hint) {}

    /// The number of rows.
    fn n_rows(&self) -> usize {
        self.layout().n_rows
    }

    /// The number of features per row.
    fn n_cols(&self) -> usize {
        self.layout().n_cols
    }

    /// The number of labels per row.
    fn n_labels(&self) -> usize {
        self.layout().n_labels
    }

    /// The number of categories per row.
    fn n_categories(&self) -> usize {
        self.layout().n_categories
    }

    /// Whether rows have weights.
    fn has_weights(&self) -> bool {
        self.layout().has_weights
    }
}

/// How rows will be used, as in `madvise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Many of the rows will be gathered soon, in any order, so that a source can start to read a block of a file.
    WillNeed,
    /// The rows will be gathered after those of [`WillNeed`](Self::WillNeed), so that a source with room to spare can start to
    /// read them. They are announced again when they come next, and released like others.
    WillNeedLater,
    /// None of the rows will be needed again soon, so that a source can release a block. They can still be gathered.
    DontNeed,
}

/// The names of columns, labels, classes and categories, and how values were computed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// Of the first columns; there may be fewer names than columns.
    pub columns: &'a [String],
    /// Of the first labels; there may be fewer names than labels.
    pub labels: &'a [String],
    /// Of the classes, by their numbers, if labels are class numbers.
    pub classes: &'a [String],
    /// Of the first categorical columns: the name, and the value of each code from 1 on.
    pub categories: Vec<(&'a str, &'a [String])>,
    /// How the values were computed. Rows of another encoding than those of training are refused.
    pub encoding: Encoding,
}

/// How values were computed from those of a table, such as by the preprocessing that a model learned: a number that identifies
/// the computation, or `None` for values as they were stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Encoding {
    /// Of the features and categories.
    pub inputs: Option<u64>,
    /// Of the labels.
    pub labels: Option<u64>,
}

impl<'a> Names<'a> {
    /// The name of a column, if it has one.
    pub fn column(&self, column: usize) -> Option<&'a str> {
        self.columns.get(column).map(String::as_str)
    }

    /// The name of a label, if it has one.
    pub fn label(&self, label: usize) -> Option<&'a str> {
        self.labels.get(label).map(String::as_str)
    }
}

/// The mean and standard deviation of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnMoments {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, `sqrt(Σ (x - mean)² / n_rows)`, as in scikit-learn's `StandardScaler`.
    pub std: f64,
}

/// Implements the trait for pointers to a source.
macro_rules! forward {
    ($S:ident, $pointer:ty $(, $bound:ident)?) => {
        impl<$S: RowSource $(+ $bound)? + ?Sized> RowSource for $pointer {
            type Feature = S::Feature;
            type Error = S::Error;

            fn layout(&self) -> Layout {
                S::layout(self)
            }
            fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, S::Feature>) -> Result<(), S::Error> {
                S::gather(self, rows, into)
            }
            fn names(&self) -> Names<'_> {
                S::names(self)
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
            fn hint(&self, rows: RowSelection<'_>, hint: Hint) {
                S::hint(self, rows, hint);
            }
        }
    };
}

forward!(S, &S);
forward!(S, Box<S>);
forward!(S, Arc<S>, Send);
