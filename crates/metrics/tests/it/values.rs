//! Values that scikit-learn 1.9 prints for the same rows, without weights and with them.

use brisk_metrics::{
    Accuracy, Average, AveragePrecision, BrierScore, ConfusionMatrix, Error, F1, LogLoss, MeanAbsoluteError, Metric, MetricValue,
    MultiClass, MultiClassRocAuc, PinballLoss, Precision, RSquared, Recall, RocAuc, RootMeanSquaredError, Scored, SubsetAccuracy,
    TopKAccuracy,
};

const N_ROWS: usize = 200;

/// Outputs and labels for the same number of rows.
struct Rows {
    outputs: Vec<f32>,
    n_outputs: usize,
    labels: Vec<f32>,
    n_labels: usize,
}

impl Rows {
    /// `row` gives the outputs and labels of row `i`.
    fn new<const N: usize, const L: usize>(row: impl Fn(usize) -> ([f32; N], [f32; L])) -> Self {
        let (outputs, labels): (Vec<_>, Vec<_>) = (0..N_ROWS).map(row).unzip();
        Self { outputs: outputs.concat(), n_outputs: N, labels: labels.concat(), n_labels: L }
    }

    fn scored(&self) -> Scored<'_> {
        Scored { outputs: &self.outputs, n_outputs: self.n_outputs, labels: &self.labels, n_labels: self.n_labels, weights: None }
    }
}

fn weights() -> Vec<f32> {
    (0..N_ROWS).map(|i| (i % 5) as f32 / 2.0).collect()
}

#[track_caller]
fn check(rows: &Rows, mut metric: impl Metric, expected: f64, weighted: f64) {
    let weights = weights();
    for (rows, expected) in [(rows.scored(), expected), (rows.scored().with_weights(&weights), weighted)] {
        let found = metric.measure(&rows).expect("a value").number().expect("a number");
        assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{metric:?}: found {found}, expected {expected}");
    }
}

#[track_caller]
fn check_matrix(rows: &Rows, mut metric: impl Metric, expected: &[f64], weighted: &[f64]) {
    let weights = weights();
    for (rows, expected) in [(rows.scored(), expected), (rows.scored().with_weights(&weights), weighted)] {
        let MetricValue::Matrix { n, values } = metric.measure(&rows).expect("a value") else { panic!("a matrix") };
        assert_eq!((n * n, &values[..]), (expected.len(), expected), "{metric:?}");
    }
}

/// Class 2 is labelled only, and class 3 predicted only, in rows of weight 0, where scikit-learn counts them.
#[test]
fn classes_of_rows_without_weight_count_in_macro_averages() {
    let outputs = [
        [2.0, 1.0, 0.0, 0.0],
        [0.0, 3.0, 1.0, 0.0],
        [0.0, 1.0, 4.0, 0.0],
        [1.0, 5.0, 0.0, 2.0],
        [0.0, 0.0, 0.0, 9.0],
        [3.0, 0.0, 1.0, 0.0],
    ]
    .concat();
    let (labels, weights) = ([0.0, 1.0, 2.0, 1.0, 1.0, 1.0], [1.0, 2.0, 0.0, 1.0, 0.0, 0.5]);
    let rows = Scored::classes(&outputs, 4, &labels).with_weights(&weights);
    let check = |mut metric: Box<dyn Metric>, expected: f64| {
        let found = metric.measure(&rows).expect("a value").number().expect("a number");
        assert!((found - expected).abs() < 1e-14, "{metric:?}: found {found}, expected {expected}");
    };
    check(Box::new(F1::new(Average::Macro)), 0.4307692307692308);
    check(Box::new(Precision::new(Average::Macro)), 0.41666666666666663);
    check(Box::new(Recall::new(Average::Macro)), 0.4642857142857143);
    check(Box::new(F1::new(Average::Micro)), 0.8888888888888888);
    check(Box::new(F1::new(Average::Weighted)), 0.8957264957264957);
    check(Box::new(Accuracy::new()), 0.8888888888888888);
    check(Box::new(LogLoss::new()), 0.5763284864802212);
    check(Box::new(TopKAccuracy::new(2)), 0.8888888888888888);
}

