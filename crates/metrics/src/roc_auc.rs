use crate::error::Error;
use crate::ranked_scores::{RankedScores, Tie};
use crate::scored::Scored;
use crate::tally::metric;

/// The area under the ROC curve: the probability that a row labelled 1 scores above one labelled 0, ties counting half.
///
/// `sklearn.metrics.roc_auc_score(labels, scores)`. Exact, not from a histogram: all scores are kept, 8 bytes per row, and sorted
/// once by [`Metric::compute`](crate::Metric::compute). Pairs of rows without weights are counted in whole numbers up to 2⁵²
/// pairs. For binary classification, and for multi-label classification, where it is the mean of the areas of all labels
/// (`average="macro"`). Any increasing function of a score gives the same area, so logits need no sigmoid.
///
/// Rows of only one class, in any label, have no area: [`Error::OneClass`], where scikit-learn gives NaN and a warning.
#[derive(Clone, Debug)]
pub struct RocAuc(RankedScores);

metric!(RocAuc, "auc", Maximize, |scores, rows| scores.push_columns(rows), mean_area);

/// The mean of the areas of all labels of a row.
fn mean_area(scores: &RankedScores) -> Result<f64, Error> {
    let columns = scores.columns()?;
    let areas = columns.iter().enumerate().map(|(label, keys)| {
        let (ties, all) = keys.ranked();
        area(&ties).ok_or_else(|| scores.one_class(all, (columns.len() > 1).then_some(label)))
    });
    Ok(areas.sum::<Result<f64, Error>>()? / columns.len() as f64)
}

/// The area of rows from the lowest score to the highest; `None` if all are of one class.
pub(crate) fn area(ties: &[Tie]) -> Option<f64> {
    // Twice the pairs in which the positive row wins, so that a tie counts one.
    let (mut twice_wins, mut positive, mut negative) = (0.0, 0.0, 0.0);
    for tie in ties {
        twice_wins += tie.positive * (2.0 * negative + tie.negative);
        positive += tie.positive;
        negative += tie.negative;
    }
    (positive > 0.0 && negative > 0.0).then(|| twice_wins / (2.0 * positive * negative))
}

/// The area under the ROC curve of rows in memory, see [`RocAuc`].
///
/// # Shapes
/// `scores`, `labels`: `[n_rows]`; labels are 0.0 or 1.0.
/// # Errors
/// [`Error`] if the numbers of predictions and labels do not match, if there are no rows, if a label is no class, or a
/// prediction NaN; [`Error::OneClass`] if all labels are the same, where scikit-learn gives NaN and a warning.
/// # Cost
/// One parallel sort of `8 * n_rows` bytes.
/// # Examples
/// ```
/// let area = brisk_metrics::roc_auc(&[0.1, 0.4, 0.35, 0.8], &[0.0, 0.0, 1.0, 1.0])?;
/// assert_eq!(area, 0.75);
/// # Ok::<(), brisk_metrics::Error>(())
/// ```
pub fn roc_auc(scores: &[f32], labels: &[f32]) -> Result<f64, Error> {
    let mut metric = RocAuc::new();
    metric.0.push(&Scored::binary(scores, labels))?;
    mean_area(&metric.0)
}
