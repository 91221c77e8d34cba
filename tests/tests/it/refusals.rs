//! Rows that cannot be trained on are refused before anything runs, by an error that says which.

use brisk_loader::Rows;
use brisk_train::{Binary, Error, Learner, Trainer};

use crate::gpu::cpu;
use crate::run::{N_COLS, Ready, Setting, quiet, rows};

/// Makes a trainer over these rows, and fits.
fn fit(train: &Rows, valid: &Rows) -> Result<(), Error> {
    let Ready { model, params, adam, .. } = Setting::default().ready();
    let device = cpu(1);
    let config = Setting::default().config;
    Trainer::new(&device)
        .config(config)
        .prepare(Learner::new(&model, &params, &adam), &Binary::new(), train, valid)?
        .fit(&mut quiet())
        .map(|_| ())
}

/// Good rows, changed.
fn changed(change: impl FnOnce(&mut Vec<f32>, &mut Vec<f32>)) -> Rows {
    let good = rows(0, 100);
    let (mut features, mut labels) = (good.features().to_vec(), good.labels().to_vec());
    change(&mut features, &mut labels);
    Rows::new(features, labels, N_COLS).expect("as many labels as rows")
}

#[track_caller]
fn check(train: &Rows, valid: &Rows, expected: &str) {
    let error = fit(train, valid).expect_err("these rows are to be refused");
    assert_eq!(error.to_string(), expected, "{error:?}");
}

#[test]
fn features_that_are_no_numbers() {
    let good = rows(0, 100);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let rows = changed(|features, _| features[17 * N_COLS + 3] = bad);
        let message = |set| {
            format!("{set} rows: column 3 holds NaN or infinity, expected finite numbers; replace missing values before training")
        };
        check(&rows, &good, &message("train"));
        check(&good, &rows, &message("valid"));
    }
}

#[test]
fn labels_of_no_class() {
    let good = rows(0, 100);
    for bad in [2.0, -1.0, 0.5, f32::NAN] {
        let rows = changed(|_, labels| labels[42] = bad);
        let message = |set| {
            format!(
                "{set} rows: the label of row 42 is {bad}, expected 0 or 1; choose another label column, or convert the labels to 0 and 1"
            )
        };
        check(&rows, &good, &message("train"));
        check(&good, &rows, &message("valid"));
    }
}

/// Shares of such a batch would all be 0, and nothing would be learnt.
#[test]
fn weights_that_add_up_to_infinity() {
    let good = rows(0, 100);
    let weighted = |weight| rows(0, 100).with_weights(vec![weight; 100]).expect("a weight a row");
    check(
        &weighted(3e38),
        &good,
        "train rows: the weight of row 0 is 3e38, expected at most 5.3169117e36 in batches of 64 rows, whose weights are summed; scale the weights down",
    );
    assert!(fit(&weighted(5e36), &good).is_ok(), "the weights of 64 rows have a sum");
}

#[test]
fn nothing_to_train_on() {
    let (good, none) = (rows(0, 100), rows(0, 0));
    let message = |set, n_rows, n_cols| {
        format!("{set} rows: {n_rows} rows of {n_cols} columns, expected at least one of each and fewer than 2^32 - 1 rows")
    };
    check(&none, &good, &message("train", 0, N_COLS));
    check(
        &good,
        &none,
        "valid rows: none of 100 rows were held out for validation, expected some of each class; use more rows, or hold out more of them",
    );
    let no_columns = Rows::new(vec![], vec![0.0, 1.0], 0).expect("nothing is as long as nothing");
    check(&no_columns, &no_columns, &message("train", 2, 0));
}

#[test]
fn other_columns() {
    let narrow = Rows::new(vec![1.0, 2.0, 3.0, 4.0], vec![0.0, 1.0], 2).expect("two rows of two columns");
    check(&rows(0, 100), &narrow, "valid rows have 2 columns, expected 5, as many as the training rows");
    let error = fit(&narrow, &narrow).expect_err("the model takes five columns").to_string();
    let expected = "linear: `weight` has shape [24, 5], expected [24, 2], as many columns as the input (in layers.0, at ";
    assert!(error.starts_with(expected) && error.contains(&format!(", from {}:", file!())), "{error}");
}

#[test]
fn one_class_to_validate_on() {
    let ones = changed(|_, labels| labels.fill(1.0));
    check(
        &rows(0, 100),
        &ones,
        "valid rows: 100 of 200 rows were held out for validation, and all 100 labels are 1, expected both classes; use more rows, or hold out more of them",
    );
    let one = Rows::new(vec![0.5; N_COLS], vec![0.0], N_COLS).expect("a row");
    check(
        &rows(0, 9),
        &one,
        "valid rows: 1 of 10 rows was held out for validation, and its label is 0, expected both classes; use more rows, or hold out more of them",
    );
}

#[test]
fn rows_are_refused_before_anything_runs() {
    let Ready { model, params, adam, .. } = Setting::default().ready();
    let (good, ones) = (rows(0, 100), changed(|_, labels| labels.fill(0.0)));
    let trainer = Trainer::new(&cpu(1)).config(Setting::default().config).prepare(
        Learner::new(&model, &params, &adam),
        &Binary::new(),
        &good,
        &ones,
    );
    let error = trainer.expect_err("the validation rows are of one class");
    assert!(matches!(error, Error::HeldOutOneClass { n_rows: 100, n_train_rows: 100, class: 0, label: None }), "{error:?}");
}

#[test]
fn one_row_of_each_class_is_enough() -> Result<(), Error> {
    let two = Rows::new(vec![0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0], vec![0.0, 1.0], N_COLS).expect("two rows");
    fit(&two, &two)
}

#[test]
fn columns_that_never_change_are_fine() -> Result<(), Error> {
    let flat = changed(|features, _| features.iter_mut().step_by(N_COLS).for_each(|x| *x = 7.0));
    fit(&flat, &flat)?;
    // One over the deviation of the first column is no f32.
    let tiny = |(i, x): (usize, &mut f32)| *x = if i % (2 * N_COLS) == 0 { 1e-40 } else { 0.0 };
    let nearly = changed(|features, _| features.iter_mut().enumerate().for_each(tiny));
    fit(&nearly, &nearly)
}
