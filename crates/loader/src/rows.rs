use std::ops::Deref;
use std::sync::Arc;

use crate::cache_lines::{PREFETCHED_ROWS, prefetch};
use crate::error::Error;
use crate::gather::{Layout, RowBuffers, RowSelection};
use crate::source::{Encoding, Feature, Names, RowSource};

/// Rows in memory: `features` `[n_rows, n_cols]` and `labels` `[n_rows]` or `[n_rows, n_labels]`, row-major, and optionally
/// categories and weights.
///
/// `F` is any type that can be borrowed as a slice of features, of any [`Feature`] type: `Vec<f32>` for owned rows, `&[u8]` for
/// rows in a borrowed buffer (a mapped file, an array of another crate), `Arc<[f32]>` for shared rows. The same applies to `L`
/// for labels. Large tables that are shuffled benefit from [`into_huge_pages`](Self::into_huge_pages).
///
/// # Examples
/// ```
/// use brisk_loader::{RowBuffers, RowSource, Rows, RowSelection};
///
/// let rows = Rows::new(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![0.0, 1.0, 0.0], 2)?;
/// let (mut features, mut labels) = ([0.0; 4], [0.0; 2]);
/// rows.gather(RowSelection::Numbers(&[2, 1]), RowBuffers::new(&mut features, &mut labels))?;
/// assert_eq!((features, labels), ([5.0, 6.0, 3.0, 4.0], [0.0, 1.0]));
/// # Ok::<(), brisk_loader::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rows<F = Vec<f32>, L = Vec<f32>> {
    features: F,
    labels: L,
    n_rows: usize,
    n_cols: usize,
    n_labels: usize,
    categories: Arc<[u32]>,
    n_categories: usize,
    weights: Option<Arc<[f32]>>,
    encoding: Encoding,
}

impl<T, F: Deref<Target = [T]>, L: Deref<Target = [f32]>> Rows<F, L> {
    /// Creates rows from the two arrays without copying them.
    ///
    /// # Errors
    /// [`Error::Length`] unless `features` holds `n_cols` values for each label; [`Error::TooManyRows`] beyond 2³² − 1 rows.
    pub fn new(features: F, labels: L, n_cols: usize) -> Result<Self, Error> {
        Self::checked("Rows::new", features, labels, n_cols, 1)
    }

    /// Like [`new`](Self::new), with `n_labels` labels per row, at least 1: `labels` is `[n_rows, n_labels]`, row-major.
    ///
    /// # Errors
    /// As for [`new`](Self::new); [`Error::WholeRows`] if the number of labels is not a multiple of `n_labels`.
    ///
    /// # Examples
    /// Two rows with three labels each:
    /// ```
    /// use brisk_loader::{RowSource, Rows};
    ///
    /// let rows = Rows::with_label_columns(vec![0.5, 1.5], vec![1.0, 0.0, 1.0, 0.0, 0.0, 1.0], 1, 3)?;
    /// assert_eq!((rows.n_rows(), rows.n_labels()), (2, 3));
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn with_label_columns(features: F, labels: L, n_cols: usize, n_labels: usize) -> Result<Self, Error> {
        Self::checked("Rows::with_label_columns", features, labels, n_cols, n_labels)
    }

    fn checked(op: &'static str, features: F, labels: L, n_cols: usize, n_labels: usize) -> Result<Self, Error> {
        if n_labels == 0 || !labels.len().is_multiple_of(n_labels) {
            return Err(Error::WholeRows { op, arg: "labels", width: n_labels, found: labels.len() });
        }
        let n_rows = labels.len() / n_labels;
        check_length(op, "features", n_rows.saturating_mul(n_cols), features.len())?;
        check_n_rows(n_rows)?;
        let (categories, n_categories, weights, encoding) = (Arc::new([]) as Arc<[u32]>, 0, None, Encoding::default());
        Ok(Self { features, labels, n_rows, n_cols, n_labels, categories, n_categories, weights, encoding })
    }

    /// Adds `n_categories` categories per row: `[n_rows, n_categories]`, row-major. An `Arc` is shared, not copied.
    ///
    /// # Errors
    /// [`Error::Length`] if the number of categories does not match the number of rows.
    ///
    /// # Examples
    /// ```
    /// use brisk_loader::{Batching, Loader, Rows};
    ///
    /// let rows = Rows::new(vec![0.5, 1.5], vec![0.0, 1.0], 1)?;
    /// let rows = rows.with_categories(vec![7, 3, 8, 4], 2)?.with_weights(vec![1.0, 2.0])?;
    /// let mut loader = Loader::new(&rows, Batching::of(3))?;
    /// let mut batches = loader.epoch(0);
    /// let batch = batches.next_batch()?.expect("a batch of two rows and padding");
    /// assert_eq!((batch.categories, batch.weights), (&[7, 3, 8, 4, 0, 0][..], &[1.0, 2.0, 0.0][..]));
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn with_categories(self, categories: impl Into<Arc<[u32]>>, n_categories: usize) -> Result<Self, Error> {
        let categories = categories.into();
        let expected = self.n_rows.saturating_mul(n_categories);
        check_length("Rows::with_categories", "categories", expected, categories.len())?;
        Ok(Self { categories, n_categories, ..self })
    }

