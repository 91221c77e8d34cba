//! Whether a single column predicts the label.

/// The fewest rows from which more is concluded than that a column is a copy of the label.
const MIN_ROWS: usize = 100;

/// The fewest rows from which anything is concluded, and how many of them the most frequent label must leave.
const MIN_COPIED: usize = 10;
const MIN_OTHERS: usize = 4;

/// Labels of at most this many different values are classes.
const MAX_CLASSES: usize = 50;

/// The rank correlation from which a column predicts labels that are not classes.
const MIN_CORRELATION: f64 = 0.999;

/// Whether the values of a single column predict the labels of the same rows almost without error: by intervals of values, by
/// few values that each belong to one label, or, for labels of many values, by their order. Such a column is rarely known before
/// the label is: it may be derived from it, or be the index of rows that are sorted by it.
///
/// Rows in which the value is missing (NaN) are not considered; if whether it is missing predicts the labels, so does the column.
/// Fewer than 100 others only show that a column is a copy of the label, from 10 rows on: with the same numbers, or with a value
/// of its own for each of a few labels. A sample of some thousand rows is enough.
///
/// # Panics
/// If `values` and `labels` have different lengths.
///
/// # Examples
/// ```
/// use brisk_table::predicts_label;
///
/// let sorted: Vec<f32> = (0..1000).map(|row| if row < 637 { 0.0 } else { 1.0 }).collect();
/// let index: Vec<f32> = (0..1000).map(|row| row as f32).collect();
/// assert!(predicts_label(&index, &sorted));
/// let unrelated: Vec<f32> = (0..1000).map(|row| (row * 37 % 101) as f32).collect();
/// assert!(!predicts_label(&unrelated, &sorted));
/// ```
/// # Cost
/// Sorts the rows.
pub fn predicts_label(values: &[f32], labels: &[f32]) -> bool {
    assert_eq!(values.len(), labels.len(), "each row has a value and a label");
    let mut rows: Vec<(f32, f32)> = values
        .iter()
        .zip(labels)
        .map(|(&value, &label)| (value, label))
        .filter(|row| !row.0.is_nan() && !row.1.is_nan())
        .collect();
    if rows.len() < values.len() {
        let is_missing: Vec<f32> = values.iter().map(|value| f32::from(value.is_nan())).collect();
        if predicts_label(&is_missing, labels) {
            return true;
        }
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let counts = counts(rows.iter().map(|row| row.1));
    if rows.len() < MIN_ROWS {
        return is_copy(&rows, &counts) || has_others(&rows, &counts) && rows.iter().all(|(value, label)| value == label);
    }
    match counts.len() {
        0 | 1 => false,
        2..=MAX_CLASSES => predicts_classes(&rows, &counts, true),
        _ => rank_correlation(&rows).abs() >= MIN_CORRELATION,
    }
}

/// Like [`predicts_label`], for codes of categories, whose order means nothing.
pub(crate) fn category_predicts_label(codes: &[f32], labels: &[f32]) -> bool {
    let mut rows: Vec<(f32, f32)> = codes.iter().copied().zip(labels.iter().copied()).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let counts = counts(rows.iter().map(|row| row.1));
    match rows.len() {
        ..MIN_ROWS => is_copy(&rows, &counts),
        _ => (2..=MAX_CLASSES).contains(&counts.len()) && predicts_classes(&rows, &counts, false),
    }
}

/// Whether each label has one value and each value one label, and labels occur more than once.
fn is_copy(rows: &[(f32, f32)], counts: &[(f32, usize)]) -> bool {
    let n_values = rows.chunk_by(|a, b| a.0 == b.0).count();
    let n_pairs = rows.chunk_by(|a, b| a == b).count();
    has_others(rows, counts) && 2 * n_values <= rows.len() && n_values == counts.len() && n_pairs == n_values
}

/// Whether there are enough rows, also without the most frequent label.
fn has_others(rows: &[(f32, f32)], counts: &[(f32, usize)]) -> bool {
    let most = counts.iter().map(|label| label.1).max().unwrap_or(0);
    rows.len() >= MIN_COPIED && rows.len() - most >= MIN_OTHERS
}

/// The different labels, sorted, and how often each occurs.
fn counts(labels: impl Iterator<Item = f32>) -> Vec<(f32, usize)> {
    let mut labels: Vec<f32> = labels.collect();
    labels.sort_by(f32::total_cmp);
    labels.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect()
}

/// `rows` are sorted by value, then by label.
fn predicts_classes(rows: &[(f32, f32)], counts: &[(f32, usize)], are_ordered: bool) -> bool {
    let (mut n_values, mut n_changes, mut n_wrong, mut previous) = (0, 0, 0, None);
    for same_value in rows.chunk_by(|a, b| a.0 == b.0) {
        let most = same_value.chunk_by(|a, b| a.1 == b.1).max_by_key(|same| same.len()).expect("a chunk is not empty");
        n_values += 1;
        n_wrong += same_value.len() - most.len();
        n_changes += usize::from(previous.is_some_and(|label| label != most[0].1));
        previous = Some(most[0].1);
    }
    let n_rows = rows.len();
    // What always predicting the most frequent label would get wrong.
    let n_without = n_rows - counts.iter().map(|label| label.1).max().unwrap_or(0);
    let allowed = n_rows / 1000;
    if n_without < 10 || n_wrong > allowed || 10 * n_wrong > n_without {
        return false;
    }
    n_values <= n_rows / 20 || are_ordered && n_changes < counts.len() + 2 * allowed
}

/// Spearman's correlation of rows that are sorted by value.
fn rank_correlation(rows: &[(f32, f32)]) -> f64 {
    let values: Vec<f32> = rows.iter().map(|row| row.0).collect();
    let labels: Vec<f32> = rows.iter().map(|row| row.1).collect();
    let (a, b) = (ranks(&values), ranks(&labels));
    let mean = (rows.len() as f64 - 1.0) / 2.0;
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let scale = (sum(&a, &a) * sum(&b, &b)).sqrt();
    if scale > 0.0 { sum(&a, &b) / scale } else { 0.0 }
}

/// Ranks counted from 0; equal values share their mean rank.
fn ranks(values: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for same in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = before as f64 + (same.len() as f64 - 1.0) / 2.0;
        same.iter().for_each(|&row| ranks[row] = rank);
        before += same.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: impl Fn(usize) -> f32, label: impl Fn(usize) -> f32, expected: bool) {
        let (values, labels): (Vec<f32>, Vec<f32>) = (0..2000).map(|row| (value(row), label(row))).unzip();
        assert_eq!(predicts_label(&values, &labels), expected);
    }

    fn noise(row: usize) -> f32 {
        (row.wrapping_mul(2_654_435_761) >> 7 & 0xffff) as f32
    }

    /// The same for few rows.
    #[track_caller]
    fn check_few(n_rows: usize, value: impl Fn(usize) -> f32, label: impl Fn(usize) -> f32, expected: [bool; 2]) {
        let (values, labels): (Vec<f32>, Vec<f32>) = (0..n_rows).map(|row| (value(row), label(row))).unzip();
        assert_eq!([predicts_label(&values, &labels), category_predicts_label(&values, &labels)], expected, "{n_rows} rows");
    }

    #[test]
    fn copies_of_the_label_in_few_rows() {
        let class = |row: usize| (row % 3) as f32;
        for n_rows in [10, 50, 99] {
            check_few(n_rows, class, class, [true; 2]);
            check_few(n_rows, |row| 7.0 - class(row), class, [true; 2]);
            check_few(n_rows, noise, noise, [true, false]);
            // A line through points, an index, and another class.
            check_few(n_rows, |row| row as f32, |row| 2.0 * row as f32, [false; 2]);
            check_few(n_rows, |row| row as f32, class, [false; 2]);
            check_few(n_rows, |row| (row % 2) as f32, class, [false; 2]);
            check_few(n_rows, |row| (row % 6) as f32, class, [false; 2]);
            check_few(n_rows, |row| f32::from(row % n_rows == 3), |row| f32::from(row % n_rows == 3), [false; 2]);
        }
        check_few(9, class, class, [false; 2]);
    }

    #[test]
    fn columns_that_give_the_label_away() {
        let parity = |row: usize| (row % 2) as f32;
        check(|row| 5.0 - parity(row), parity, true);
        check(|row| noise(row) + 1e6 * parity(row), parity, true);
        // A number that orders the labels, and one that does so with noise.
        check(|row| (row as f32).sqrt(), |row| row as f32, true);
        check(|row| -(row as f32), |row| row as f32, true);
        check(|row| row as f32 + noise(row) / 30.0, |row| row as f32, false);
        check(noise, parity, false);
        // What is missing, but not the numbers.
        check(|row| if row % 2 == 0 { noise(row) } else { f32::NAN }, parity, true);
        check(|row| if row % 3 == 0 { noise(row) } else { f32::NAN }, parity, false);
        // One class in almost all rows is no achievement.
        check(|_| 1.0, |row| f32::from(row == 7), false);
        check(|row| (row % 7) as f32, |row| f32::from(row % 300 == 1), false);
    }
}
