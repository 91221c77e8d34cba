use std::sync::Arc;

use brisk_loader::{Batching, Error, Layout, Loader, RowBuffers, RowSelection, RowSource, Rows, row_source_conformance, split};

/// `n` rows of `n_cols` columns; each value identifies its row and column.
pub(crate) fn numbered(n: usize, n_cols: usize) -> Rows {
    let features = (0..n * n_cols).map(|i| i as f32).collect();
    Rows::new(features, (0..n).map(|row| row as f32).collect(), n_cols).unwrap()
}

/// Rows before whose gathering a function is called.
pub(crate) struct Before<F>(pub(crate) Rows, pub(crate) F);

impl<F: Fn() + Sync> RowSource for Before<F> {
    type Feature = f32;
    type Error = Error;
    fn layout(&self) -> Layout {
        self.0.layout()
    }
    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Error> {
        (self.1)();
        self.0.gather(rows, into)
    }
}

/// The same rows with two categories and a weight each, which identify their row as well.
pub(crate) fn described(n: usize, n_cols: usize) -> Rows {
    let categories: Vec<u32> = (0..2 * n as u32).map(|i| i + 1000).collect();
    let weights: Vec<f32> = (0..n).map(|row| row as f32 + 0.5).collect();
    numbered(n, n_cols).with_categories(categories, 2).unwrap().with_weights(weights).unwrap()
}

#[test]
fn rows_in_memory_conform() {
    for n in [0, 1, 2, 255, 256, 257, 1000] {
        for n_cols in [0, 1, 3, 4, 16, 28, 33] {
            row_source_conformance(&numbered(n, n_cols));
            row_source_conformance(&described(n, n_cols));
        }
    }
}

#[test]
fn features_of_any_plain_type_conform() {
    row_source_conformance(&Rows::new(vec![7_u8; 600], vec![0.0; 300], 2).unwrap());
    row_source_conformance(&Rows::new((0..600_i64).collect::<Vec<_>>(), vec![0.0; 300], 2).unwrap());
    row_source_conformance(&Rows::new(vec![[1_u8, 2, 3]; 600], vec![f32::NAN; 300], 2).unwrap());
}

#[test]
fn rows_in_huge_pages_are_the_same_rows() {
    for n in [0, 1, 1000, 50_000] {
        let rows = described(n, 28);
        let huge = rows.clone().into_huge_pages().unwrap();
        row_source_conformance(&huge);
        assert_eq!((huge.features(), huge.labels()), (rows.features(), rows.labels()), "{n} rows");
        assert_eq!((huge.categories(), huge.weights()), (rows.categories(), rows.weights()), "{n} rows");
    }
    let bytes = Rows::new(vec![7_u8; 600], vec![0.5; 300], 2).unwrap().into_huge_pages().unwrap();
    assert_eq!((bytes.features(), bytes.labels()), (&[7; 600][..], &[0.5; 300][..]));
}

#[test]
fn lent_shared_and_dynamic_sources_conform() {
    let rows = numbered(700, 5);
    row_source_conformance(&&rows);
    row_source_conformance(&Rows::new(rows.features(), rows.labels(), 5).unwrap());
    row_source_conformance(&Arc::new(rows.clone()));
    row_source_conformance(&Box::new(described(300, 5)));
    let dynamic: &dyn RowSource<Feature = f32, Error = Error> = &rows;
    row_source_conformance(dynamic);
}

#[test]
fn rows_without_labels_conform_and_are_batched() {
    for n in [1, 256, 700] {
        let rows = Rows::without_labels((0..3 * n).map(|i| i as f32).collect::<Vec<_>>(), 3).unwrap();
        row_source_conformance(&rows);
        let weights: Vec<f32> = (0..n).map(|row| row as f32 + 0.5).collect();
        let rows = rows.with_categories(vec![7; 2 * n], 2).and_then(|rows| rows.with_weights(weights)).unwrap();
        row_source_conformance(&rows);
        let [part, _] = split(&rows, 7, [0.5, 0.5]).unwrap();
        row_source_conformance(&part);
        let mut loader = Loader::new(&rows, Batching::of(100)).unwrap();
        let mut batches = loader.epoch(0);
        let mut n_found = 0;
        while let Some(batch) = batches.next_batch().unwrap() {
            assert_eq!((batch.labels.len(), batch.features.len()), (0, 300), "{n} rows");
            n_found += batch.rows;
        }
        assert_eq!(n_found, n);
    }
    let error = Rows::without_labels(vec![0.0; 7], 3).unwrap_err().to_string();
    assert_eq!(error, "Rows::without_labels: `features` holds 7 values, expected whole rows of 3");
    let error = Rows::without_labels(vec![0.0; 7], 0).unwrap_err().to_string();
    assert_eq!(error, "Rows::without_labels: rows of 0 `features`, expected at least 1 per row");
}

/// The same rows as [`described`] with three labels each: ten times the row, plus the index of the label.
pub(crate) fn labelled(n: usize, n_cols: usize) -> Rows {
    let rows = described(n, n_cols);
    let labels = (0..n).flat_map(|row| [0, 1, 2].map(|label| (10 * row + label) as f32)).collect();
    let labelled = Rows::with_label_columns(rows.features().to_vec(), labels, n_cols, 3).unwrap();
    labelled.with_categories(rows.categories(), 2).unwrap().with_weights(rows.weights().unwrap()).unwrap()
}

