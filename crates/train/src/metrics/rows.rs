use rayon::prelude::*;

use crate::Error;

/// Rows that one task takes. Fixed, so that sums do not depend on the number of threads.
const CHUNK_ROWS: usize = 16 * 1024;

/// Checks binary predictions and folds the rows: `f` of each chunk, combined in the order of the chunks.
pub(super) fn fold_binary<T: Send>(
    metric: &'static str,
    predictions: &[f32],
    labels: &[f32],
    f: impl Fn(&[f32], &[f32]) -> T + Sync,
    combine: impl Fn(T, T) -> T,
) -> Result<T, Error> {
    check_counts(metric, predictions, 1, labels.len())?;
    let chunks: Vec<Result<T, Error>> = (predictions.par_chunks(CHUNK_ROWS).zip(labels.par_chunks(CHUNK_ROWS)).enumerate())
        .map(|(chunk, (predictions, labels))| {
            check_no_nan(metric, predictions, 1, chunk)?;
            // Exact: a label is one of two numbers.
            if let Some(row) = labels.iter().position(|&label| label != 0.0 && label != 1.0) {
                return Err(Error::Label {
                    metric,
                    row: chunk * CHUNK_ROWS + row,
                    found: f64::from(labels[row]),
                    expected: "0 or 1".into(),
                });
            }
            Ok(f(predictions, labels))
        })
        .collect();
    combined(metric, chunks, combine)
}

/// The same for class numbers.
pub(super) fn fold_classes<T: Send>(
    metric: &'static str,
    logits: &[f32],
    n_classes: usize,
    labels: &[u32],
    f: impl Fn(&[f32], &[u32]) -> T + Sync,
    combine: impl Fn(T, T) -> T,
) -> Result<T, Error> {
    check_counts(metric, logits, n_classes, labels.len())?;
    // With no classes, any label is out of range: the chunks only have to be there.
    let chunk_values = CHUNK_ROWS.saturating_mul(n_classes).max(1);
    let chunks: Vec<Result<T, Error>> = (labels.par_chunks(CHUNK_ROWS).enumerate())
        .map(|(chunk, labels)| {
            let start = chunk * chunk_values;
            let logits = logits.get(start..start + labels.len() * n_classes).unwrap_or_default();
            if let Some(row) = labels.iter().position(|&label| label as usize >= n_classes) {
                let expected = format!("a class below {n_classes}");
                return Err(Error::Label { metric, row: chunk * CHUNK_ROWS + row, found: f64::from(labels[row]), expected });
            }
            check_no_nan(metric, logits, n_classes, chunk)?;
            Ok(f(logits, labels))
        })
        .collect();
    combined(metric, chunks, combine)
}

fn check_counts(metric: &'static str, predictions: &[f32], n_classes: usize, n_labels: usize) -> Result<(), Error> {
    let expected = n_labels.saturating_mul(n_classes);
    if predictions.len() != expected {
        return Err(Error::PredictionCount { metric, labels: n_labels, expected, found: predictions.len() });
    }
    if n_labels == 0 { Err(Error::NoRows { metric }) } else { Ok(()) }
}

fn check_no_nan(metric: &'static str, predictions: &[f32], n_classes: usize, chunk: usize) -> Result<(), Error> {
    match predictions.iter().position(|prediction| prediction.is_nan()) {
        Some(index) => Err(Error::NanPrediction { metric, row: chunk * CHUNK_ROWS + index / n_classes }),
        None => Ok(()),
    }
}

fn combined<T>(metric: &'static str, chunks: Vec<Result<T, Error>>, combine: impl Fn(T, T) -> T) -> Result<T, Error> {
    let mut all = None;
    for chunk in chunks {
        let chunk = chunk?;
        all = Some(match all {
            None => chunk,
            Some(all) => combine(all, chunk),
        });
    }
    all.ok_or(Error::NoRows { metric })
}
