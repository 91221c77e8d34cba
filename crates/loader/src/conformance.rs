use std::fmt::Debug;

use crate::source::{Feature, RowSource};

/// Checks that a source fulfils the contract of [`RowSource`]; for the tests of its implementation.
///
/// Checks the first and last few hundred rows, so it is fast even for a large source. It does not know the expected values: it checks
/// that the values are the same however they are requested, and that invalid requests are errors.
///
/// # Panics
/// If the source violates the contract; the message names the rule.
pub fn row_source_conformance<S: RowSource + ?Sized>(source: &S) {
    let n_rows = source.n_rows();
    assert!(u32::try_from(n_rows).is_ok(), "there are {n_rows} rows: a source has at most 2^32 - 1");
    let sizes = Sizes::of(source);
    let beyond = [source.column_name(sizes.n_cols), source.label_name(sizes.n_labels)];
    assert_eq!(beyond, [None; 2], "a column beyond the last one has a name");
    if let Some(moments) = source.column_moments() {
        assert_eq!(moments.len(), sizes.n_cols, "there are moments of another number of columns");
        let are_usable = moments.iter().all(|of| of.mean.is_finite() && of.std.is_finite() && of.std >= 0.0);
        assert!(are_usable, "a mean or a standard deviation is no number: {moments:?}");
    }
    let probed = probed(n_rows);
    hint(source, &probed);

    let one_by_one: Vec<_> = probed.iter().map(|&row| gathered(source, &[row])).collect();
    let together = gathered(source, &probed);
    for (i, one) in one_by_one.iter().enumerate() {
        assert_eq!(together.row(i, &sizes), one.row(0, &sizes), "row {} differs when gathered among others", probed[i]);
    }
    let backwards: Vec<u32> = probed.iter().rev().copied().collect();
    let reversed = gathered(source, &backwards);
    for (i, one) in one_by_one.iter().rev().enumerate() {
        assert_eq!(reversed.row(i, &sizes), one.row(0, &sizes), "row {} differs when gathered in another order", backwards[i]);
    }
    if let (Some(&first), Some(&last)) = (probed.first(), probed.last()) {
        let repeated = gathered(source, &[last, first, last]);
        assert_eq!(repeated.row(0, &sizes), repeated.row(2, &sizes), "a row requested twice differs from itself");
    }
    for range in [0..n_rows.min(300), n_rows.saturating_sub(300)..n_rows, 0..n_rows.min(1), n_rows / 2..n_rows / 2] {
        let numbers: Vec<u32> = range.clone().map(|row| row as u32).collect();
        let by_range = main_values(source, range.len(), |x, y| source.gather_range(range.clone(), x, y));
        let by_number = main_values(source, range.len(), |x, y| source.gather(&numbers, x, y));
        assert_eq!(by_range, by_number, "gather_range({range:?}) differs from gather");
    }

    check_refusals(source, &probed);
    hint(source, &probed);
    assert_eq!(Sizes::of(source), sizes, "the source changed its size");
    assert_eq!(gathered(source, &probed), together, "hints changed what is gathered");
}

/// The properties of a source that must never change.
#[derive(Debug, PartialEq)]
struct Sizes {
    n_rows: usize,
    n_cols: usize,
    n_labels: usize,
    n_categories: usize,
    has_weights: bool,
    fingerprint: Option<u64>,
}

impl Sizes {
    fn of<S: RowSource + ?Sized>(source: &S) -> Self {
        Self {
            n_rows: source.n_rows(),
            n_cols: source.n_cols(),
            n_labels: source.n_labels(),
            n_categories: source.n_categories(),
            has_weights: source.has_weights(),
            fingerprint: source.fingerprint(),
        }
    }
}

