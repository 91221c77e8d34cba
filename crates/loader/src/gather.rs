//! What is gathered, and where it goes: the rows that are selected, the sizes of a row, and the buffers.

use std::ops::Range;

use crate::error::Error;

/// The number of row numbers that are computed at a time on the stack.
pub(crate) const BLOCK: usize = 256;

/// How many rows a source has, and what each row consists of. It is the same at every call.
///
/// # Examples
/// 1,000 rows of 28 features with two labels each:
/// ```
/// use brisk_loader::Layout;
///
/// let layout = Layout { n_labels: 2, ..Layout::new(1000, 28) };
/// assert_eq!((layout.n_rows, layout.n_categories, layout.has_weights), (1000, 0, false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of rows, at most 2³² − 1.
    pub n_rows: usize,
    /// The number of features per row.
    pub n_cols: usize,
    /// The number of labels per row; 0 for rows without labels.
    pub n_labels: usize,
    /// The number of categories per row: codes that are looked up in an embedding rather than multiplied.
    pub n_categories: usize,
    /// Whether rows have weights. If not, each row has weight 1.
    pub has_weights: bool,
    /// The number of rows, gathered by number, that are enough work for a thread: small if rows are decoded, large if they are
    /// copied.
    pub grain: usize,
    /// Whether the source reads blocks of consecutive rows, as from a server or a file larger than memory. Training that streams
    /// such rows then shuffles them [by blocks](crate::Order::by_blocks), since an order over all rows would read a block for
    /// each row.
    pub reads_blocks: bool,
}

impl Layout {
    /// Rows of `n_cols` features with one label, without categories and weights, which are in memory and copied, not decoded.
    pub fn new(n_rows: usize, n_cols: usize) -> Self {
        /// About what a thread copies while another one starts.
        const GRAIN_VALUES: usize = 1 << 15;
        let grain = (GRAIN_VALUES / n_cols.max(1)).clamp(BLOCK, 4 * BLOCK);
        Self { n_rows, n_cols, n_labels: 1, n_categories: 0, has_weights: false, grain, reads_blocks: false }
    }

    /// How many weights a row has: 0 or 1.
    fn n_weights(&self) -> usize {
        usize::from(self.has_weights)
    }

    /// The size of a batch of `size` rows in bytes, with row numbers and weights; `None` if it overflows.
    pub(crate) fn len_bytes<T>(&self, size: usize) -> Option<usize> {
        let features = self.n_cols.checked_mul(size_of::<T>())?;
        let categories = self.n_categories.checked_mul(size_of::<u32>())?;
        let labels = self.n_labels.checked_mul(size_of::<f32>())?;
        let others = size_of::<f32>() + size_of::<u32>();
        let row = features.checked_add(categories)?.checked_add(labels)?.checked_add(others)?;
        row.checked_mul(size)
    }
}

/// Rows of a source, in the order in which they are gathered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowSelection<'a> {
    /// Rows by number, in any order, including repeats.
    Numbers(&'a [u32]),
    /// Consecutive rows. A range that ends before it starts is empty.
    Range(Range<usize>),
}

impl<'a> RowSelection<'a> {
    /// Rows by number; as a range, which is gathered faster, if they are consecutive.
    pub fn of(numbers: &'a [u32]) -> Self {
        let follows = |pair: &[u32]| pair[0].checked_add(1) == Some(pair[1]);
        match numbers {
            [first, .., last] if numbers.windows(2).all(follows) => Self::Range(*first as usize..*last as usize + 1),
            _ => Self::Numbers(numbers),
        }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Range(rows) => rows.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first row, in the order in which they are gathered, that a source of `n_rows` rows does not have.
    pub fn first_beyond(&self, n_rows: usize) -> Option<usize> {
        match self {
            Self::Numbers(numbers) => {
                // Finds the greatest first: a maximum takes one vector instruction for several rows, whereas a search for the
                // first row out of range does not.
                let greatest = numbers.iter().copied().max()?;
                let mut rows = numbers.iter().map(|&row| row as usize);
                if (greatest as usize) < n_rows { None } else { rows.find(|&row| row >= n_rows) }
            }
            Self::Range(rows) => (!rows.is_empty() && rows.end > n_rows).then_some(rows.start.max(n_rows)),
        }
    }

    /// Calls `f` with the row numbers of up to 256 rows at a time and the index of the first of them, in order.
    ///
    /// # Errors
    /// The first error of `f`.
    pub fn for_each_block<E>(&self, mut f: impl FnMut(usize, &[u32]) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Numbers(numbers) => numbers.chunks(BLOCK).enumerate().try_for_each(|(i, numbers)| f(i * BLOCK, numbers)),
            Self::Range(rows) => {
                let mut block = [0; BLOCK];
                for first in (0..rows.len()).step_by(BLOCK) {
                    let numbers = &mut block[..BLOCK.min(rows.len() - first)];
                    for (i, number) in numbers.iter_mut().enumerate() {
                        // A row that does not fit becomes `u32::MAX`, which is never a valid row.
                        *number = u32::try_from(rows.start.saturating_add(first + i)).unwrap_or(u32::MAX);
                    }
                    f(first, numbers)?;
                }
                Ok(())
            }
        }
    }
}

