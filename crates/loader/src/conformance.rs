use std::fmt::Debug;

use crate::chunks::RowMemory;
use crate::gather::{Layout, RowBuffers, RowSelection};
use crate::source::{Feature, Hint, RowSource};

/// Checks that a source fulfils the contract of [`RowSource`]; for the tests of its implementation.
///
/// Checks the first and last few hundred rows, so it is fast even for a large source. It does not know the expected values: it
/// checks that the values are the same however they are requested, and that invalid requests are errors.
///
/// # Panics
/// If the source violates the contract; the message names the rule.
pub fn row_source_conformance<S: RowSource + ?Sized>(source: &S) {
    let layout @ Layout { n_rows, n_cols, n_labels, .. } = source.layout();
    assert!(u32::try_from(n_rows).is_ok(), "there are {n_rows} rows: a source has at most 2^32 - 1");
    let (names, fingerprint) = (source.names(), source.fingerprint());
    let is_beyond = names.columns.len() > n_cols || names.labels.len() > n_labels || names.categories.len() > layout.n_categories;
    assert!(!is_beyond, "a column beyond the last one has a name");
    if let Some(moments) = source.column_moments() {
        assert_eq!(moments.len(), n_cols, "there are moments of another number of columns");
        let are_usable = moments.iter().all(|of| of.mean.is_finite() && of.std.is_finite() && of.std >= 0.0);
        assert!(are_usable, "a mean or a standard deviation is no number: {moments:?}");
    }
    let probed = probed(n_rows);
    give_hints(source, &probed);

    let one_by_one: Vec<_> = probed.iter().map(|&row| gathered(source, &RowSelection::Numbers(&[row]))).collect();
    let together = gathered(source, &RowSelection::Numbers(&probed));
    for (i, one) in one_by_one.iter().enumerate() {
        assert_eq!(together.row(i, &layout), one.row(0, &layout), "row {} differs when gathered among others", probed[i]);
    }
    let backwards: Vec<u32> = probed.iter().rev().copied().collect();
    let reversed = gathered(source, &RowSelection::Numbers(&backwards));
    for (i, one) in one_by_one.iter().rev().enumerate() {
        assert_eq!(reversed.row(i, &layout), one.row(0, &layout), "row {} differs when gathered in another order", backwards[i]);
    }
    if let (Some(&first), Some(&last)) = (probed.first(), probed.last()) {
        let repeated = gathered(source, &RowSelection::Numbers(&[last, first, last]));
        assert_eq!(repeated.row(0, &layout), repeated.row(2, &layout), "a row requested twice differs from itself");
    }
    for range in [0..n_rows.min(300), n_rows.saturating_sub(300)..n_rows, 0..n_rows.min(1), n_rows / 2..n_rows / 2] {
        let numbers: Vec<u32> = range.clone().map(|row| row as u32).collect();
        let (by_range, by_number) = (RowSelection::Range(range.clone()), RowSelection::Numbers(&numbers));
        assert_eq!(gathered(source, &by_range), gathered(source, &by_number), "the range {range:?} differs from its numbers");
    }

    check_refusals(source, &probed);
    give_hints(source, &probed);
    assert_eq!((source.layout(), source.fingerprint()), (layout, fingerprint), "the source changed");
    assert_eq!(gathered(source, &RowSelection::Numbers(&probed)), together, "hints changed what is gathered");
}

/// Gives all hints, for rows that exist and rows that do not.
fn give_hints<S: RowSource + ?Sized>(source: &S, probed: &[u32]) {
    let n = source.n_rows();
    let ranges = [0..n, 0..0, n / 2..n, n / 2..n + 5, n + 1..n + 2, usize::MAX - 1..usize::MAX];
    let numbers = [probed, &[], &[u32::MAX]].map(RowSelection::Numbers);
    for rows in numbers.into_iter().chain(ranges.map(RowSelection::Range)) {
        source.hint(rows.clone(), Hint::WillNeed);
        source.hint(rows, Hint::DontNeed);
    }
}

