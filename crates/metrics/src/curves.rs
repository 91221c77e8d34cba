use crate::error::Error;
use crate::expected_calibration_error::ExpectedCalibrationError;
use crate::metric::Metric;
use crate::ranked_scores::RankedScores;
use crate::scored::Scored;

/// The ROC curve of binary rows: false positive rate and true positive rate at each threshold, from (0, 0) to (1, 1).
///
/// `sklearn.metrics.roc_curve(labels, scores, drop_intermediate=False)`.
/// # Errors
/// Those of [`crate::RocAuc`].
/// # Examples
/// ```
/// use brisk_metrics::{Scored, roc_curve};
///
/// let curve = roc_curve(&Scored::binary(&[0.1, 0.4, 0.35, 0.8], &[0.0, 0.0, 1.0, 1.0]))?;
/// assert_eq!(curve, [[0.0, 0.0], [0.0, 0.5], [0.5, 0.5], [0.5, 1.0], [1.0, 1.0]]);
/// # Ok::<(), brisk_metrics::Error>(())
/// ```
pub fn roc_curve(rows: &Scored<'_>) -> Result<Vec<[f64; 2]>, Error> {
    let mut scores = RankedScores::new("auc");
    scores.push(rows)?;
    let (ties, all) = scores.ranked()?;
    if all.positive == 0.0 || all.negative == 0.0 {
        return Err(scores.one_class(all, None));
    }
    let (mut positive, mut negative) = (0.0, 0.0);
    let points = ties.iter().rev().map(|tie| {
        positive += tie.positive;
        negative += tie.negative;
        [negative / all.negative, positive / all.positive]
    });
    Ok(std::iter::once([0.0, 0.0]).chain(points).collect())
}

/// The precision-recall curve of binary rows: recall and precision at each threshold, from recall 0 up.
///
/// `sklearn.metrics.precision_recall_curve(labels, scores)` with its coordinates exchanged and in the reverse order.
/// # Errors
/// Those of [`crate::AveragePrecision`].
/// # Examples
/// ```
/// use brisk_metrics::{Scored, precision_recall_curve};
///
/// let curve = precision_recall_curve(&Scored::binary(&[0.1, 0.4, 0.35, 0.8], &[0.0, 0.0, 1.0, 1.0]))?;
/// assert_eq!(curve, [[0.0, 1.0], [0.5, 1.0], [0.5, 0.5], [1.0, 2.0 / 3.0], [1.0, 0.5]]);
/// # Ok::<(), brisk_metrics::Error>(())
/// ```
pub fn precision_recall_curve(rows: &Scored<'_>) -> Result<Vec<[f64; 2]>, Error> {
    let mut scores = RankedScores::new("average_precision");
    scores.push(rows)?;
    let (ties, all) = scores.ranked_with_positive()?;
    let (mut hits, mut predicted) = (0.0, 0.0);
    let points = ties.iter().rev().map(|tie| {
        hits += tie.positive;
        predicted += tie.positive + tie.negative;
        [hits / all.positive, hits / predicted]
    });
    Ok(std::iter::once([0.0, 1.0]).chain(points).collect())
}

/// Mean predicted probability and observed frequency in bins of equal width, see [`ExpectedCalibrationError`]. Bins without rows
/// are left out.
///
/// `sklearn.calibration.calibration_curve(labels, probabilities, n_bins=n_bins)` with its results exchanged, except for
/// probabilities on the edge between two bins, which belong to the upper one here.
/// # Errors
/// Those of [`ExpectedCalibrationError`].
pub fn calibration_curve(rows: &Scored<'_>, n_bins: usize) -> Result<Vec<[f64; 2]>, Error> {
    let mut metric = ExpectedCalibrationError::with_bins(n_bins);
    metric.update(rows)?;
    metric.curve()
}
