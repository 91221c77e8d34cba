//! Rows that cannot be trained on are refused before anything is executed, with an error that names them.

use std::ops::ControlFlow;

use brisk_loader::{Order, Rows, Subset};
use brisk_nn::{Activation, Bound, Linear, Mlp, MlpConfig, Module, ParametersBuilder, Sequential};
use brisk_table::{Schema, Table, TableWriter};
use brisk_tensor::Tensor;
use brisk_train::{Binary, CountFrom, Error, Feed, FeedChoice, FeedConfig, Model, Predictor, Regression, Trainable, Trainer};

use crate::gpu::cpu;
use crate::run::{N_COLS, Ready, Setting, quiet, rows};

/// Makes a trainer over these rows, and fits.
fn fit(train: &Rows, valid: &Rows) -> Result<(), Error> {
    let Ready { model, params, adam, .. } = Setting::default().ready();
    let device = cpu(1);
    let config = Setting::default().config;
    Trainer::new(&device)
        .config(config)
        .prepare(Trainable::new(&model, &params, &adam), &Binary::new(), train, valid)?
        .fit(&mut quiet())
        .map(|_| ())
}

/// Valid rows, changed.
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
            format!(
                "{set} rows: column 3 of row 17 is {bad}, expected a finite number; replace missing values, or drop such rows"
            )
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

/// The shares of such a batch would all be 0, and nothing would be learnt.
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
    check(&rows(0, 100), &narrow, "valid rows: 2 columns per row, expected 5; give them the columns of the training rows");
    let expected = |set| {
        format!(
            "{set} rows: 2 columns per row, expected 5; build the model for 2 columns, or choose as many columns of the rows as it takes"
        )
    };
    check(&narrow, &narrow, &expected("train"));

    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![4], n_outputs: 1, activation: Activation::relu() };
    let layers = |params: &mut ParametersBuilder| -> Vec<Box<dyn Module>> { vec![Box::new(Mlp::new(params, &sizes))] };
    let model = Model::new(7, |params| Sequential(layers(params)));
    let device = cpu(1);
    let found = [
        Trainer::new(&device).fit(&mut Model::new(7, |params| Mlp::new(params, &sizes)), &Binary::new(), &narrow, &narrow).err(),
        Trainer::new(&device).find_learning_rate(&model, &Binary::new(), &narrow).err(),
        Trainer::new(&device).find_batch_rows(&model, &Binary::new(), &narrow, 1 << 20).err(),
        model.evaluate(&Binary::new(), &narrow).err(),
        model.predict(&narrow).err(),
        Predictor::new(&device, &model, 2).err(),
    ];
    for (found, set) in found.into_iter().zip(["train", "train", "train", "test", "test", "predicted"]) {
        assert_eq!(found.map(|error| error.to_string()), Some(expected(set)));
    }
}

/// If a custom module refuses rows, the error names its operations.
#[derive(Debug)]
struct Own(Linear);

impl Module for Own {
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        self.0.forward(params, x)
    }
}

#[test]
fn a_module_that_does_not_know_its_columns_names_the_operation() {
    let model = Model::new(7, |params| Own(Linear::new(params, "head", N_COLS, 1, Activation::identity())));
    let narrow = Rows::new(vec![1.0, 2.0, 3.0, 4.0], vec![0.0, 1.0], 2).expect("two rows of two columns");
    let error = model.predict(&narrow).expect_err("the model takes five columns").to_string();
    let expected = "linear: `weight` has shape [1, 5], expected [1, 2], as many columns as the input (in head, at ";
    assert!(error.starts_with(expected) && error.contains(file!()), "{error}");
}

/// No line of the caller calls the layer: the trainer calls the sequence, which calls the layer.
#[test]
fn a_layer_within_a_sequence_is_named_with_the_line_that_made_it() {
    let mut made = 0;
    let mut model = Model::new(7, |params| {
        let first = Linear::new(params, "first", N_COLS, 4, Activation::relu());
        made = line!() + 1;
        let head = Linear::new(params, "head", 3, 1, Activation::identity());
        Sequential(vec![Box::new(first), Box::new(head)])
    });
    let (rows, line) = (rows(0, 40), line!() + 1);
    let error = Trainer::new(&cpu(1)).fit(&mut model, &Binary::new(), &rows, &rows).expect_err("the head takes 3 columns");
    let (error, here) = (error.to_string(), file!());
    let place = format!("(in head, at {here}:{line}; the layer was made at {here}:{made}; recorded at ");
    assert!(error.starts_with("linear: `weight` has shape [1, 3], ") && error.contains(&place), "{error}");
}