#[test]
fn binary() {
    let rows = &Rows::new(|i| {
        let label = (i * 53 % 97 % 2) as f32;
        ([((i * 37 % 101) as f32 - 50.0) / 16.0 + label], [label])
    });
    check(rows, Accuracy::new(), 0.575, 0.575);
    check(rows, RocAuc::new(), 0.6537153715371536, 0.661308092948718);
    check(rows, AveragePrecision::new(), 0.6772343822109063, 0.6810942326371736);
    check(rows, LogLoss::new(), 0.823618581043487, 0.8100130433245281);
    check(rows, BrierScore::new(), 0.28511518892294757, 0.2827015427576598);
    check(rows, F1::new(Average::Binary), 0.6046511627906976, 0.5933014354066986);
    check(rows, Precision::new(Average::Binary), 0.5603448275862069, 0.5486725663716814);
    check(rows, Recall::new(Average::Binary), 0.6565656565656566, 0.6458333333333334);
    check(rows, F1::new(Average::Macro), 0.5725958516656191, 0.5741376286981137);
    check(rows, Precision::new(Average::Macro), 0.5777914614121511, 0.578933984335266);
    check(rows, Recall::new(Average::Macro), 0.5758075807580758, 0.577724358974359);
    check(rows, F1::new(Average::Micro), 0.575, 0.575);
    check(rows, Precision::new(Average::Micro), 0.575, 0.575);
    check(rows, Recall::new(Average::Micro), 0.575, 0.575);
    check(rows, F1::new(Average::Weighted), 0.5722752985543683, 0.5733710764297704);
    check(rows, Precision::new(Average::Weighted), 0.5779659277504104, 0.5801444410538094);
    check(rows, Recall::new(Average::Weighted), 0.575, 0.575);
    check_matrix(rows, ConfusionMatrix::new(), &[50.0, 51.0, 34.0, 65.0], &[53.0, 51.0, 34.0, 62.0]);
}

/// Class 4 is neither labelled nor predicted.
#[test]
fn multi_class() {
    let rows = &Rows::new(|i| {
        let mut logits = [0, 1, 2, 3, 4].map(|k| (((i * 29 + k * 43) % 83) as f32 - 41.0) / 16.0);
        let label = i * 31 % 71 % 4;
        logits[4] = -9.0;
        logits[label] += 1.5;
        (logits, [label as f32])
    });
    check(rows, Accuracy::new(), 0.49, 0.5075);
    check(rows, LogLoss::new(), 1.1233287126081724, 1.0832220123288994);
    check(rows, BrierScore::new(), 0.5982240162412471, 0.5765219906425247);
    check(rows, TopKAccuracy::new(2), 0.525, 0.5375);
    check(rows, F1::new(Average::Macro), 0.5118789637199271, 0.5320657226632339);
    check(rows, Precision::new(Average::Macro), 0.5866593345802271, 0.6110555400611593);
    check(rows, Recall::new(Average::Macro), 0.4893910256410256, 0.5069663827009188);
    check(rows, F1::new(Average::Micro), 0.49, 0.5075);
    check(rows, Precision::new(Average::Micro), 0.49, 0.5075);
    check(rows, Recall::new(Average::Micro), 0.49, 0.5075);
    check(rows, F1::new(Average::Weighted), 0.5144388014481218, 0.5340784345276407);
    check(rows, Precision::new(Average::Weighted), 0.5916058586443982, 0.6147463297703188);
    check(rows, Recall::new(Average::Weighted), 0.49, 0.5075);
    check_matrix(
        rows,
        ConfusionMatrix::new(),
        &[
            27.0, 2.0, 0.0, 23.0, 0.0, 2.0, 25.0, 23.0, 0.0, 0.0, 2.0, 1.0, 24.0, 23.0, 0.0, 2.0, 1.0, 23.0, 22.0, 0.0, 0.0, 0.0,
            0.0, 0.0, 0.0,
        ],
        &[
            28.5, 1.0, 0.0, 22.5, 0.0, 1.5, 26.0, 22.0, 0.0, 0.0, 1.5, 1.5, 23.5, 23.5, 0.0, 2.0, 0.0, 23.0, 23.5, 0.0, 0.0, 0.0,
            0.0, 0.0, 0.0,
        ],
    );
}

/// Weights with `"ovo"`, which scikit-learn does not take, are those of its areas of two classes.
#[test]
fn areas_of_several_classes() {
    let rows = &Rows::new(|i| {
        let mut logits = [0, 1, 2, 3].map(|k| (((i * 29 + k * 43) % 83) as f32 - 41.0) / 16.0);
        let label = i * 31 % 71 % 4;
        logits[label] += 1.5;
        (logits, [label as f32])
    });
    check(rows, MultiClassRocAuc::new(MultiClass::OneVsRest), 0.75561772543039, 0.7658671478667404);
    check(rows, MultiClassRocAuc::new(MultiClass::OneVsOne), 0.7557036858974359, 0.7659764793720981);
    let few = Scored::classes(&rows.outputs[..8], 4, &[0.0, 3.0]);
    for areas in [MultiClass::OneVsRest, MultiClass::OneVsOne] {
        let error = MultiClassRocAuc::new(areas).measure(&few).expect_err("classes 1 and 2 are missing");
        assert!(matches!(error, Error::MissingClass { class: 1, n_rows: 2, .. }) && error.is_of_few_rows(), "{error}");
        let labels = [0.0, 1.0, 2.0, 3.0];
        let ignored = Scored::classes(&rows.outputs[..16], 4, &labels).with_weights(&[1.0, 1.0, 0.0, 1.0]);
        let error = MultiClassRocAuc::new(areas).measure(&ignored).expect_err("the only row of class 2 does not count");
        assert!(matches!(error, Error::MissingClass { class: 2, n_rows: 3, .. }), "{error}");
    }
}