#[test]
fn rows_with_several_labels_conform() {
    for n in [0, 1, 257, 1000] {
        let rows = labelled(n, 3);
        row_source_conformance(&rows);
        row_source_conformance(&Box::new(rows.clone()));
        row_source_conformance(&rows.clone().into_huge_pages().unwrap());
        let [first, second] = split(&rows, 7, [0.5, 0.5]).unwrap();
        row_source_conformance(&first);
        row_source_conformance(&second);
    }
    let error = Rows::with_label_columns(vec![0.5, 1.5], vec![0.0; 5], 1, 3).unwrap_err().to_string();
    assert!(error.contains("`labels` holds 5 values, expected whole rows of 3"), "{error}");
    let error = Rows::with_label_columns(vec![0.5], vec![0.0; 3], 1, 0).unwrap_err().to_string();
    assert_eq!(error, "Rows::with_label_columns: rows of 0 `labels`, expected at least 1 per row");
}

/// A source that implements only the required methods.
struct Least(Rows);

impl RowSource for Least {
    type Feature = f32;
    type Error = Error;
    fn layout(&self) -> Layout {
        self.0.layout()
    }
    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Error> {
        let layout = self.layout();
        into.check(&rows, &layout)?;
        into.for_each_row(&rows, &layout, |row, into| self.0.gather(RowSelection::Numbers(&[row]), into))
    }
}

#[test]
fn rows_that_are_filled_one_by_one_conform() {
    for n in [0, 1, 255, 256, 257, 900] {
        row_source_conformance(&Least(numbered(n, 3)));
    }
}

/// Claims to have categories or weights, and gathers none.
struct Unkept {
    n_categories: usize,
    has_weights: bool,
}

impl RowSource for Unkept {
    type Feature = f32;
    type Error = Error;
    fn layout(&self) -> Layout {
        Layout { n_categories: self.n_categories, has_weights: self.has_weights, ..Layout::new(10, 1) }
    }
    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Error> {
        let into = RowBuffers { categories: None, weights: None, ..into };
        numbered(10, 1).gather(rows, into)
    }
}

#[test]
#[should_panic(expected = "left some unwritten")]
fn conformance_sees_categories_that_never_come() {
    row_source_conformance(&Unkept { n_categories: 2, has_weights: false });
}

#[test]
#[should_panic(expected = "left some unwritten")]
fn conformance_sees_weights_that_never_come() {
    row_source_conformance(&Unkept { n_categories: 0, has_weights: true });
}

/// Fulfils the contract except for one thing.
struct Broken(Rows, fn(&mut [f32], &mut [f32]));

impl RowSource for Broken {
    type Feature = f32;
    type Error = Error;
    fn layout(&self) -> Layout {
        self.0.layout()
    }
    fn gather(&self, rows: RowSelection<'_>, mut into: RowBuffers<'_, f32>) -> Result<(), Error> {
        self.0.gather(rows.clone(), into.reborrow())?;
        if let RowSelection::Range(_) = rows {
            (self.1)(into.features.unwrap_or_default(), into.labels.unwrap_or_default());
        }
        Ok(())
    }
}

#[test]
#[should_panic(expected = "differs from its numbers")]
fn conformance_sees_a_wrong_value() {
    row_source_conformance(&Broken(numbered(400, 3), |features, _| {
        if let Some(last) = features.last_mut() {
            *last += 1.0;
        }
    }));
}

#[test]
fn errors_carry_the_numbers() {
    let rows = numbered(10, 2);
    let error = rows.gather(RowSelection::Numbers(&[3, 12]), RowBuffers::new(&mut [0.0; 4], &mut [0.0; 2])).unwrap_err();
    assert_eq!(error.to_string(), "row 12 was requested, the source has 10 rows; rows count from 0");
    let error = rows.gather(RowSelection::Numbers(&[3]), RowBuffers::new(&mut [0.0; 4], &mut [0.0; 1])).unwrap_err();
    assert!(error.to_string().starts_with("gather: `features` holds 4 values, expected 2"), "found: {error}");
    let error = described(10, 2)
        .gather(RowSelection::Numbers(&[3, 12]), RowBuffers { categories: Some(&mut [0; 4]), ..RowBuffers::default() })
        .unwrap_err();
    assert_eq!(error.to_string(), "row 12 was requested, the source has 10 rows; rows count from 0");
    let error = described(10, 2)
        .gather(RowSelection::Numbers(&[3]), RowBuffers { weights: Some(&mut [0.0; 2]), ..RowBuffers::default() })
        .unwrap_err();
    assert!(error.to_string().starts_with("gather: `weights` holds 2 values, expected 1"), "found: {error}");
    let error = rows.clone().with_categories(vec![0; 19], 2).unwrap_err();
    assert!(error.to_string().starts_with("Rows::with_categories: `categories` holds 19 values, expected 20"), "found: {error}");
    let error = rows.clone().with_weights(vec![0.0; 9]).unwrap_err();
    assert!(matches!(error, Error::Length { op: "Rows::with_weights", expected: 10, found: 9, .. }), "found: {error}");
    for weight in [-1.0, f32::NAN, f32::INFINITY] {
        let weights = [vec![0.0; 7], vec![weight; 3]].concat();
        let error = rows.clone().with_weights(weights).unwrap_err();
        assert!(matches!(error, Error::RowWeight { row: 7, .. }), "found: {error}");
    }
    let error = Rows::new(vec![0.0; 5], vec![0.0; 2], 3).unwrap_err();
    assert!(matches!(error, Error::Length { op: "Rows::new", expected: 6, found: 5, .. }), "found: {error}");
}
