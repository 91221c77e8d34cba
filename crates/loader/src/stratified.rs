use crate::classes::Classes;
use crate::error::Error;
use crate::gather::{Layout, RowBuffers, RowSelection};
use crate::shuffle::{SPLIT_EPOCH, Shuffle, splitmix64_finish};
use crate::source::RowSource;
use crate::split::{Fold, check_folds, check_fractions, folds, n_rows_of, parts};
use crate::subset::Subset;

/// All labels of a source, `[n_rows, n_labels]`, in the order of its rows.
///
/// # Errors
/// The error of the source.
pub fn labels_of<S: RowSource>(source: &S) -> Result<Vec<f32>, S::Error> {
    let Layout { n_rows, n_labels, .. } = source.layout();
    let mut labels = vec![0.0; n_rows * n_labels];
    source.gather(RowSelection::Range(0..n_rows), RowBuffers { labels: Some(&mut labels), ..RowBuffers::default() })?;
    Ok(labels)
}

/// Like [`split`](crate::split), but splits every class of labels by the same fractions: each part has its share of each class,
/// rounded up or down.
///
/// Rows of a class are assigned at random, depending on the seed; within a part, rows are in the order of the source.
///
/// # Errors
/// [`Error::Fractions`] unless they are all 0 or more and sum to 1; [`Error::Length`] unless there is one label per row.
///
/// # Examples
/// One row in ten is of class 1, in both parts:
/// ```
/// use brisk_loader::{Rows, labels_of, stratified_split};
///
/// let labels: Vec<f32> = (0..1000).map(|row| f32::from(row % 10 == 0)).collect();
/// let rows = Rows::new(vec![0.5; 1000], labels, 1)?;
/// let parts = stratified_split(&rows, &labels_of(&rows)?, 42, [0.8, 0.2])?;
/// let n_ones = parts.each_ref().map(|part| labels_of(part).map(|labels| labels.iter().sum::<f32>()));
/// assert!(matches!(n_ones, [Ok(80.0), Ok(20.0)]));
/// # Ok::<(), brisk_loader::Error>(())
/// ```
pub fn stratified_split<S: RowSource + Clone, const N: usize>(
    source: S,
    labels: &[f32],
    seed: u64,
    fractions: [f64; N],
) -> Result<[Subset<S>; N], Error> {
    check_fractions(&fractions)?;
    let shuffled = Shuffled::of("stratified_split", &source, labels, seed)?;
    let mut part_of_row = vec![0; labels.len()];
    // The rows that each part should have had of the classes so far, minus the rows that it got.
    let mut owed = [0.0; N];
    for rows in &shuffled.classes {
        let sizes = sizes(rows.len(), &fractions, &mut owed);
        let mut rows = rows.iter();
        for (part, &size) in (0..).zip(&sizes) {
            rows.by_ref().take(size).for_each(|&row| part_of_row[row as usize] = part);
        }
    }
    parts(&source, &part_of_row)
}

/// Like [`k_fold`](crate::k_fold), but the numbers of rows of each class differ by at most one between folds: the counts are
/// those of scikit-learn's `StratifiedKFold(shuffle=True)`. The sizes of folds differ by at most one row, too.
///
/// # Errors
/// [`Error::Folds`] for fewer than two folds, or more than the largest class has rows; [`Error::Length`] unless there is one
/// label per row.
pub fn stratified_k_fold<S: RowSource + Clone>(
    source: S,
    labels: &[f32],
    seed: u64,
    n_folds: usize,
) -> Result<Vec<Fold<S>>, Error> {
    let shuffled = Shuffled::of("stratified_k_fold", &source, labels, seed)?;
    check_folds(n_folds, "rows of the largest class", shuffled.classes.iter().map(Vec::len).max().unwrap_or(0))?;
    let mut fold_of_row = vec![0; labels.len()];
    // Assigned to the folds in turn, one class after another.
    for (i, &row) in shuffled.classes.iter().flatten().enumerate() {
        fold_of_row[row as usize] = (i % n_folds) as u32;
    }
    folds(&source, &fold_of_row, n_folds)
}

/// The rows of each class, shuffled.
struct Shuffled {
    classes: Vec<Vec<u32>>,
}

impl Shuffled {
    fn of<S: RowSource>(op: &'static str, source: &S, labels: &[f32], seed: u64) -> Result<Self, Error> {
        let n_rows = n_rows_of(source)? as usize;
        if labels.len() != n_rows {
            return Err(Error::Length { op, arg: "labels", expected: n_rows, found: labels.len() });
        }
        let classes = Classes::of(labels);
        let mut rows: Vec<Vec<u32>> = classes.counts().into_iter().map(Vec::with_capacity).collect();
        for (row, &class) in (0..).zip(&classes.of_row) {
            rows[class as usize].push(row);
        }
        for (class, rows) in (0..).zip(&mut rows) {
            let seed = seed.wrapping_add(splitmix64_finish(class));
            let shuffle = Shuffle::new(rows.len() as u32, seed, SPLIT_EPOCH);
            *rows = (0..shuffle.n_rows()).map(|position| rows[shuffle.row(position) as usize]).collect();
        }
        Ok(Self { classes: rows })
    }
}

/// How many of `n` rows of a class each part gets: its share rounded down, plus one for the parts that are owed most.
fn sizes<const N: usize>(n: usize, fractions: &[f64; N], owed: &mut [f64; N]) -> [usize; N] {
    let shares = fractions.map(|fraction| {
        let share = fraction * n as f64;
        // A share that differs from an integer only by rounding counts as that integer.
        if (share - share.round()).abs() < 1e-9 * n as f64 { share.round() } else { share }
    });
    let mut sizes = shares.map(|share| share as usize);
    for part in 0..N {
        owed[part] += shares[part] - sizes[part] as f64;
    }
    let n_left = n - sizes.iter().sum::<usize>().min(n);
    let mut parts: Vec<usize> = (0..N).filter(|&part| shares[part].fract() > 0.0).collect();
    parts.sort_by(|&a, &b| owed[b].total_cmp(&owed[a]));
    for &part in parts.iter().take(n_left) {
        sizes[part] += 1;
        owed[part] -= 1.0;
    }
    sizes
}