/// The buffers that a gather fills: each is wanted or not.
///
/// # Examples
/// ```
/// use brisk_loader::{RowBuffers, RowSource, Rows, RowSelection};
///
/// let rows = Rows::new(vec![1.0, 2.0, 3.0, 4.0], vec![0.0, 1.0], 2)?.with_categories(vec![7, 8], 1)?;
/// let (mut features, mut labels, mut codes) = ([0.0; 4], [0.0; 2], [0; 2]);
/// let into = RowBuffers { categories: Some(&mut codes), ..RowBuffers::new(&mut features, &mut labels) };
/// rows.gather(RowSelection::Numbers(&[1, 0]), into)?;
/// assert_eq!((features, labels, codes), ([3.0, 4.0, 1.0, 2.0], [1.0, 0.0], [8, 7]));
/// # Ok::<(), brisk_loader::Error>(())
/// ```
#[derive(Debug)]
pub struct RowBuffers<'a, T> {
    /// `[n, n_cols]`, row-major.
    pub features: Option<&'a mut [T]>,
    /// `[n, n_labels]`, row-major.
    pub labels: Option<&'a mut [f32]>,
    /// `[n, n_categories]`, row-major; empty for a source without categories.
    pub categories: Option<&'a mut [u32]>,
    /// `[n]`; empty for a source without weights.
    pub weights: Option<&'a mut [f32]>,
}

impl<T> Default for RowBuffers<'_, T> {
    /// Nothing is wanted.
    fn default() -> Self {
        Self { features: None, labels: None, categories: None, weights: None }
    }
}

impl<'a, T> RowBuffers<'a, T> {
    /// Features and labels.
    pub fn new(features: &'a mut [T], labels: &'a mut [f32]) -> Self {
        Self { features: Some(features), labels: Some(labels), ..Self::default() }
    }

    /// Makes the checks that [`RowSource::gather`](crate::RowSource::gather) must make.
    ///
    /// # Errors
    /// [`Error::Length`] for a buffer that does not hold as many rows as are selected; [`Error::RowOutOfRange`] for the first row
    /// that the source does not have.
    pub fn check(&self, rows: &RowSelection<'_>, layout: &Layout) -> Result<(), Error> {
        self.check_lengths(rows.len(), layout)?;
        match rows.first_beyond(layout.n_rows) {
            Some(row) => Err(Error::RowOutOfRange { row, n_rows: layout.n_rows }),
            None => Ok(()),
        }
    }

    /// Checks that each buffer holds `n` rows.
    ///
    /// # Errors
    /// [`Error::Length`]
    pub fn check_lengths(&self, n: usize, layout: &Layout) -> Result<(), Error> {
        let lengths = [
            ("features", self.features.as_ref().map(|buffer| buffer.len()), layout.n_cols),
            ("labels", self.labels.as_ref().map(|buffer| buffer.len()), layout.n_labels),
            ("categories", self.categories.as_ref().map(|buffer| buffer.len()), layout.n_categories),
            ("weights", self.weights.as_ref().map(|buffer| buffer.len()), layout.n_weights()),
        ];
        for (arg, found, width) in lengths {
            // Saturating: a range may have more rows than any buffer could hold, which must return an error rather than overflow.
            let expected = n.saturating_mul(width);
            if let Some(found) = found.filter(|&found| found != expected) {
                return Err(Error::Length { op: "gather", arg, expected, found });
            }
        }
        Ok(())
    }

