//! Properties of every metric: batches do not matter, a reset clears all rows, and invalid rows give a clear error.

use brisk_metrics::{
    Accuracy, Average, AveragePrecision, BrierScore, ConfusionMatrix, Error, ExpectedCalibrationError, F1, LogLoss,
    MeanAbsoluteError, Metric, MetricValue, MultiClass, MultiClassRocAuc, PinballLoss, Precision, RSquared, Recall, RocAuc,
    RootMeanSquaredError, Scored, SubsetAccuracy, TopKAccuracy,
};

/// More than two of the chunks in which rows are added up.
const N_ROWS: usize = 40_000;

fn binary() -> Vec<Box<dyn Metric>> {
    vec![
        Box::new(Accuracy::new()),
        Box::new(RocAuc::new()),
        Box::new(AveragePrecision::new()),
        Box::new(LogLoss::new()),
        Box::new(BrierScore::new()),
        Box::new(F1::new(Average::Binary)),
        Box::new(Precision::new(Average::Macro)),
        Box::new(Recall::new(Average::Weighted)),
        Box::new(ConfusionMatrix::new()),
        Box::new(ExpectedCalibrationError::new()),
    ]
}

fn multi_class() -> Vec<Box<dyn Metric>> {
    vec![
        Box::new(Accuracy::new()),
        Box::new(TopKAccuracy::new(2)),
        Box::new(LogLoss::new()),
        Box::new(BrierScore::new()),
        Box::new(F1::new(Average::Macro)),
        Box::new(ConfusionMatrix::new()),
        Box::new(ExpectedCalibrationError::with_bins(10)),
    ]
}

/// Those that need rows of each class.
fn of_all_classes() -> Vec<Box<dyn Metric>> {
    [MultiClass::OneVsRest, MultiClass::OneVsOne].map(|areas| Box::new(MultiClassRocAuc::new(areas)) as Box<dyn Metric>).into()
}

fn regression() -> Vec<Box<dyn Metric>> {
    vec![
        Box::new(RootMeanSquaredError::new()),
        Box::new(MeanAbsoluteError::new()),
        Box::new(RSquared::new()),
        Box::new(PinballLoss::new(0.25)),
    ]
}

/// Numbers from 0 to 1, the same every time.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    (0..n).map(|_| next()).collect()
}

fn part<'a>(rows: &Scored<'a>, start: usize, end: usize) -> Scored<'a> {
    Scored {
        outputs: &rows.outputs[start * rows.n_outputs..end * rows.n_outputs],
        labels: &rows.labels[start * rows.n_labels..end * rows.n_labels],
        weights: rows.weights.map(|weights| &weights[start..end]),
        ..*rows
    }
}

