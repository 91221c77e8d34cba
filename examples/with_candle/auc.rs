/// The area under the ROC curve: the probability that a row labelled 1 scores above one labelled 0, ties counting half. `None` if
/// all labels are the same.
pub(crate) fn roc_auc(scores: &[f32], labels: &[f32]) -> Option<f64> {
    let mut rows: Vec<(f32, bool)> = scores.iter().copied().zip(labels.iter().map(|&label| label > 0.5)).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut wins, mut n_negative, mut n_positive) = (0.0, 0_usize, 0_usize);
    for tied in rows.chunk_by(|a, b| a.0 == b.0) {
        let positive = tied.iter().filter(|(_, is_positive)| *is_positive).count();
        let negative = tied.len() - positive;
        wins += positive as f64 * (n_negative as f64 + negative as f64 / 2.0);
        n_positive += positive;
        n_negative += negative;
    }
    (n_positive > 0 && n_negative > 0).then(|| wins / (n_positive as f64 * n_negative as f64))
}

#[cfg(test)]
mod tests {
    use super::roc_auc;

    #[test]
    fn equals_scikit_learn() {
        assert_eq!(roc_auc(&[0.1, 0.4, 0.35, 0.8], &[0.0, 0.0, 1.0, 1.0]), Some(0.75));
        assert_eq!(roc_auc(&[0.5, 0.5], &[0.0, 1.0]), Some(0.5));
        assert_eq!(roc_auc(&[0.1, 0.2], &[1.0, 1.0]), None);
    }
}