    /// The same buffers, borrowed for a shorter time.
    pub fn reborrow(&mut self) -> RowBuffers<'_, T> {
        RowBuffers {
            features: self.features.as_deref_mut(),
            labels: self.labels.as_deref_mut(),
            categories: self.categories.as_deref_mut(),
            weights: self.weights.as_deref_mut(),
        }
    }

    /// What has been gathered, as rows from `first` on; empty where nothing was wanted.
    pub fn chunk(&self, first: usize) -> Chunk<'_, T> {
        Chunk {
            first,
            features: self.features.as_deref().unwrap_or_default(),
            labels: self.labels.as_deref().unwrap_or_default(),
            categories: self.categories.as_deref().unwrap_or_default(),
            weights: self.weights.as_deref().unwrap_or_default(),
        }
    }

    /// The first `n` rows, and the rest.
    ///
    /// # Panics
    /// If a buffer has fewer rows.
    pub fn split_at(self, n: usize, layout: &Layout) -> (RowBuffers<'a, T>, RowBuffers<'a, T>) {
        fn split<V>(buffer: Option<&mut [V]>, at: usize) -> (Option<&mut [V]>, Option<&mut [V]>) {
            buffer.map(|buffer| buffer.split_at_mut(at)).unzip()
        }
        let (features, more_features) = split(self.features, n * layout.n_cols);
        let (labels, more_labels) = split(self.labels, n * layout.n_labels);
        let (categories, more_categories) = split(self.categories, n * layout.n_categories);
        let (weights, more_weights) = split(self.weights, n * layout.n_weights());
        (
            RowBuffers { features, labels, categories, weights },
            RowBuffers { features: more_features, labels: more_labels, categories: more_categories, weights: more_weights },
        )
    }

    /// Calls `fill` with the number of each row and its part of the buffers, in order: for sources that compute or decode row by
    /// row.
    ///
    /// # Errors
    /// The first error of `fill`.
    /// # Panics
    /// If a buffer is too small; [`check`](Self::check) finds it.
    pub fn for_each_row<E>(
        self,
        rows: &RowSelection<'_>,
        layout: &Layout,
        mut fill: impl FnMut(u32, RowBuffers<'a, T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = self;
        rows.for_each_block(|_, numbers| {
            for &number in numbers {
                let (row, others) = std::mem::take(&mut rest).split_at(1, layout);
                fill(number, row)?;
                rest = others;
            }
            Ok(())
        })
    }

    /// A selection for which these buffers, which have wrong lengths, are wrong for any source: what an adapter passes on so that
    /// the source creates its error.
    pub(crate) fn mismatched(&self) -> RowSelection<'static> {
        let is_empty = self.features.as_ref().is_none_or(|buffer| buffer.is_empty())
            && self.labels.as_ref().is_none_or(|buffer| buffer.is_empty())
            && self.categories.as_ref().is_none_or(|buffer| buffer.is_empty())
            && self.weights.as_ref().is_none_or(|buffer| buffer.is_empty());
        // A buffer with values is wrong for no rows, and one without for one row.
        RowSelection::Range(0..usize::from(is_empty))
    }
}

/// Consecutive rows that have been read.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a, T> {
    /// The number of the first row.
    pub first: usize,
    /// `[n, n_cols]`
    pub features: &'a [T],
    /// `[n, n_labels]`
    pub labels: &'a [f32],
    /// `[n, n_categories]`
    pub categories: &'a [u32],
    /// `[n]`; empty if the source has no weights.
    pub weights: &'a [f32],
}

impl<T> Chunk<'_, T> {
    /// The number of rows of a source with this layout, which may lack labels or other parts.
    pub fn n_rows(&self, layout: &Layout) -> usize {
        let parts = [
            (self.features.len(), layout.n_cols),
            (self.labels.len(), layout.n_labels),
            (self.categories.len(), layout.n_categories),
        ];
        parts.into_iter().find(|(_, width)| *width > 0).map_or(self.weights.len(), |(len, width)| len / width)
    }
}
