use brisk_loader::{Rows, Subset};
use brisk_train::Labels;

/// An error names the row of the file rather than that of the split.
#[test]
fn the_row_of_an_error_is_that_of_the_source() {
    let labels: Vec<f32> = (0..100).map(|row| if row == 7 { 3.0 } else { 1.0 }).collect();
    let source = Rows::new(vec![0.0; 100], labels, 1).expect("a label a row");
    let reversed = Subset::of_rows(&source, (0..100).rev().collect::<Vec<_>>()).expect("rows of the source");
    let error = Labels::Binary.read("train", &reversed).expect_err("one label is 3");
    assert!(error.to_string().starts_with("train rows: the label of row 7 is 3"), "{error}");
}