/// Label 2 is neither given nor predicted.
#[test]
fn multi_label() {
    let rows = &Rows::new(|i| {
        let mut logits = [0, 1, 2].map(|k| (((i * 29 + k * 43) % 83) as f32 - 41.0) / 16.0);
        let mut labels = [0, 1, 2].map(|k| ((i * 7 + k * 3) % 11 % 2) as f32);
        (logits[2], labels[2]) = (-1.0, 0.0);
        (logits, labels)
    });
    check(rows, Accuracy::new(), 0.6716666666666667, 0.675);
    check(rows, SubsetAccuracy::new(), 0.365, 0.3725);
    check(rows, LogLoss::new(), 0.7299133404389884, 0.7251373700538508);
    check(rows, BrierScore::new(), 0.24689717622037186, 0.24505060256908928);
    check(rows, F1::new(Average::Macro), 0.3200772344138725, 0.32463924739004235);
    check(rows, Precision::new(Average::Macro), 0.3078694158075601, 0.3114965986394558);
    check(rows, Recall::new(Average::Macro), 0.3333333333333333, 0.3395676340929496);
    check(rows, F1::new(Average::Micro), 0.48021108179419525, 0.4868421052631579);
    check(rows, Precision::new(Average::Micro), 0.4619289340101523, 0.4671717171717172);
    check(rows, Recall::new(Average::Micro), 0.5, 0.5082417582417582);
    check(rows, F1::new(Average::Weighted), 0.4801158516208087, 0.4866454180937627);
    check(rows, Precision::new(Average::Weighted), 0.46180412371134016, 0.4676031621439785);
    check(rows, Recall::new(Average::Weighted), 0.5, 0.5082417582417582);
}

/// All labels have both values, without which there is no area under the ROC curve.
#[test]
fn multi_label_of_both_values() {
    let rows = &Rows::new(|i| {
        let logits = [0, 1, 2].map(|k| (((i * 29 + k * 43) % 83) as f32 - 41.0) / 16.0);
        (logits, [0, 1, 2].map(|k| ((i * 7 + k * 3) % 11 % 2) as f32))
    });
    check(rows, RocAuc::new(), 0.5044287058507242, 0.5041426118499744);
    check(rows, SubsetAccuracy::new(), 0.23, 0.225);
    check(rows, F1::new(Average::Macro), 0.47965170249897887, 0.4860427561619722);
    check(rows, F1::new(Average::Micro), 0.47971781305114636, 0.48596491228070177);
    check(rows, LogLoss::new(), 0.9309876469068783, 0.9284440022169349);
}

/// The mean of the first label is far from 0.
#[test]
fn regression() {
    let rows = &Rows::new(|i| {
        let labels = [10_000.0 + ((i * 37 % 101) as f32 - 50.0) / 8.0, ((i * 17 % 59) as f32 - 29.0) / 4.0];
        let errors = [((i * 11 % 23) as f32 - 11.0) / 16.0, ((i * 13 % 31) as f32 - 15.0) / 8.0];
        ([labels[0] + errors[0], labels[1] + errors[1]], labels)
    });
    check(rows, RootMeanSquaredError::new(), 0.7675148011774173, 0.7697777201861573);
    check(rows, MeanAbsoluteError::new(), 0.66390625, 0.66734375);
    check(rows, RSquared::new(), 0.9591045102158879, 0.9587397407751999);
    check(rows, PinballLoss::new(0.9), 0.333265625, 0.3301718749999999);
}

/// `brier_score_loss` halves the sum over classes for two of them.
#[test]
fn two_classes_have_one_brier_score_whatever_the_number_of_logits() {
    let (one, two) = ([0.5, -2.0, 1.5], [0.0, 0.5, 1.0, -1.0, -0.5, 1.0]);
    let labels = [1.0, 1.0, 0.0];
    let score = |rows: &Scored<'_>| {
        let mut metric = BrierScore::new();
        metric.update(rows).expect("valid rows");
        metric.compute().expect("rows").number().expect("a number")
    };
    let (one, two) = (score(&Scored::binary(&one, &labels)), score(&Scored::classes(&two, 2, &labels)));
    assert!((one - two).abs() < 1e-7, "{one} and {two}");
}
