use rayon::prelude::*;

use super::rows::fold_binary;
use crate::Error;

/// The area under the ROC curve: the probability that a row labelled 1 scores above one labelled 0, ties counting half.
///
/// `sklearn.metrics.roc_auc_score(labels, scores)`. Exact: the pairs are counted in whole numbers, and divided once. Any increasing
/// function of a score serves, so logits need no sigmoid.
///
/// # Shapes
/// `scores`, `labels`: `[n_rows]`; labels are 0.0 or 1.0.
/// # Errors
/// [`Error::PredictionCount`], [`Error::NoRows`], [`Error::Label`], [`Error::NanPrediction`]; [`Error::OneClass`] if all labels are
/// the same, where scikit-learn gives NaN and a warning.
/// # Cost
/// One parallel sort of `8 * n_rows` bytes.
/// # Examples
/// ```
/// let area = brisk_train::metrics::roc_auc(&[0.1, 0.4, 0.35, 0.8], &[0.0, 0.0, 1.0, 1.0])?;
/// assert_eq!(area, 0.75);
/// # Ok::<(), brisk_train::Error>(())
/// ```
pub fn roc_auc(scores: &[f32], labels: &[f32]) -> Result<f64, Error> {
    let count = |_: &[f32], labels: &[f32]| labels.iter().filter(|&&label| label > 0.0).count();
    let n_positive = fold_binary("roc_auc", scores, labels, count, |a, b| a + b)?;
    let n_negative = labels.len() - n_positive;
    if n_positive == 0 || n_negative == 0 {
        return Err(Error::OneClass { n_rows: labels.len(), class: u8::from(n_negative == 0) });
    }
    let mut keys: Vec<u64> = scores
        .par_iter()
        .zip(labels)
        .map(|(&score, &label)| u64::from(ordered_bits(score)) << 1 | u64::from(label > 0.0))
        .collect();
    keys.par_sort_unstable();
    // Twice the number of pairs in which the positive row wins, so that a tie counts one. At most 2^127.
    let (mut twice_wins, mut n_negative_below) = (0_u128, 0_u128);
    for tied in keys.chunk_by(|a, b| a >> 1 == b >> 1) {
        // Within a tie, the rows labelled 0 come first.
        let n_tied_negative = tied.partition_point(|key| key & 1 == 0);
        let n_tied_positive = (tied.len() - n_tied_negative) as u128;
        twice_wins += n_tied_positive * (2 * n_negative_below + n_tied_negative as u128);
        n_negative_below += n_tied_negative as u128;
    }
    Ok(twice_wins as f64 / (2 * n_positive as u128 * n_negative as u128) as f64)
}

/// Bits that are ordered as the numbers are. Zeros of both signs are the same.
fn ordered_bits(score: f32) -> u32 {
    let bits = (score + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}
