use brisk_metrics::{Error, accuracy, accuracy_binary, f1, log_loss, log_loss_binary, roc_auc};

/// More than twice the number of rows that are processed in one piece.
const N_ROWS: usize = 40_000;

const LOGITS: [f32; 8] = [-2.0, 0.5, -0.1, 1.5, 0.5, 0.0, 3.25, -1.0];
const LABELS: [f32; 8] = [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0];

const CLASS_LOGITS: [f32; 15] = [0.5, 0.5, -1.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, -3.0, 4.0, 4.0, 1.0, 2.0, 3.5];
const CLASSES: [f32; 5] = [1.0, 0.0, 0.0, 2.0, 2.0];

#[track_caller]
fn check(found: Result<f64, Error>, expected: f64) {
    let found = found.expect("a metric");
    assert!((found - expected).abs() <= 1e-12 || found == expected, "found {found}, expected {expected}");
}

/// Scores on a grid, so that there are ties, and labels that correlate with them a little.
fn rows(n_rows: usize, seed: u64) -> (Vec<f32>, Vec<f32>) {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32
    };
    (0..n_rows)
        .map(|_| {
            let label = if random() < 0.4 { 1.0 } else { 0.0 };
            (((random() * 8.0 + label - 4.0) * 4.0).round() / 4.0, label)
        })
        .unzip()
}

#[test]
fn they_are_scikit_learns() {
    check(roc_auc(&LOGITS, &LABELS), 0.84375);
    check(accuracy_binary(&LOGITS, &LABELS), 0.75);
    check(log_loss_binary(&LOGITS, &LABELS), 0.44566776975096756);
    check(f1(&LOGITS, &LABELS), 0.75);
    check(accuracy(&CLASS_LOGITS, 3, &CLASSES), 0.6);
    check(log_loss(&CLASS_LOGITS, 3, &CLASSES), 0.653021071078913);
    check(f1(&[-1.0, -1.0], &[0.0, 0.0]), 0.0);
}

#[test]
fn the_area_counts_pairs() {
    for (n_rows, seed) in [(2, 5), (3, 1), (17, 2), (300, 3), (1000, 4)] {
        let (scores, mut labels) = rows(n_rows, seed);
        (labels[0], labels[1]) = (0.0, 1.0);
        let (mut wins, mut n_pairs) = (0.0, 0.0);
        for (a, _) in scores.iter().zip(&labels).filter(|(_, label)| **label == 1.0) {
            for (b, _) in scores.iter().zip(&labels).filter(|(_, label)| **label == 0.0) {
                n_pairs += 1.0;
                wins += if a > b { 1.0 } else { f64::from(u8::from(a == b)) / 2.0 };
            }
        }
        check(roc_auc(&scores, &labels), wins / n_pairs);
    }
}

#[test]
fn the_area_knows_its_extremes() {
    check(roc_auc(&[1.0, 2.0], &[0.0, 1.0]), 1.0);
    check(roc_auc(&[2.0, 1.0], &[0.0, 1.0]), 0.0);
    check(roc_auc(&[7.0; 5], &[0.0, 1.0, 0.0, 1.0, 1.0]), 0.5);
    check(roc_auc(&[-0.0, 0.0], &[0.0, 1.0]), 0.5);
    let infinities = [f32::NEG_INFINITY, f32::MIN, -1e-45, 1e-45, f32::MAX, f32::INFINITY];
    check(roc_auc(&infinities, &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), 1.0);
}

#[test]
fn many_rows_are_as_few() {
    let (scores, labels) = rows(N_ROWS, 6);
    let shifted: Vec<f32> = scores.iter().map(|score| score / 8.0 + 3.0).collect();
    assert_eq!(roc_auc(&scores, &labels).expect("an area"), roc_auc(&shifted, &labels).expect("an area"), "of the same order");

    let serial = scores.iter().zip(&labels).filter(|(score, label)| (**score > 0.0) == (**label == 1.0)).count();
    check(accuracy_binary(&scores, &labels), serial as f64 / N_ROWS as f64);

    // Two classes with the logits 0 and the score are equivalent to a binary problem.
    let two: Vec<f32> = scores.iter().flat_map(|&score| [0.0, score]).collect();
    check(accuracy(&two, 2, &labels), serial as f64 / N_ROWS as f64);
    check(log_loss(&two, 2, &labels), log_loss_binary(&scores, &labels).expect("a loss"));
    assert_eq!(log_loss_binary(&scores, &labels).ok(), log_loss_binary(&scores, &labels).ok(), "bit-identical every time");
}

