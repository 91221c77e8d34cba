use std::ops::Range;

use crate::shuffle::SPLIT_EPOCH;
use crate::source::BLOCK;
use crate::{Error, RowSource, Shuffle};

/// Some rows of a source, as a source of their own: a train set, a test set, a fold. Holds a few integers and no row numbers; which row is
/// which is computed, from the seed.
#[derive(Clone, Debug)]
pub struct Subset<S> {
    source: S,
    shuffle: Shuffle,
    /// The first position that is ours.
    start: u32,
    n_rows: u32,
    /// From our row `gap_at` on, `gap` positions are left out: a fold's train set lies on both sides of its validation set.
    gap_at: u32,
    gap: u32,
}

/// One fold of [`k_fold`].
#[derive(Clone, Debug)]
pub struct Fold<S> {
    /// All rows but those of `valid`.
    pub train: Subset<S>,
    /// One part in `n_folds`.
    pub valid: Subset<S>,
}

/// Splits rows at random into parts that have nothing in common and leave nothing out: train, validation and test sets, say.
///
/// A part ends at its share of the rows, rounded: sizes are exact, and depend on nothing but `n_rows` and `fractions`. The same seed gives the same
/// parts for ever; it may be the seed of the training order too.
///
/// # Errors
/// [`Error::Fractions`] unless they are all 0 or more and come to 1; [`Error::TooManyRows`] beyond 2³² − 1.
///
/// # Examples
/// ```
/// use brisk_loader::{RowSource, Rows, split};
///
/// let rows = Rows::new(vec![0.0; 1000], vec![0.0; 1000], 1)?;
/// let [train, valid, test] = split(&rows, 42, [0.8, 0.1, 0.1])?;
/// assert_eq!((train.n_rows(), valid.n_rows(), test.n_rows()), (800, 100, 100));
/// # Ok::<(), brisk_loader::Error>(())
/// ```
pub fn split<S: RowSource + Clone, const N: usize>(source: S, seed: u64, fractions: [f64; N]) -> Result<[Subset<S>; N], Error> {
    let total: f64 = fractions.iter().sum();
    // Sums of decimal fractions miss 1 by a few units in the last place.
    if !fractions.iter().all(|&fraction| fraction >= 0.0) || (total - 1.0).abs() > 1e-9 {
        return Err(Error::Fractions { fractions: fractions.to_vec() });
    }
    let shuffle = shuffle_of(&source, seed)?;
    let n_rows = shuffle.n_rows();
    let (mut share, mut start) = (0.0, 0);
    let ranges = fractions.map(|fraction| {
        share += fraction;
        let end = ((f64::from(n_rows) * share).round() as u32).clamp(start, n_rows);
        std::mem::replace(&mut start, end)..end
    });
    // What rounding of the shares may have left over is the last part's that is not meant to be empty.
    let last = fractions.iter().rposition(|&fraction| fraction > 0.0);
    let mut part = 0;
    Ok(ranges.map(|range| {
        let range = if Some(part) == last { range.start..n_rows } else { range };
        part += 1;
        Subset::new(source.clone(), shuffle.clone(), range)
    }))
}

/// The folds of a cross-validation: each row is in one fold's validation set and in all other folds' train sets. Sizes differ by at most
/// one row.
///
/// # Errors
/// [`Error::Folds`] for fewer than two folds, or more than rows; [`Error::TooManyRows`] beyond 2³² − 1.
pub fn k_fold<S: RowSource + Clone>(source: S, seed: u64, n_folds: usize) -> Result<Vec<Fold<S>>, Error> {
    let shuffle = shuffle_of(&source, seed)?;
    let n_rows = shuffle.n_rows();
    if n_folds < 2 || n_folds > n_rows as usize {
        return Err(Error::Folds { n_folds, n_rows: n_rows as usize });
    }
    let bound = |fold: usize| (fold as u64 * u64::from(n_rows) / n_folds as u64) as u32;
    let folds = (0..n_folds).map(|fold| {
        let range = bound(fold)..bound(fold + 1);
        let valid = Subset::new(source.clone(), shuffle.clone(), range.clone());
        let train = Subset { start: 0, n_rows: n_rows - valid.n_rows, gap_at: range.start, gap: valid.n_rows, ..valid.clone() };
        Fold { train, valid }
    });
    Ok(folds.collect())
}

fn shuffle_of<S: RowSource>(source: &S, seed: u64) -> Result<Shuffle, Error> {
    let n_rows = source.n_rows();
    let n = u32::try_from(n_rows).map_err(|_| Error::TooManyRows { n_rows })?;
    Ok(Shuffle::new(n, seed, SPLIT_EPOCH))
}

