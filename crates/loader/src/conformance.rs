use std::ops::Range;

use crate::RowSource;

/// Checks that a source keeps the contract of [`RowSource`]; for the tests of whoever implements it.
///
/// Looks at the first and last few hundred rows, so it is quick on a large source. It cannot know what the values should be: it checks
/// that they are the same however they are asked for, and that what must be an error is one.
///
/// # Panics
/// If the source breaks the contract, with the sentence that it broke.
pub fn row_source_conformance<S: RowSource + ?Sized>(source: &S) {
    let (n_rows, n_cols) = (source.n_rows(), source.n_cols());
    assert!(u32::try_from(n_rows).is_ok(), "there are {n_rows} rows: a source has at most 2^32 - 1");

    let probed = probed(n_rows);
    let one_by_one: Vec<_> = probed.iter().map(|&row| gathered(source, &[row])).collect();

    let together = gathered(source, &probed);
    for (i, one) in one_by_one.iter().enumerate() {
        assert_eq!(together.row(i, n_cols), one.row(0, n_cols), "row {} differs when gathered among others", probed[i]);
    }
    let backwards: Vec<u32> = probed.iter().rev().copied().collect();
    let reversed = gathered(source, &backwards);
    for (i, one) in one_by_one.iter().rev().enumerate() {
        assert_eq!(reversed.row(i, n_cols), one.row(0, n_cols), "row {} differs when gathered in another order", backwards[i]);
    }
    if let (Some(&first), Some(&last)) = (probed.first(), probed.last()) {
        let repeated = gathered(source, &[last, first, last]);
        assert_eq!(repeated.row(0, n_cols), repeated.row(2, n_cols), "a row asked for twice differs from itself");
    }

    for range in [0..n_rows.min(300), n_rows.saturating_sub(300)..n_rows, 0..n_rows.min(1), n_rows / 2..n_rows / 2] {
        let numbers: Vec<u32> = range.clone().map(|row| row as u32).collect();
        assert_eq!(
            gathered_range(source, range.clone()),
            gathered(source, &numbers),
            "gather_range({range:?}) differs from gather"
        );
    }

    let beyond = n_rows as u32;
    for rows in [vec![beyond], vec![u32::MAX], probed.iter().copied().chain([beyond]).collect()] {
        let (mut features, mut labels) = (vec![0.0; rows.len() * n_cols], vec![0.0; rows.len()]);
        assert!(source.gather(&rows, &mut features, &mut labels).is_err(), "a row beyond {n_rows} was gathered without an error");
    }
    for range in [n_rows..n_rows + 1, n_rows.saturating_sub(3)..n_rows + 1, usize::MAX - 1..usize::MAX] {
        let (mut features, mut labels) = (vec![0.0; range.len() * n_cols], vec![0.0; range.len()]);
        let result = source.gather_range(range.clone(), &mut features, &mut labels);
        assert!(result.is_err(), "gather_range({range:?}) of {n_rows} rows is no error");
    }
    if let Some(&row) = probed.first() {
        for (n_features, n_labels) in [(n_cols + 1, 1), (2 * n_cols, 2), (n_cols, 0), (n_cols, 2)] {
            let (mut features, mut labels) = (vec![0.0; n_features], vec![0.0; n_labels]);
            let what = format!("features of {n_features} values and labels of {n_labels} for one row of {n_cols} columns");
            assert!(source.gather(&[row], &mut features, &mut labels).is_err(), "gather took {what}");
            let range = row as usize..row as usize + 1;
            assert!(source.gather_range(range, &mut features, &mut labels).is_err(), "gather_range took {what}");
        }
        let result = source.gather_range(0..2, &mut vec![0.0; n_cols], &mut [0.0]);
        assert!(result.is_err(), "gather_range took buffers for one row where there are two");
    }
    source.prefetch(&probed);
    source.prefetch(&[]);
    source.prefetch(&[u32::MAX]);
    assert_eq!((source.n_rows(), source.n_cols()), (n_rows, n_cols), "the source changed its size");
}

/// Bits of the values, so that a missing value (NaN) equals itself.
#[derive(Debug, PartialEq)]
struct Gathered {
    features: Vec<u32>,
    labels: Vec<u32>,
}

impl Gathered {
    fn row(&self, i: usize, n_cols: usize) -> (&[u32], u32) {
        (&self.features[i * n_cols..][..n_cols], self.labels[i])
    }
}

fn gathered<S: RowSource + ?Sized>(source: &S, rows: &[u32]) -> Gathered {
    filled(source, rows.len(), |features, labels| source.gather(rows, features, labels))
}

fn gathered_range<S: RowSource + ?Sized>(source: &S, rows: Range<usize>) -> Gathered {
    filled(source, rows.len(), |features, labels| source.gather_range(rows.clone(), features, labels))
}

/// Gathers twice over different leavings: a value that still differs was never written.
fn filled<S, F>(source: &S, n: usize, gather: F) -> Gathered
where
    S: RowSource + ?Sized,
    F: Fn(&mut [f32], &mut [f32]) -> Result<(), S::Error>,
{
    let [once, twice] = [-7.25_f32, 1.0e30].map(|leaving| {
        let (mut features, mut labels) = (vec![leaving; n * source.n_cols()], vec![leaving; n]);
        if let Err(error) = gather(&mut features, &mut labels) {
            panic!("{n} rows that are there could not be gathered: {error}");
        }
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect();
        Gathered { features: bits(features), labels: bits(labels) }
    });
    assert_eq!(once, twice, "a gather of {n} rows left some values unwritten, or is not the same twice");
    once
}

/// The first and the last rows, each once.
fn probed(n_rows: usize) -> Vec<u32> {
    (0..n_rows.min(300)).chain(n_rows.saturating_sub(300).max(300)..n_rows).map(|row| row as u32).collect()
}
