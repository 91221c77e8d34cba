//! Labels that a task does not take: an error before the first step that names the rows, the row, the label and the labels that
//! are expected.

use brisk_loader::Rows;
use brisk_nn::{Activation, Linear};
use brisk_train::{Binary, Classification, Error, FeedChoice, FeedConfig, Model, MultiLabel, Regression, Task, Trainer};

use crate::gpu::cpu;

/// Forty rows with labels of 0 and 1, except for `odd`, the last label of row 33.
fn rows(n_labels: usize, odd: Option<f32>) -> Rows {
    let mut labels: Vec<f32> = (0..40 * n_labels).map(|i| (i % 2) as f32).collect();
    labels[34 * n_labels - 1] = odd.unwrap_or(labels[34 * n_labels - 1]);
    Rows::with_label_columns(vec![0.5; 40], labels, 1, n_labels).expect("a label for each row")
}

/// `odd` among the training rows, then among the validation rows, resident and streamed; then of an evaluation.
#[track_caller]
fn check(task: &dyn Task, odd: f32, expected: &[&str]) {
    let (good, bad) = (rows(task.n_labels(), None), rows(task.n_labels(), Some(odd)));
    let model = || Model::new(3, |params| Linear::new(params, "line", 1, task.n_outputs(), Activation::identity()));
    for choice in [FeedChoice::Resident, FeedChoice::Streamed] {
        for (set, train, valid) in [("train", &bad, &good), ("valid", &good, &bad)] {
            let feed = FeedConfig { choice, chunk_bytes: 100, ..FeedConfig::default() };
            let mut trainer = Trainer::new(&cpu(1)).batch_rows(8).max_epochs(1).feed(&feed);
            let error = trainer.fit(&mut model(), task, train, valid).expect_err("a label that is not allowed").to_string();
            assert!(error.starts_with(&format!("{set} rows: ")) && error.contains("of row 33 is "), "{error}");
            assert!(expected.iter().all(|part| error.contains(part)), "{error}");
        }
    }
    let error = model().evaluate(task, &bad).expect_err("a label that is not allowed").to_string();
    assert!(error.starts_with("test rows: ") && expected.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn a_label_out_of_range_is_named_before_the_first_step() {
    // The letters of EMNIST have labels from 1 to 26.
    check(&Classification::of(26), 26.0, &["is 26", "0 to 25", "more classes", "--first-label"]);
    check(&Classification::of(26), -1.0, &["is -1", "0 to 25"]);
    check(&Classification::of(26), 0.5, &["is 0.5", "0 to 25"]);
    check(&Binary::new(), 2.0, &["is 2", "0 or 1", "convert the labels"]);
    check(&MultiLabel::of(3).without_auc(), 2.0, &["label 2 of row 33", "is 2", "0 or 1"]);
    check(&Regression::mse(), f32::NAN, &["is NaN", "a finite number"]);
    check(&Regression::l1().targets(2), f32::INFINITY, &["label 1 of row 33", "is inf", "a finite number"]);
}

#[test]
fn a_task_of_one_label_refuses_rows_of_several() {
    let rows = rows(3, None);
    let mut model = Model::new(3, |params| Linear::new(params, "line", 1, 1, Activation::identity()));
    for task in [&Binary::new() as &dyn Task, &Classification::of(2), &Regression::mse()] {
        let error = Trainer::new(&cpu(1)).fit(&mut model, task, &rows, &rows).expect_err("three labels");
        assert!(matches!(error, Error::RowLayout { set: "train", what: "label", found: 3, expected: 1, .. }), "{error}");
    }
}