impl<S: RowSource> Subset<S> {
    fn new(source: S, shuffle: Shuffle, range: Range<u32>) -> Self {
        let n_rows = range.end - range.start;
        Self { source, shuffle, start: range.start, n_rows, gap_at: n_rows, gap: 0 }
    }

    /// The source that this is some rows of.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The number in [`source`](Self::source) of our row `row`.
    ///
    /// # Panics
    /// If there is no such row, as indexing a slice would.
    pub fn row(&self, row: u32) -> u32 {
        assert!(row < self.n_rows, "row {row} is out of range for a subset of {} rows", self.n_rows);
        self.shuffle.row(self.position(row))
    }

    fn position(&self, row: u32) -> u32 {
        self.start + row + if row >= self.gap_at { self.gap } else { 0 }
    }

    /// The source's numbers of a block of our rows.
    fn to_source<'a>(&self, rows: &[u32], block: &'a mut [u32; BLOCK]) -> &'a [u32] {
        let block = &mut block[..rows.len()];
        for (&row, position) in rows.iter().zip(block.iter_mut()) {
            *position = self.position(row);
        }
        self.shuffle.permute(block);
        block
    }
}

impl<S: RowSource> RowSource for Subset<S> {
    type Feature = S::Feature;
    type Error = S::Error;

    fn n_rows(&self) -> usize {
        self.n_rows as usize
    }

    fn n_cols(&self) -> usize {
        self.source.n_cols()
    }

    /// As the source's. Its error for a row beyond our end names a row beyond its own end, by as much.
    fn gather(&self, rows: &[u32], features: &mut [S::Feature], labels: &mut [f32]) -> Result<(), S::Error> {
        let n_cols = self.n_cols();
        if labels.len() != rows.len() || features.len() != rows.len() * n_cols {
            // Only the source can make its error. Buffers for some rows are wrong for no row, and buffers for none are wrong for one.
            let n = usize::from(labels.is_empty() && features.is_empty());
            return self.source.gather(&[0][..n], features, labels);
        }
        if let Some(beyond) = self.beyond(rows) {
            return self.source.gather(&[beyond], &mut features[..n_cols], &mut labels[..1]);
        }
        let mut block = [0; BLOCK];
        for (i, rows) in rows.chunks(BLOCK).enumerate() {
            let first = i * BLOCK;
            let features = &mut features[first * n_cols..][..rows.len() * n_cols];
            self.source.gather(self.to_source(rows, &mut block), features, &mut labels[first..][..rows.len()])?;
        }
        Ok(())
    }

    fn n_categories(&self) -> usize {
        self.source.n_categories()
    }

    fn gather_categories(&self, rows: &[u32], categories: &mut [u32]) -> Result<(), S::Error> {
        self.gather_wide(rows, categories, self.n_categories(), S::gather_categories)
    }

    fn has_weights(&self) -> bool {
        self.source.has_weights()
    }

    fn gather_weights(&self, rows: &[u32], weights: &mut [f32]) -> Result<(), S::Error> {
        self.gather_wide(rows, weights, 1, S::gather_weights)
    }

    fn prefetch(&self, rows: &[u32]) {
        let mut block = [0; BLOCK];
        for rows in rows.chunks(BLOCK).filter(|rows| self.beyond(rows).is_none()) {
            self.source.prefetch(self.to_source(rows, &mut block));
        }
    }
}

impl<S: RowSource> Subset<S> {
    /// A row for which the source makes the error of the first of `rows` that is not ours.
    fn beyond(&self, rows: &[u32]) -> Option<u32> {
        let row = rows.iter().find(|&&row| row >= self.n_rows)?;
        Some((row - self.n_rows).saturating_add(self.shuffle.n_rows()))
    }

    /// Gathers by one of the source's methods into a buffer of `width` values a row.
    fn gather_wide<T>(
        &self,
        rows: &[u32],
        out: &mut [T],
        width: usize,
        gather: impl Fn(&S, &[u32], &mut [T]) -> Result<(), S::Error>,
    ) -> Result<(), S::Error> {
        if out.len() != rows.len() * width {
            let n = usize::from(out.is_empty());
            return gather(&self.source, &[0][..n], out);
        }
        if let Some(beyond) = self.beyond(rows) {
            return gather(&self.source, &[beyond], &mut out[..width]);
        }
        let mut block = [0; BLOCK];
        for (i, rows) in rows.chunks(BLOCK).enumerate() {
            let out = &mut out[i * BLOCK * width..][..rows.len() * width];
            gather(&self.source, self.to_source(rows, &mut block), out)?;
        }
        Ok(())
    }
}