/// Calls all hints, for rows that exist and rows that do not.
fn hint<S: RowSource + ?Sized>(source: &S, probed: &[u32]) {
    let n_rows = source.n_rows();
    for rows in [probed, &[], &[u32::MAX]] {
        source.prefetch(rows);
    }
    for range in [0..n_rows, 0..0, n_rows / 2..n_rows, n_rows / 2..n_rows + 5, n_rows + 1..n_rows + 2, usize::MAX - 1..usize::MAX]
    {
        source.prefetch_range(range.clone());
        source.release_range(range);
    }
}

/// Checks that rows beyond the end and buffers of the wrong length are errors.
fn check_refusals<S: RowSource + ?Sized>(source: &S, probed: &[u32]) {
    let Sizes { n_rows, n_cols, n_labels: k, n_categories, has_weights, .. } = Sizes::of(source);
    let zeros = |n: usize| vec![S::Feature::default(); n];

    let beyond = n_rows as u32;
    for rows in [vec![beyond], vec![u32::MAX], probed.iter().copied().chain([beyond]).collect()] {
        let result = source.gather(&rows, &mut zeros(rows.len() * n_cols), &mut vec![0.0; rows.len() * k]);
        assert!(result.is_err(), "a row beyond {n_rows} was gathered without an error");
        let result = source.gather_labels(&rows, &mut vec![0.0; rows.len() * k]);
        assert!(result.is_err(), "labels of a row beyond {n_rows} were gathered without an error");
        if n_categories > 0 {
            let result = source.gather_categories(&rows, &mut vec![0; rows.len() * n_categories]);
            assert!(result.is_err(), "categories of a row beyond {n_rows} were gathered without an error");
        }
        if has_weights {
            let result = source.gather_weights(&rows, &mut vec![0.0; rows.len()]);
            assert!(result.is_err(), "the weight of a row beyond {n_rows} was gathered without an error");
        }
    }
    for range in [n_rows..n_rows + 1, n_rows.saturating_sub(3)..n_rows + 1, usize::MAX - 1..usize::MAX] {
        let result = source.gather_range(range.clone(), &mut zeros(range.len() * n_cols), &mut vec![0.0; range.len() * k]);
        assert!(result.is_err(), "gather_range({range:?}) of {n_rows} rows is no error");
    }
    let Some(&row) = probed.first() else { return };
    let wrong = [(n_cols + 1, k), (2 * n_cols, 2 * k), (n_cols, 0), (n_cols, 2 * k)];
    for (n_features, n_labels) in wrong.into_iter().filter(|&wrong| wrong != (n_cols, k)) {
        let (mut features, mut labels) = (zeros(n_features), vec![0.0; n_labels]);
        let what = format!("features of {n_features} values and labels of {n_labels} for one row of {n_cols} columns");
        assert!(source.gather(&[row], &mut features, &mut labels).is_err(), "gather took {what}");
        let range = row as usize..row as usize + 1;
        assert!(source.gather_range(range, &mut features, &mut labels).is_err(), "gather_range took {what}");
    }
    for n_labels in [0, k + 1, 2 * k].into_iter().filter(|&n| n != k) {
        let result = source.gather_labels(&[row], &mut vec![0.0; n_labels]);
        assert!(result.is_err(), "gather_labels took {n_labels} values for one row of {k}");
    }
    let result = source.gather_range(0..2, &mut zeros(n_cols), &mut vec![0.0; k]);
    assert!(result.is_err() || n_cols + k == 0, "gather_range took buffers for one row where there are two");
    for n in [0, n_categories + 1, 2 * n_categories] {
        let is_wrong = n_categories > 0 && n != n_categories;
        let result = if is_wrong { source.gather_categories(&[row], &mut vec![0; n]).err() } else { None };
        assert!(is_wrong == result.is_some(), "gather_categories took {n} values for one row of {n_categories}");
    }
    for n in [0, 2] {
        let result = source.gather_weights(&[row], &mut vec![0.0; n]);
        assert!(!has_weights || result.is_err(), "gather_weights took {n} values for one row");
    }
}

/// All values that a source gathers for some rows.
#[derive(Debug, PartialEq)]
struct Gathered<T> {
    features: Values<T>,
    labels: Values<f32>,
    categories: Values<u32>,
    weights: Values<f32>,
}

