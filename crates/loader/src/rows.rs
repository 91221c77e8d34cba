use std::hint::black_box;
use std::ops::Range;

use crate::{Error, RowSource};

/// Rows in memory: `features` `[n_rows, n_cols]`, row-major, beside `labels` `[n_rows]`.
///
/// `T` is anything that lends `f32`s: `Vec<f32>` where the rows are to be owned, `&[f32]` where they lie in somebody else's buffer
/// (a mapped file, an array of another crate), `Arc<[f32]>` where they are shared.
///
/// # Examples
/// ```
/// use brisk_loader::{RowSource, Rows};
///
/// let rows = Rows::new(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![0.0, 1.0, 0.0], 2)?;
/// let (mut features, mut labels) = ([0.0; 4], [0.0; 2]);
/// rows.gather(&[2, 1], &mut features, &mut labels)?;
/// assert_eq!((features, labels), ([5.0, 6.0, 3.0, 4.0], [0.0, 1.0]));
/// # Ok::<(), brisk_loader::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rows<T = Vec<f32>> {
    features: T,
    labels: T,
    n_cols: usize,
}

impl<T: AsRef<[f32]>> Rows<T> {
    /// Takes the two arrays as they are; nothing is copied.
    ///
    /// # Errors
    /// [`Error::Length`] unless `features` holds `n_cols` values for each label; [`Error::TooManyRows`] beyond 2³² − 1 rows.
    pub fn new(features: T, labels: T, n_cols: usize) -> Result<Self, Error> {
        let n_rows = labels.as_ref().len();
        let expected = n_rows.saturating_mul(n_cols);
        let found = features.as_ref().len();
        if found != expected {
            return Err(Error::Length { op: "Rows::new", arg: "features", expected, found });
        }
        if n_rows > u32::MAX as usize {
            return Err(Error::TooManyRows { n_rows });
        }
        Ok(Self { features, labels, n_cols })
    }

    /// All features, `[n_rows, n_cols]`.
    pub fn features(&self) -> &[f32] {
        self.features.as_ref()
    }

    /// All labels, `[n_rows]`.
    pub fn labels(&self) -> &[f32] {
        self.labels.as_ref()
    }
}

impl<T: AsRef<[f32]> + Sync> RowSource for Rows<T> {
    type Error = Error;

    fn n_rows(&self) -> usize {
        self.labels().len()
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn gather(&self, rows: &[u32], features: &mut [f32], labels: &mut [f32]) -> Result<(), Error> {
        check_gather(self, rows, features, labels)?;
        gather_checked(self.features(), self.labels(), self.n_cols, rows, features, labels);
        Ok(())
    }

    fn gather_range(&self, rows: Range<usize>, features: &mut [f32], labels: &mut [f32]) -> Result<(), Error> {
        check_lengths("gather_range", rows.len(), self.n_cols, features, labels)?;
        if rows.is_empty() {
            return Ok(());
        }
        if rows.end > self.n_rows() {
            return Err(Error::RowOutOfRange { row: rows.end - 1, n_rows: self.n_rows() });
        }
        features.copy_from_slice(&self.features()[rows.start * self.n_cols..rows.end * self.n_cols]);
        labels.copy_from_slice(&self.labels()[rows]);
        Ok(())
    }
}

/// Rows whose cache lines are asked for together: enough to keep the memory busy, few enough to be in the first-level cache when copied.
const TOUCHED: usize = 64;

/// The gather itself.
///
/// Rows of a shuffled order are cache misses. Copied one by one, a few are waited for at a time; so a value from the start, the middle and the end of
/// each of the next rows is read first, with nothing between the reads, and the misses overlap. That is a prefetch in safe Rust.
fn gather_checked(from: &[f32], from_labels: &[f32], n_cols: usize, rows: &[u32], features: &mut [f32], labels: &mut [f32]) {
    for (row, label) in rows.iter().zip(labels) {
        *label = from_labels[*row as usize];
    }
    if n_cols == 0 {
        return;
    }
    for (rows, features) in rows.chunks(TOUCHED).zip(features.chunks_mut(TOUCHED * n_cols)) {
        let touched = rows.iter().fold(0, |touched, &row| {
            let row = &from[row as usize * n_cols..][..n_cols];
            touched ^ row[0].to_bits() ^ row[n_cols / 2].to_bits() ^ row[n_cols - 1].to_bits()
        });
        black_box(touched);
        for (&row, to) in rows.iter().zip(features.chunks_exact_mut(n_cols)) {
            to.copy_from_slice(&from[row as usize * n_cols..][..n_cols]);
        }
    }
}

/// The checks that a [`RowSource::gather`] owes its caller, for sources that have no error of their own to make of them.
///
/// # Errors
/// [`Error::RowOutOfRange`] for the first row beyond `source.n_rows()`; [`Error::Length`] for a buffer that does not hold
/// `rows.len()` rows.
pub fn check_gather<S: RowSource + ?Sized>(source: &S, rows: &[u32], features: &[f32], labels: &[f32]) -> Result<(), Error> {
    check_lengths("gather", rows.len(), source.n_cols(), features, labels)?;
    let n_rows = source.n_rows();
    // The greatest first: a maximum is one vector instruction for several rows, a search for the first is not.
    let greatest = rows.iter().fold(0, |greatest, &row| greatest.max(row)) as usize;
    if greatest < n_rows || rows.is_empty() {
        return Ok(());
    }
    let row = rows.iter().map(|&row| row as usize).find(|&row| row >= n_rows).unwrap_or(greatest);
    Err(Error::RowOutOfRange { row, n_rows })
}

fn check_lengths(op: &'static str, n_rows: usize, n_cols: usize, features: &[f32], labels: &[f32]) -> Result<(), Error> {
    let expected = n_rows.saturating_mul(n_cols);
    if features.len() != expected {
        return Err(Error::Length { op, arg: "features", expected, found: features.len() });
    }
    if labels.len() != n_rows {
        return Err(Error::Length { op, arg: "labels", expected: n_rows, found: labels.len() });
    }
    Ok(())
}
