use brisk_loader::{Batching, RowSource, Rows, Shuffle, Subset, k_fold, row_source_conformance, split};

use crate::batches::all;
use crate::source::numbered;

fn rows_of<S: RowSource>(subset: &Subset<S>) -> Vec<u32> {
    (0..subset.n_rows() as u32).map(|row| subset.row(row)).collect()
}

#[track_caller]
fn check_cover<'a>(parts: impl IntoIterator<Item = &'a Subset<&'a Rows>>, n_rows: usize) {
    let mut rows: Vec<u32> = parts.into_iter().flat_map(rows_of).collect();
    rows.sort_unstable();
    assert_eq!(rows, (0..n_rows as u32).collect::<Vec<_>>(), "parts have nothing in common and leave nothing out");
}

#[track_caller]
fn check_sizes<const N: usize>(n_rows: usize, fractions: [f64; N], expected: [usize; N]) {
    let source = numbered(n_rows, 2);
    let parts = split(&source, 42, fractions).unwrap();
    assert_eq!(parts.each_ref().map(|part| part.n_rows()), expected, "{n_rows} rows by {fractions:?}");
    check_cover(&parts, n_rows);
}

#[test]
fn sizes_are_exact() {
    check_sizes(1000, [0.8, 0.1, 0.1], [800, 100, 100]);
    check_sizes(11, [0.8, 0.1, 0.1], [9, 1, 1]);
    check_sizes(10, [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0], [3, 4, 3]);
    check_sizes(7, [0.0, 1.0, 0.0], [0, 7, 0]);
    check_sizes(7, [0.1; 10], [1, 0, 1, 1, 1, 0, 1, 1, 0, 1]);
    check_sizes(0, [0.5, 0.5], [0, 0]);
    check_sizes(5, [1.0], [5]);
}

#[test]
fn parts_conform_and_can_be_loaded() {
    let source = numbered(1500, 3);
    let [train, test] = split(&source, 7, [0.7, 0.3]).unwrap();
    row_source_conformance(&train);
    row_source_conformance(&test);
    let expected = rows_of(&test);
    let labels: Vec<u32> = all(&test, &Batching::of(100), 0)
        .iter()
        .flat_map(|batch| batch.labels[..batch.rows].to_vec())
        .map(|y| y as u32)
        .collect();
    assert_eq!(labels, expected, "a batch in order is the subset's order");
    for fold in k_fold(&source, 7, 3).unwrap() {
        row_source_conformance(&fold.train);
        row_source_conformance(&fold.valid);
    }
}

#[test]
fn a_subset_of_a_subset_conforms() {
    let source = numbered(900, 2);
    let [train, _] = split(&source, 1, [0.5, 0.5]).unwrap();
    let [inner, _] = split(&train, 2, [0.9, 0.1]).unwrap();
    row_source_conformance(&inner);
}

#[test]
fn a_split_is_the_seed_s() {
    let source = numbered(1000, 1);
    let first = |seed| rows_of(&split(&source, seed, [0.5, 0.5]).unwrap()[0]);
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
    // Not the training order of the same seed.
    let shuffle = Shuffle::new(1000, 1, 0);
    assert_ne!(first(1), (0..500).map(|position| shuffle.row(position)).collect::<Vec<_>>());
}

#[test]
fn folds_cover() {
    let source = numbered(103, 1);
    for n_folds in [2, 3, 10, 103] {
        let folds = k_fold(&source, 5, n_folds).unwrap();
        assert_eq!(folds.len(), n_folds);
        check_cover(folds.iter().map(|fold| &fold.valid), 103);
        for fold in &folds {
            check_cover([&fold.train, &fold.valid], 103);
            assert!((103 / n_folds..=103_usize.div_ceil(n_folds)).contains(&fold.valid.n_rows()));
        }
    }
}

#[test]
fn what_does_not_split_is_refused() {
    let source = numbered(10, 1);
    for fractions in [[0.5, 0.4], [1.5, -0.5], [f64::NAN, 1.0], [1.0, 1.0]] {
        assert!(split(&source, 0, fractions).unwrap_err().to_string().starts_with("cannot split by ["));
    }
    for n_folds in [0, 1, 11] {
        assert!(k_fold(&source, 0, n_folds).unwrap_err().to_string().starts_with("cannot make "));
    }
}
