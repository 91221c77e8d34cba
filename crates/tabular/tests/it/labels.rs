//! Labels of other sources than that of training, and rows without labels.

use brisk_loader::{RowSource, Rows, labels_of};
use brisk_tabular::{Columns, Error, PreprocessedError, Preprocessing, Scaling, Target};

fn strings<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// Rows of one column with these labels, as the task of `target` takes them.
fn labels_as(target: &Target, columns: Columns, labels: &[f32]) -> Result<Vec<f32>, Error> {
    let features: Vec<f32> = (0..labels.len()).map(|row| row as f32).collect();
    let rows = Rows::new(features, labels.to_vec(), 1).expect("a label a row");
    let preprocessing = Preprocessing::fit(&columns, &rows, Scaling::Standard)?;
    let rows = preprocessing.over(&columns, &rows)?.with_target(target);
    labels_of(&rows).map_err(|error| {
        assert!(matches!(error, PreprocessedError::UnknownClass { .. }), "{error}");
        brisk_train::Error::Rows { set: "test", reason: error.to_string() }.into()
    })
}

#[test]
fn classes_are_found_by_their_names() -> Result<(), Error> {
    let target = Target::Classes { name: "y".to_owned(), classes: strings(["ant", "bee", "3"]), labels: vec![0.0, 1.0, 2.0] };
    let of = |names: &[&str], labels: &[f32]| {
        let label_classes = names.iter().map(|&name| name.to_owned()).collect();
        labels_as(&target, Columns { label_classes, ..Columns::numbers(["x"]) }, labels)
    };
    assert_eq!(of(&["bee", "3.0"], &[1.0, 0.0])?, [2.0, 1.0]);
    assert_eq!(of(&["3", "bee", "ant"], &[0.0, 1.0, 2.0])?, [2.0, 1.0, 0.0]);
    assert_eq!(of(&["ant", "wasp"], &[0.0])?, [0.0], "a class of no row does not matter");
    assert!(of(&["ant"], &[f32::NAN])?[0].is_nan(), "a label that is missing stays so");
    for (names, labels, class) in [(&["ant", "wasp"][..], &[0.0, 1.0][..], "wasp"), (&[], &[0.0, 7.0], "7")] {
        let error = of(names, labels).expect_err("training had no such row").to_string();
        for part in ["row 1", &format!("`{class}`"), "\"bee\"", "no row"] {
            assert!(error.contains(part), "`{part}` in `{error}`");
        }
    }
    assert_eq!(of(&[], &[2.0, 0.0])?, [2.0, 0.0], "numbers without names are those of the target");
    Ok(())
}

#[test]
fn numbers_may_have_another_offset() -> Result<(), Error> {
    let target = Target::Number { name: "y".to_owned(), offset: 1000.0, scale: Default::default(), mean: 5.0, std: 2.0 };
    let of = |label_offset, labels: &[f32]| labels_as(&target, Columns { label_offset, ..Columns::numbers(["x"]) }, labels);
    assert_eq!(of(1000.0, &[5.0, 9.0])?, [0.0, 2.0]);
    assert_eq!(of(1002.0, &[3.0, 7.0])?, [0.0, 2.0]);
    Ok(())
}

#[test]
fn rows_without_labels_are_looked_at_too() -> Result<(), Error> {
    let columns = Columns::numbers(["x"]);
    let rows = Rows::without_labels(vec![1.0, 2.0, 3.0], 1).expect("a number a row");
    let preprocessing = Preprocessing::fit(&columns, &rows, Scaling::Standard)?;
    assert_eq!((preprocessing.numbers()[0].mean, rows.n_rows()), (2.0, 3));
    let new = Rows::without_labels(vec![f32::NAN, 1e9], 1).expect("a number a row");
    let over = preprocessing.over(&columns, &new)?;
    assert_eq!((over.missing_values()?[0].n_missing, over.far_values()?[0].n_rows), (1, 1));
    Ok(())
}

#[test]
fn two_columns_of_one_name_are_refused() {
    let rows = Rows::without_labels(vec![1.0, 2.0, 3.0, 5.0], 2).expect("two numbers a row");
    let error = Preprocessing::fit(&Columns::numbers(["a", "a"]), &rows, Scaling::Standard).expect_err("one would be lost");
    assert!(matches!(&error, Error::SameName { column } if column == "a"), "{error}");
}
