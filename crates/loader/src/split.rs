use crate::error::Error;
use crate::shuffle::{SPLIT_EPOCH, Shuffle};
use crate::source::RowSource;
use crate::subset::Subset;

/// One fold of a cross-validation: [`k_fold`], [`stratified_k_fold`](crate::stratified_k_fold),
/// [`group_k_fold`](crate::group_k_fold).
#[derive(Clone, Debug)]
pub struct Fold<S> {
    /// All rows except those of `valid`.
    pub train: Subset<S>,
    /// One of `n_folds` parts.
    pub valid: Subset<S>,
}

/// Splits rows at random into disjoint parts that together contain all rows, such as training, validation and test sets.
///
/// Sizes are exact: each part ends at its rounded share of the rows, and sizes depend only on `n_rows` and `fractions`. The same
/// seed will always give the same parts, in later versions too; it may be the same as the seed of the training order.
///
/// # Errors
/// [`Error::Fractions`] unless they are all 0 or more and sum to 1; [`Error::TooManyRows`] beyond 2³² − 1.
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
    check_fractions(&fractions)?;
    let shuffle = shuffle_of(&source, seed)?;
    let n_rows = shuffle.n_rows();
    let (mut share, mut start) = (0.0, 0);
    let ranges = fractions.map(|fraction| {
        share += fraction;
        let end = ((f64::from(n_rows) * share).round() as u32).clamp(start, n_rows);
        std::mem::replace(&mut start, end)..end
    });
    // Rows that are left over by rounding belong to the last part that is not empty.
    let last = fractions.iter().rposition(|&fraction| fraction > 0.0);
    let mut part = 0;
    Ok(ranges.map(|range| {
        let range = if Some(part) == last { range.start..n_rows } else { range };
        part += 1;
        Subset::of_positions(source.clone(), shuffle.clone(), range)
    }))
}

/// The folds of a cross-validation: each row is in the validation set of one fold and in the training sets of all others. Sizes
/// differ by at most one row.
///
/// # Errors
/// [`Error::Folds`] for fewer than two folds, or more than rows; [`Error::TooManyRows`] beyond 2³² − 1.
pub fn k_fold<S: RowSource + Clone>(source: S, seed: u64, n_folds: usize) -> Result<Vec<Fold<S>>, Error> {
    let shuffle = shuffle_of(&source, seed)?;
    let n_rows = shuffle.n_rows();
    check_folds(n_folds, "rows", n_rows as usize)?;
    let bound = |fold: usize| (fold as u64 * u64::from(n_rows) / n_folds as u64) as u32;
    let folds = (0..n_folds).map(|fold| {
        let range = bound(fold)..bound(fold + 1);
        let valid = Subset::of_positions(source.clone(), shuffle.clone(), range.clone());
        Fold { train: Subset::of_all_but(source.clone(), shuffle.clone(), range), valid }
    });
    Ok(folds.collect())
}

pub(crate) fn check_fractions(fractions: &[f64]) -> Result<(), Error> {
    let total: f64 = fractions.iter().sum();
    // Sums of decimal fractions differ from 1 by a few units in the last place.
    if !fractions.iter().all(|&fraction| fraction >= 0.0) || (total - 1.0).abs() > 1e-9 {
        return Err(Error::Fractions { fractions: fractions.to_vec() });
    }
    Ok(())
}

/// Checks that there are at least two folds, and at most as many as rows or groups.
pub(crate) fn check_folds(n_folds: usize, what: &'static str, n: usize) -> Result<(), Error> {
    if n_folds < 2 || n_folds > n { Err(Error::Folds { n_folds, what, n }) } else { Ok(()) }
}

fn shuffle_of<S: RowSource>(source: &S, seed: u64) -> Result<Shuffle, Error> {
    Ok(Shuffle::new(n_rows_of(source)?, seed, SPLIT_EPOCH))
}

pub(crate) fn n_rows_of<S: RowSource>(source: &S) -> Result<u32, Error> {
    let n_rows = source.n_rows();
    u32::try_from(n_rows).map_err(|_| Error::TooManyRows { n_rows })
}

/// The rows of each part, in order, given the part of each row.
pub(crate) fn parts<S: RowSource + Clone, const N: usize>(source: &S, part_of_row: &[u32]) -> Result<[Subset<S>; N], Error> {
    let part = |part: usize| Subset::of_rows(source.clone(), rows_where(part_of_row, |of_row| of_row as usize == part));
    let parts = (0..N).map(part).collect::<Result<Vec<_>, _>>()?;
    Ok(parts.try_into().unwrap_or_else(|_| unreachable!("as many parts as fractions")))
}

/// The folds, given the validation set that each row is in.
pub(crate) fn folds<S: RowSource + Clone>(source: &S, fold_of_row: &[u32], n_folds: usize) -> Result<Vec<Fold<S>>, Error> {
    let fold = |fold: usize| {
        let train = Subset::of_rows(source.clone(), rows_where(fold_of_row, |of_row| of_row as usize != fold))?;
        let valid = Subset::of_rows(source.clone(), rows_where(fold_of_row, |of_row| of_row as usize == fold))?;
        Ok(Fold { train, valid })
    };
    (0..n_folds).map(fold).collect()
}

fn rows_where(of_row: &[u32], is_in: impl Fn(u32) -> bool) -> Vec<u32> {
    (0..).zip(of_row).filter(|&(_, &of_row)| is_in(of_row)).map(|(row, _)| row).collect()
}