/// Checks that rows beyond the end and buffers of the wrong length are errors, whichever values are wanted.
fn check_refusals<S: RowSource + ?Sized>(source: &S, probed: &[u32]) {
    let Layout { n_rows, n_cols, n_labels, n_categories, has_weights, .. } = source.layout();
    let widths = [n_cols, n_labels, n_categories, usize::from(has_weights)];
    let is_refused = |rows: &RowSelection<'_>, lengths: [Option<usize>; 4]| {
        let [features, labels, categories, weights] = lengths;
        let mut features = features.map(|n| vec![S::Feature::default(); n]);
        let [mut labels, mut weights] = [labels, weights].map(|n| n.map(|n| vec![0.0; n]));
        let mut categories = categories.map(|n| vec![0; n]);
        let into = RowBuffers {
            features: features.as_deref_mut(),
            labels: labels.as_deref_mut(),
            categories: categories.as_deref_mut(),
            weights: weights.as_deref_mut(),
        };
        source.gather(rows.clone(), into).is_err()
    };

    let beyond = n_rows as u32;
    let lists = [vec![beyond], vec![u32::MAX], probed.iter().copied().chain([beyond]).collect()];
    let ranges = [n_rows..n_rows + 1, n_rows.saturating_sub(3)..n_rows + 1, usize::MAX - 1..usize::MAX];
    for rows in lists.iter().map(|rows| RowSelection::Numbers(rows)).chain(ranges.map(RowSelection::Range)) {
        let whole = widths.map(|width| Some(rows.len() * width));
        assert!(is_refused(&rows, whole), "a row beyond {n_rows} was gathered without an error");
        for (part, what) in WANTED.into_iter().enumerate().filter(|&(part, _)| widths[part] > 0) {
            let only = std::array::from_fn(|i| (i == part).then_some(rows.len() * widths[i]));
            assert!(is_refused(&rows, only), "{what} of a row beyond {n_rows} were gathered without an error");
        }
    }
    let Some(&row) = probed.first() else { return };
    let one = [row];
    let start = row as usize;
    for rows in [RowSelection::Numbers(&one), RowSelection::Range(start..start + 1)] {
        for (part, what) in WANTED.into_iter().enumerate() {
            let width = widths[part];
            for wrong in [0, width + 1, 2 * width].into_iter().filter(|&wrong| wrong != width) {
                let among = std::array::from_fn(|i| Some(if i == part { wrong } else { widths[i] }));
                let only = std::array::from_fn(|i| (i == part).then_some(wrong));
                for lengths in [among, only] {
                    assert!(is_refused(&rows, lengths), "gather took {what} of {wrong} values for one row of {width}");
                }
            }
        }
    }
    if n_rows > 1 && widths != [0; 4] {
        let is_short = is_refused(&RowSelection::Range(0..2), widths.map(Some));
        assert!(is_short, "gather took buffers for one row where there are two");
    }
}

/// The parts of a row, in the order of the fields of [`RowBuffers`].
const WANTED: [&str; 4] = ["features", "labels", "categories", "weights"];

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
    fn row(&self, i: usize, layout: &Layout) -> Gathered<T> {
        fn part<V: Copy>(values: &Values<V>, i: usize, width: usize) -> Values<V> {
            Values(values.0[i * width..][..width].to_vec())
        }
        Gathered {
            features: part(&self.features, i, layout.n_cols),
            labels: part(&self.labels, i, layout.n_labels),
            categories: part(&self.categories, i, layout.n_categories),
            weights: part(&self.weights, i, usize::from(layout.has_weights)),
        }
    }
}

/// All values of some rows, which must be the same if only some of them are wanted.
fn gathered<S: RowSource + ?Sized>(source: &S, rows: &RowSelection<'_>) -> Gathered<S::Feature> {
    let layout = source.layout();
    let n = rows.len();
    // Two initial values, for a type about which nothing else is known: its default, and a value from the source.
    let zero = S::Feature::default();
    let first = filled(source, rows, n * layout.n_cols, [zero; 2], |into, features| into.features = Some(features));
    let other = first.0.iter().copied().find(|&value| value != zero).unwrap_or_default();
    let features = filled(source, rows, n * layout.n_cols, [zero, other], |into, features| into.features = Some(features));
    let labels = filled(source, rows, n * layout.n_labels, [-7.25, 1.0e30], |into, labels| into.labels = Some(labels));
    let codes = filled(source, rows, n * layout.n_categories, [u32::MAX, 77], |into, codes| into.categories = Some(codes));
    let n_weights = if layout.has_weights { n } else { 0 };
    let weights = filled(source, rows, n_weights, [-7.25, 1.0e30], |into, weights| into.weights = Some(weights));
    let separate = Gathered { features, labels, categories: codes, weights };

    let mut together = RowMemory::new(layout, n);
    let failed = source.gather(rows.clone(), together.buffers(n)).err();
    assert!(failed.is_none(), "{n} rows that are there could not be gathered: {failed:?}");
    let all = together.chunk(0, n);
    let together = Gathered {
        features: Values(all.features.to_vec()),
        labels: Values(all.labels.to_vec()),
        categories: Values(all.categories.to_vec()),
        weights: Values(all.weights.to_vec()),
    };
    assert_eq!(together, separate, "values differ when they are gathered separately");
    separate
}

/// Gathers one part of rows into buffers with different initial values: if the results differ, a value was not written.
fn filled<S: RowSource + ?Sized, T: Copy + PartialEq + Debug>(
    source: &S,
    rows: &RowSelection<'_>,
    n: usize,
    leavings: [T; 2],
    want: impl for<'a> Fn(&mut RowBuffers<'a, S::Feature>, &'a mut [T]),
) -> Values<T> {
    let [once, twice] = leavings.map(|leaving| {
        let mut values = vec![leaving; n];
        let mut into = RowBuffers::default();
        want(&mut into, &mut values);
        let failed = source.gather(rows.clone(), into).err();
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