    /// Adds a weight per row: `[n_rows]`. An `Arc` is shared, not copied.
    ///
    /// # Errors
    /// [`Error::Length`] if the number of weights does not match the number of rows; [`Error::RowWeight`] for a weight that is
    /// negative or not finite.
    pub fn with_weights(self, weights: impl Into<Arc<[f32]>>) -> Result<Self, Error> {
        let weights = weights.into();
        check_length("Rows::with_weights", "weights", self.n_rows, weights.len())?;
        if let Some(row) = weights.iter().position(|weight| !(0.0..f32::INFINITY).contains(weight)) {
            return Err(Error::RowWeight { row, weight: weights[row] });
        }
        Ok(Self { weights: Some(weights), ..self })
    }

    /// Says how the values were computed: [`Names::encoding`] of these rows.
    #[must_use]
    pub fn with_encoding(self, encoding: Encoding) -> Self {
        Self { encoding, ..self }
    }

    /// All features, `[n_rows, n_cols]`.
    pub fn features(&self) -> &[T] {
        &self.features
    }

    /// All labels, `[n_rows, n_labels]`.
    pub fn labels(&self) -> &[f32] {
        &self.labels
    }

    /// All categories, `[n_rows, n_categories]`; empty if there are none.
    pub fn categories(&self) -> &[u32] {
        &self.categories
    }

    /// All weights, `[n_rows]`, if there are any.
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }
}

impl<T, F: Deref<Target = [T]>> Rows<F> {
    /// Creates rows that have no labels: for a model that learns from its input only, such as an autoencoder, and for rows to
    /// predict on.
    ///
    /// # Errors
    /// [`Error::WholeRows`] unless `features` are whole rows of `n_cols`, at least 1; [`Error::TooManyRows`] beyond 2³² − 1 rows.
    ///
    /// # Examples
    /// ```
    /// use brisk_loader::{RowSource, Rows};
    ///
    /// let rows = Rows::without_labels(vec![0.5, 1.5, 2.5, 3.5, 4.5, 5.5], 2)?;
    /// assert_eq!((rows.n_rows(), rows.n_labels()), (3, 0));
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn without_labels(features: F, n_cols: usize) -> Result<Self, Error> {
        if !features.len().is_multiple_of(n_cols) {
            let op = "Rows::without_labels";
            return Err(Error::WholeRows { op, arg: "features", width: n_cols, found: features.len() });
        }
        let n_rows = features.len() / n_cols.max(1);
        check_n_rows(n_rows)?;
        Ok(Self {
            features,
            labels: Vec::new(),
            n_rows,
            n_cols,
            n_labels: 0,
            categories: Arc::new([]),
            n_categories: 0,
            weights: None,
            encoding: Encoding::default(),
        })
    }
}

impl<F, L> Rows<F, L> {
    /// Moves the rows to other memory.
    pub(crate) fn try_map_storage<G, M, E>(
        self,
        features: impl FnOnce(F) -> Result<G, E>,
        labels: impl FnOnce(L) -> Result<M, E>,
    ) -> Result<Rows<G, M>, E> {
        let Self { features: f, labels: l, n_rows, n_cols, n_labels, categories, n_categories, weights, encoding } = self;
        let (features, labels) = (features(f)?, labels(l)?);
        Ok(Rows { features, labels, n_rows, n_cols, n_labels, categories, n_categories, weights, encoding })
    }
}

impl<T, F, L> RowSource for Rows<F, L>
where
    T: Feature,
    F: Deref<Target = [T]> + Sync,
    L: Deref<Target = [f32]> + Sync,
{
    type Feature = T;
    type Error = Error;

    fn layout(&self) -> Layout {
        let Self { n_rows, n_cols, n_labels, n_categories, .. } = *self;
        Layout { n_labels, n_categories, has_weights: self.weights.is_some(), ..Layout::new(n_rows, n_cols) }
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, T>) -> Result<(), Error> {
        into.check(&rows, &self.layout())?;
        if let Some(labels) = into.labels {
            gather_checked(&self.labels, self.n_labels, &rows, labels);
        }
        if let Some(features) = into.features {
            gather_checked(&self.features, self.n_cols, &rows, features);
        }
        if let Some(categories) = into.categories {
            gather_checked(&self.categories, self.n_categories, &rows, categories);
        }
        if let (Some(stored), Some(weights)) = (&self.weights, into.weights) {
            gather_checked(stored, 1, &rows, weights);
        }
        Ok(())
    }

    fn names(&self) -> Names<'_> {
        Names { encoding: self.encoding, ..Names::default() }
    }
}

/// Gathers rows of `width` values, after the checks.
fn gather_checked<T: Copy>(from: &[T], width: usize, rows: &RowSelection<'_>, to: &mut [T]) {
    let rows = match rows {
        RowSelection::Range(rows) if rows.is_empty() => return,
        RowSelection::Range(rows) => return to.copy_from_slice(&from[rows.start * width..rows.end * width]),
        RowSelection::Numbers(rows) => rows,
    };
    match width {
        0 => {}
        _ => {
            let of_row = |&row: &u32| &from[row as usize * width..][..width];
            for (rows, to) in rows.chunks(PREFETCHED_ROWS).zip(to.chunks_mut(PREFETCHED_ROWS * width)) {
                rows.iter().for_each(|row| prefetch(of_row(row)));
                match width {
                    1 => rows.iter().zip(to).for_each(|(&row, to)| *to = from[row as usize]),
                    _ => rows.iter().zip(to.chunks_exact_mut(width)).for_each(|(row, to)| to.copy_from_slice(of_row(row))),
                }
            }
        }
    }
}

fn check_n_rows(n_rows: usize) -> Result<(), Error> {
    if n_rows > u32::MAX as usize { Err(Error::TooManyRows { n_rows }) } else { Ok(()) }
}

fn check_length(op: &'static str, arg: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Length { op, arg, expected, found }) }
}