/// Values that compare equal if both are missing (NaN).
#[derive(Debug)]
struct Values<T>(Vec<T>);

impl<T: PartialEq> PartialEq for Values<T> {
    fn eq(&self, other: &Self) -> bool {
        all_same(&self.0, &other.0)
    }
}

/// A value that is not equal to itself is missing; all missing values are treated as equal.
#[expect(clippy::eq_op, reason = "tells a NaN of a type that is only known to be comparable")]
fn all_same<T: PartialEq>(ours: &[T], theirs: &[T]) -> bool {
    let is_same = |(a, b): (&T, &T)| a == b || (a != a && b != b);
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(is_same)
}

impl<T: Feature> Gathered<T> {
    fn row(&self, i: usize, sizes: &Sizes) -> Gathered<T> {
        fn part<V: Copy>(values: &Values<V>, i: usize, width: usize) -> Values<V> {
            Values(values.0[i * width..][..width].to_vec())
        }
        Gathered {
            features: part(&self.features, i, sizes.n_cols),
            labels: part(&self.labels, i, sizes.n_labels),
            categories: part(&self.categories, i, sizes.n_categories),
            weights: part(&self.weights, i, 1),
        }
    }
}

fn gathered<S: RowSource + ?Sized>(source: &S, rows: &[u32]) -> Gathered<S::Feature> {
    let (features, labels) = main_values(source, rows.len(), |x, y| source.gather(rows, x, y));
    let only_labels = filled(labels.0.len(), [-7.25, 1.0e30], |out| source.gather_labels(rows, out));
    assert_eq!(only_labels, labels, "gather_labels differs from gather");
    let n_categories = rows.len() * source.n_categories();
    let categories = filled(n_categories, [u32::MAX, 77], |out| source.gather_categories(rows, out));
    let weights = filled(rows.len(), [-7.25, 1.0e30], |out| source.gather_weights(rows, out));
    Gathered { features, labels, categories, weights }
}

/// Features and labels of `n` rows.
fn main_values<S, F>(source: &S, n: usize, gather: F) -> (Values<S::Feature>, Values<f32>)
where
    S: RowSource + ?Sized,
    F: Fn(&mut [S::Feature], &mut [f32]) -> Result<(), S::Error>,
{
    let n_features = n * source.n_cols();
    // Two initial values, for a type about which nothing else is known: its default, and a value from the source.
    let mut first = vec![S::Feature::default(); n_features];
    let n_labels = n * source.n_labels();
    let failed = gather(&mut first, &mut vec![0.0; n_labels]).err();
    assert!(failed.is_none(), "{n} rows that are there could not be gathered: {failed:?}");
    let other = first.iter().copied().find(|&value| value != S::Feature::default()).unwrap_or_default();
    let labels = filled(n_labels, [-7.25, 1.0e30], |labels| gather(&mut vec![other; n_features], labels));
    let features = filled(n_features, [S::Feature::default(), other], |features| gather(features, &mut vec![0.0; n_labels]));
    (features, labels)
}

/// Gathers into buffers with different initial values: if the results differ, a value was not written.
fn filled<T: Copy + PartialEq + Debug, E: Debug>(
    n: usize,
    leavings: [T; 2],
    gather: impl Fn(&mut [T]) -> Result<(), E>,
) -> Values<T> {
    let [once, twice] = leavings.map(|leaving| {
        let mut values = vec![leaving; n];
        let failed = gather(&mut values).err();
        assert!(failed.is_none(), "rows that are there could not be gathered: {failed:?}");
        Values(values)
    });
    assert_eq!(once, twice, "a gather of {n} values left some unwritten, or is not the same twice");
    once
}

/// The first and the last rows, each once.
fn probed(n_rows: usize) -> Vec<u32> {
    (0..n_rows.min(300)).chain(n_rows.saturating_sub(300).max(300)..n_rows).map(|row| row as u32).collect()
}