/// A table on disk, whose columns have names.
#[test]
fn columns_of_a_table_are_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("rows.safetensors");
    let write = |features: &[f32], labels: &[f32]| {
        let schema = Schema { label_names: vec!["price".to_owned()], ..Schema::named(["age", "rooms"]) };
        let mut writer = TableWriter::create(&path, schema).expect("a new file");
        writer.push(features, labels).expect("rows of two columns");
        writer.finish().expect("written");
        Table::open(&path).expect("a table")
    };
    let sizes = MlpConfig { n_inputs: 2, hidden: vec![4], n_outputs: 1, activation: Activation::relu() };
    let error = |table: &Table, feed: FeedConfig| {
        // The last rows are those to validate on, and the others are in a different order.
        let train = Subset::of_rows(table, vec![3, 2, 1, 0]).expect("rows of the table");
        let mut model = Model::new(7, |params| Mlp::new(params, &sizes));
        let mut trainer = Trainer::new(&cpu(1)).feed(&feed);
        trainer.fit(&mut model, &Regression::mse(), &train, table).expect_err("a value is missing").to_string()
    };
    let streamed = || FeedConfig { choice: FeedChoice::Streamed, ..FeedConfig::default() };
    let good = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let mut features = good;
    features[5] = f32::NAN;
    let table = write(&features, &[0.0, 1.0, 2.0, 3.0]);
    for feed in [FeedConfig::default(), streamed()] {
        let error = error(&table, feed);
        assert!(error.starts_with("train rows: column 1 (`rooms`) of row 2 is NaN, expected a finite number"), "{error}");
    }
    let table = write(&good, &[0.0, 1.0, f32::INFINITY, 3.0]);
    let error = error(&table, FeedConfig::default());
    assert!(error.starts_with("train rows: the label (`price`) of row 2 is inf, expected a finite number"), "{error}");
}

#[test]
fn a_damaged_table_is_refused_before_the_first_step() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("rows.safetensors");
    let good = rows(0, 200);
    let mut writer = TableWriter::create(&path, Schema::shaped(&[N_COLS])).expect("a new file");
    writer.push(good.features(), good.labels()).expect("rows");
    writer.finish().expect("written");
    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![4], n_outputs: 1, activation: Activation::relu() };
    let fit = || {
        let table = Table::open(&path).expect("a table");
        let [train, valid] = brisk_loader::split(&table, 1, [0.8, 0.2]).expect("shares of the rows");
        let mut model = Model::new(7, |params| Mlp::new(params, &sizes));
        Trainer::new(&cpu(2)).max_epochs(1).fit(&mut model, &Binary::new(), &train, &valid).map(|_| ())
    };
    fit()?;
    let mut bytes = std::fs::read(&path).expect("a file");
    // The lowest bit of a feature, which makes another valid number.
    bytes[4096 + 4 * 7] ^= 1;
    std::fs::write(&path, &bytes).expect("written");
    let error = fit().expect_err("it is damaged").to_string();
    assert!(error.starts_with(&format!("train rows: {}: bytes ", path.display())), "{error}");
    assert!(error.ends_with("the file is damaged, make it again"), "{error}");
    Ok(())
}

/// Errors for streamed rows that were not checked before name their position in the table, too.
#[test]
fn a_streamed_feed_names_the_row() -> Result<(), Error> {
    let device = cpu(1);
    let bad = changed(|features, _| features[17 * N_COLS + 3] = f32::NAN);
    let config = FeedConfig { choice: FeedChoice::Streamed, chunk_bytes: 64, ..FeedConfig::default() };
    let feed = Feed::new(&device, "train", &bad, Order::Shuffled { seed: 3 }, 8, &config)?;
    let error = feed.open(&device, |open| open.for_each_range(1, CountFrom::Epoch, 1, |_| Ok(ControlFlow::Continue(()))));
    let error = error.expect_err("a value is missing").to_string();
    assert!(error.starts_with("train rows: column 3 of row 17 is NaN"), "{error}");
    Ok(())
}

#[test]
fn one_class_to_validate_on() {
    let ones = changed(|_, labels| labels.fill(1.0));
    check(
        &rows(0, 100),
        &ones,
        "valid rows: 100 of 200 rows are held out for validation, all of class 1, expected rows of both classes; use more or shuffled rows, or hold out more of them",
    );
    let one = Rows::new(vec![0.5; N_COLS], vec![0.0], N_COLS).expect("a row");
    check(
        &rows(0, 9),
        &one,
        "valid rows: 1 of 10 rows are held out for validation, all of class 0, expected rows of both classes; use more or shuffled rows, or hold out more of them",
    );
}

#[test]
fn rows_are_refused_before_anything_runs() {
    let Ready { model, params, adam, .. } = Setting::default().ready();
    let (good, ones) = (rows(0, 100), changed(|_, labels| labels.fill(0.0)));
    let trainer = Trainer::new(&cpu(1)).config(Setting::default().config).prepare(
        Trainable::new(&model, &params, &adam),
        &Binary::new(),
        &good,
        &ones,
    );
    let error = trainer.expect_err("the validation rows are of one class");
    assert!(
        matches!(
            &error,
            Error::RowSet { set: "valid", found, .. } if found == "100 of 200 rows are held out for validation, all of class 0"
        ),
        "{error:?}"
    );
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
    // One over the deviation of the first column overflows f32.
    let tiny = |(i, x): (usize, &mut f32)| *x = if i % (2 * N_COLS) == 0 { 1e-40 } else { 0.0 };
    let nearly = changed(|features, _| features.iter_mut().enumerate().for_each(tiny));
    fit(&nearly, &nearly)
}