fn values(value: MetricValue) -> Vec<f64> {
    match value {
        MetricValue::Number(value) => vec![value],
        MetricValue::Matrix { values, .. } => values,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_batches(metrics: Vec<Box<dyn Metric>>, rows: Scored<'_>) {
    for mut metric in metrics {
        let whole = values(metric.measure(&rows).expect("all rows at once"));
        for batch_rows in [1, 77, 20_000] {
            metric.reset();
            for start in (0..N_ROWS).step_by(batch_rows) {
                metric.update(&part(&rows, start, N_ROWS.min(start + batch_rows))).expect("a batch");
            }
            let found = values(metric.compute().expect("all batches"));
            let is_same = whole.iter().zip(&found).all(|(a, b)| (a - b).abs() <= 1e-11 * a.abs().max(1.0));
            assert!(is_same, "{} of batches of {batch_rows}: {found:?}, at once {whole:?}", metric.name());
        }
    }
}

#[test]
fn dividing_rows_into_batches_changes_nothing() {
    let (scores, weights) = (numbers(3 * N_ROWS, 1).iter().map(|x| 6.0 * x - 3.0).collect::<Vec<_>>(), numbers(N_ROWS, 2));
    let labels: Vec<f32> = numbers(N_ROWS, 3).iter().map(|x| x.round()).collect();
    let classes: Vec<f32> = numbers(N_ROWS, 4).iter().map(|x| (2.9 * x).floor()).collect();
    let targets: Vec<f32> = scores[..N_ROWS].iter().map(|score| 500.0 + score).collect();
    let predictions: Vec<f32> = targets.iter().zip(&weights).map(|(target, noise)| target + noise - 0.5).collect();
    check_batches(binary(), Scored::binary(&scores[..N_ROWS], &labels));
    check_batches(binary(), Scored::binary(&scores[..N_ROWS], &labels).with_weights(&weights));
    check_batches(multi_class().into_iter().chain(of_all_classes()).collect(), Scored::classes(&scores, 3, &classes));
    check_batches(
        multi_class().into_iter().chain(of_all_classes()).collect(),
        Scored::classes(&scores, 3, &classes).with_weights(&weights),
    );
    check_batches(regression(), Scored::values(&predictions, &targets));
    check_batches(regression(), Scored::values(&predictions, &targets).with_weights(&weights));
}

#[test]
fn weights_of_one_are_no_weights() {
    let (scores, labels) = ([-2.0, 0.5, 0.5, 1.5, 0.5], [0.0, 0.0, 1.0, 1.0, 1.0]);
    let rows = Scored::binary(&scores, &labels);
    for mut metric in binary() {
        let plain = metric.measure(&rows).expect("without weights");
        assert_eq!(metric.measure(&rows.with_weights(&[1.0; 5])).expect("with weights"), plain, "{}", metric.name());
        // A row of weight 2 is two rows, in a batch after one without weights.
        let repeated = Scored::binary(&[-2.0, 0.5, 0.5, 1.5, 0.5, 1.5], &[0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        let expected = metric.measure(&repeated).expect("repeated");
        metric.reset();
        metric.update(&part(&rows, 0, 3)).expect("without weights");
        metric.update(&part(&rows, 3, 5).with_weights(&[2.0, 1.0])).expect("with weights");
        let (found, expected) = (values(metric.compute().expect("both")), values(expected));
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-15), "{}: {found:?}, {expected:?}", metric.name());
    }
}

#[test]
fn perfect_calibration_has_no_error() {
    // A logit of ln 3 is a probability of 3/4.
    let logits = [3.0_f32.ln(); 4];
    let mut metric = ExpectedCalibrationError::new();
    let found = metric.measure(&Scored::binary(&logits, &[1.0, 0.0, 1.0, 1.0])).expect("a value").number().expect("a number");
    assert!(found < 1e-7, "found {found}");
    let found = metric.measure(&Scored::binary(&logits, &[1.0, 0.0, 0.0, 1.0])).expect("a value").number().expect("a number");
    assert!((found - 0.25).abs() < 1e-7, "found {found}");
    // Two classes: right twice of three, always with a probability of 3/4.
    let pairs = [0.0, 3.0_f32.ln(), 0.0, 3.0_f32.ln(), 3.0_f32.ln(), 0.0];
    let found = metric.measure(&Scored::classes(&pairs, 2, &[1.0, 0.0, 0.0])).expect("a value").number().expect("a number");
    assert!((found - (0.75 - 2.0 / 3.0)).abs() < 1e-7, "found {found}");
}

#[track_caller]
fn refused(mut metric: impl Metric, rows: Scored<'_>, expected: &str) {
    let error = metric.measure(&rows).expect_err("wrong rows");
    assert_eq!(error.to_string(), expected, "{metric:?}");
}

#[test]
fn wrong_rows_are_one_clear_error() {
    let binary = Scored::binary(&[1.0, 2.0], &[0.0, 1.0]);
    refused(
        Accuracy::new(),
        Scored { n_outputs: 3, outputs: &[0.0; 3], n_labels: 2, labels: &[0.0; 2], weights: None },
        "accuracy: 3 outputs and 2 labels per row, expected one label, or as many labels as outputs",
    );
    refused(
        RocAuc::new(),
        Scored::classes(&[0.0; 6], 3, &[0.0, 1.0]),
        "auc: 3 outputs and 1 label per row, expected as many outputs as labels: it is for binary and multi-label classification",
    );
    refused(
        RocAuc::new(),
        Scored::columns(&[1.0, 2.0, 3.0, 4.0], &[0.0, 1.0, 1.0, 1.0], 2),
        "auc: label 1 is 1 in all 2 rows, expected both classes; evaluate on more rows, or on shuffled ones",
    );
    refused(
        SubsetAccuracy::new(),
        Scored::classes(&[0.0; 6], 3, &[0.0, 1.0]),
        "subset_accuracy: 3 outputs and 1 label per row, expected as many outputs as labels: it is for multi-label classification",
    );
    refused(
        TopKAccuracy::new(2),
        binary,
        "top_k_accuracy: 1 output and 1 label per row, expected several outputs and one label: it is for multi-class classification",
    );
    refused(
        TopKAccuracy::new(3),
        Scored::classes(&[0.0; 6], 3, &[0.0, 1.0]),
        "top_k_accuracy: `k` is 3, expected 1 to 2, fewer than the 3 classes",
    );
    refused(
        ConfusionMatrix::new(),
        Scored::columns(&[0.0; 4], &[0.0; 4], 2),
        "confusion_matrix: 2 outputs and 2 labels per row, expected one label: a row of several labels has no single class",
    );
    refused(
        F1::new(Average::Binary),
        Scored::classes(&[0.0; 6], 3, &[0.0, 1.0]),
        "f1: 3 outputs and 1 label per row, expected one of each: it is for binary classification",
    );
    refused(ExpectedCalibrationError::with_bins(0), binary, "expected_calibration_error: `n_bins` is 0, expected 1 to 65536");
    let huge = ExpectedCalibrationError::with_bins(100_000);
    refused(huge, binary, "expected_calibration_error: `n_bins` is 100000, expected 1 to 65536");
    refused(PinballLoss::new(1.5), binary, "pinball_loss: `quantile` is 1.5, expected a number from 0 to 1");
    refused(PinballLoss::new(f64::NAN), binary, "pinball_loss: `quantile` is NaN, expected a number from 0 to 1");
    refused(
        AveragePrecision::new(),
        Scored::binary(&[1.0, 2.0], &[0.0; 2]),
        "average_precision: all 2 labels are 0, expected one that is 1; evaluate on more rows, or on shuffled ones",
    );
    refused(
        RSquared::new(),
        Scored::binary(&[1.0, 2.0], &[5.0; 2]),
        "r2: all 2 labels are the same, expected values that differ; evaluate on more rows",
    );
    refused(MeanAbsoluteError::new(), Scored::values(&[], &[]), "mae: no rows; expected at least one");
    refused(
        MeanAbsoluteError::new(),
        Scored::binary(&[1.0, 2.0], &[0.0, f32::INFINITY]),
        "mae: the label of row 1 is inf, expected a finite number",
    );
    refused(
        Accuracy::new(),
        Scored::columns(&[0.0; 4], &[0.0; 3], 2),
        "accuracy: 2 outputs and 2 labels per row, expected labels of whole rows, found 3",
    );
    refused(
        Accuracy::new(),
        Scored::classes(&[0.0; 6], 3, &[0.0, 1.5]),
        "accuracy: the label of row 1 is 1.5, expected a whole number from 0 to 2",
    );
    refused(Accuracy::new(), Scored::classes(&[0.0; 4], 2, &[0.0, 1.5]), "accuracy: the label of row 1 is 1.5, expected 0 or 1");
    refused(RocAuc::new(), Scored::binary(&[0.0], &[0.1]), "auc: the label of row 0 is 0.1, expected 0 or 1");
    refused(Accuracy::new(), binary.with_weights(&[1.0]), "accuracy: 1 weight for 2 rows, expected one per row");
    refused(Accuracy::new(), binary.with_weights(&[0.0; 2]), "accuracy: the weights of all 2 rows are 0, expected one above 0");
    refused(
        Accuracy::new(),
        binary.with_weights(&[1.0, -1.0]),
        "accuracy: the weight of row 1 is -1, expected a finite number that is not negative",
    );
}

#[test]
fn rows_of_weight_0_are_not_blamed() {
    let rows = Scored::binary(&[0.5, -0.5, 1.0], &[1.0, 0.0, 0.0]).with_weights(&[0.0, 1.0, 1.0]);
    let ignored = "(1 row of weight 0 does not count)";
    let both = "expected both classes; evaluate on more rows, or on shuffled ones";
    refused(RocAuc::new(), rows, &format!("auc: all 2 labels are 0 {ignored}, {both}"));
    let one = "expected one that is 1; evaluate on more rows, or on shuffled ones";
    refused(AveragePrecision::new(), rows, &format!("average_precision: all 2 labels are 0 {ignored}, {one}"));
    let differ = "expected values that differ; evaluate on more rows";
    refused(RSquared::new(), rows, &format!("r2: all 2 labels are the same {ignored}, {differ}"));
    // The same over two batches.
    let mut metric = RocAuc::new();
    for start in 0..2 {
        metric.update(&part(&rows, start, start + 1)).expect("a batch");
    }
    let error = metric.compute().expect_err("one class");
    assert!(matches!(error, Error::OneClass { n_rows: 1, n_ignored: 1, class: 0, label: None }), "{error}");
}

#[test]
fn every_metric_refuses_a_nan_and_counts_rows_over_batches() {
    for (metrics, n_outputs) in [(binary(), 1), (multi_class(), 3), (regression(), 1)] {
        for mut metric in metrics {
            let outputs: Vec<f32> = (0..2 * n_outputs).map(|i| i as f32).collect();
            let rows = Scored { n_outputs, outputs: &outputs, n_labels: 1, labels: &[0.0, 1.0], weights: None };
            metric.update(&rows).expect("a batch");
            let before = metric.compute().expect("a value");
            let mut spoiled = outputs.clone();
            spoiled[n_outputs] = f32::NAN;
            let error = metric.update(&Scored { outputs: &spoiled, ..rows }).expect_err("a NaN");
            assert!(matches!(error, Error::NanPrediction { row: 3, .. }), "{}: {error}", metric.name());
            assert_eq!(metric.compute().expect("a value"), before, "{}: nothing was added", metric.name());
            metric.reset();
            assert!(matches!(metric.compute(), Err(Error::NoRows { .. })), "{}: a reset forgets", metric.name());
        }
    }
}

#[test]
fn batches_have_the_same_columns() {
    let mut metric = Accuracy::new();
    metric.update(&Scored::classes(&[0.0; 3], 3, &[0.0])).expect("three classes");
    let error = metric.update(&Scored::classes(&[0.0; 4], 4, &[0.0])).expect_err("four classes");
    let expected = "accuracy: 4 outputs and 1 label per row, expected 3 outputs and the same kind of labels as before";
    assert_eq!(error.to_string(), expected, "the number of classes changes");
}

#[test]
fn names_and_modes() {
    let names =
        |metrics: Vec<Box<dyn Metric>>| metrics.iter().map(|metric| metric.name().to_owned()).collect::<Vec<_>>().join(" ");
    assert_eq!(
        names(binary()),
        "accuracy auc average_precision log_loss brier_score f1 precision_macro recall_weighted confusion_matrix expected_calibration_error",
        "binary"
    );
    assert_eq!(names(regression()), "rmse mae r2 pinball_loss", "regression");
    assert_eq!(TopKAccuracy::new(5).name(), "top_5_accuracy", "the number is in the name");
    let matrix = ConfusionMatrix::new().measure(&Scored::binary(&[1.0, -1.0, 2.0], &[1.0, 0.0, 0.0])).expect("a matrix");
    assert_eq!(matrix.to_string(), "[[1, 1], [0, 1]]", "[actual, predicted]");
}