/// `log_loss([0], [1.0], labels=[0, 1])` of scikit-learn 1.9, which clips probabilities.
const LARGEST: f64 = 36.04365338911715;

#[test]
fn a_loss_is_clipped_as_in_scikit_learn_and_not_lost() {
    check(log_loss_binary(&[1000.0], &[0.0]), LARGEST);
    check(log_loss_binary(&[f32::INFINITY, f32::NEG_INFINITY], &[1.0, 0.0]), 0.0);
    check(log_loss_binary(&[f32::INFINITY], &[0.0]), LARGEST);
    check(log_loss(&[0.0, 1000.0], 2, &[0.0]), LARGEST);
    check(log_loss(&[0.0, 30.0], 2, &[0.0]), 30.00000000000009);
    check(log_loss(&[0.0, f32::INFINITY], 2, &[1.0]), 0.0);
    check(log_loss(&[0.0, f32::INFINITY], 2, &[0.0]), LARGEST);
    check(log_loss(&[f32::NEG_INFINITY; 4], 4, &[0.0]), 4.0_f64.ln());
    check(log_loss(&[f32::MAX, f32::MIN], 2, &[0.0]), 0.0);
}

#[test]
fn of_equal_logits_the_first_is_the_largest() {
    check(accuracy(&[1.0, 1.0, 0.0, 1.0, 1.0, 0.0], 3, &[0.0, 1.0]), 0.5);
    check(accuracy(&[f32::NEG_INFINITY; 2], 2, &[0.0]), 1.0);
    check(accuracy_binary(&[0.0, 0.0], &[0.0, 1.0]), 0.5);
}

#[test]
fn a_nan_is_an_error_that_names_its_row() {
    let (mut scores, labels) = rows(N_ROWS, 7);
    scores[30_001] = f32::NAN;
    for metric in [roc_auc, accuracy_binary, log_loss_binary, f1] {
        let error = metric(&scores, &labels);
        assert!(matches!(error, Err(Error::NanPrediction { row: 30_001, .. })), "{error:?}");
    }
    for metric in [accuracy, log_loss] {
        let error = metric(&scores, 2, &[1.0; N_ROWS / 2]);
        assert!(matches!(error, Err(Error::NanPrediction { row: 15_000, .. })), "{error:?}");
    }
}

#[test]
fn labels_are_classes() {
    let (scores, mut labels) = rows(N_ROWS, 8);
    for label in [2.0, 0.5, -1.0, f32::NAN] {
        labels[20_000] = label;
        let error = roc_auc(&scores, &labels);
        assert!(matches!(error, Err(Error::Label { row: 20_000, .. })), "{label}: {error:?}");
    }
    let error = accuracy(&[0.0; 6], 3, &[2.0, 3.0]).expect_err("a class too many");
    assert_eq!(error.to_string(), "accuracy: the label of row 1 is 3, expected a whole number from 0 to 2", "which row");
}

#[test]
fn one_class_has_no_area() {
    let error = roc_auc(&[1.0, 2.0], &[1.0, 1.0]).expect_err("one class");
    assert!(matches!(error, Error::OneClass { n_rows: 2, class: 1, label: None, n_ignored: 0 }), "{error:?}");
    assert!(matches!(roc_auc(&[1.0], &[0.0]), Err(Error::OneClass { class: 0, .. })), "the other one");
}

#[test]
fn counts_have_to_fit() {
    assert!(matches!(roc_auc(&[], &[]), Err(Error::NoRows { .. })), "no rows");
    assert!(matches!(accuracy(&[], 0, &[]), Err(Error::NoRows { .. })), "no rows and no classes");
    assert!(matches!(accuracy(&[], 0, &[1.0]), Err(Error::Setting { setting: "n_classes", .. })), "no classes");
    let error = log_loss(&[0.0; 5], 3, &[0.0, 1.0]).expect_err("a value too few");
    assert_eq!(error.to_string(), "log_loss: 2 labels take 6 predictions, found 5", "how many");
    assert!(matches!(f1(&[0.0], &[0.0, 1.0]), Err(Error::PredictionCount { .. })), "one score for two labels");
    assert!(matches!(accuracy(&[], usize::MAX, &[1.0, 1.0]), Err(Error::PredictionCount { .. })), "an overflow");
}
