use brisk_loader::{RowSource, Subset, key_of};
use brisk_table::Table;

use crate::detect::Detected;
use crate::error::Error;
use crate::number_source::for_each_row;
use crate::splitting::Splitting;
use crate::warning::TabularWarning;

/// A key for each row of a table, which rows have in common that are equal in all numbers and categories.
pub(super) fn keys(table: &Table) -> Result<Vec<u64>, Error> {
    let mut keys = Vec::with_capacity(table.n_rows());
    let mut bytes = Vec::new();
    for_each_row(table, "all", |_, features, categories| {
        bytes.clear();
        features.iter().for_each(|&value| bytes.extend_from_slice(&bits(value).to_le_bytes()));
        categories.iter().for_each(|code| bytes.extend_from_slice(&code.to_le_bytes()));
        keys.push(key_of(&bytes));
    })?;
    Ok(keys)
}

/// What equal numbers have in common: 0 and -0 are one, and so are all missing ones.
fn bits(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { (value + 0.0).to_bits() }
}

/// The share of the test rows from which on it is said that they occur in training.
const MIN_SHARE: f64 = 0.01;

/// How many times as often rows are equal as they would be if their columns had nothing to do with each other.
const MIN_TIMES: f64 = 10.0;

/// How many different rows are compared, column by column.
const SAMPLE: usize = 4096;

impl Detected {
    /// Test rows that are equal in all features to training rows, which flatter the scores, if they are a hundredth of the test
    /// rows or more, and ten times as many as there would be by chance, given the values of the columns. `None` for rows of one
    /// column, and for rows that are split by [groups](crate::DetectOptions::group), by [time](crate::DetectOptions::time), or so that
    /// [equal rows](crate::DetectOptions::group_equal) are in one set.
    ///
    /// # Errors
    /// [`Error::Rows`](brisk_train::Error::Rows).
    ///
    /// # Cost
    /// Reads the table once, or twice if there are such rows.
    pub fn equal_rows(&self, train: &Subset<&Table>, test: &Subset<&Table>) -> Result<Option<TabularWarning>, Error> {
        // Of one column, values that are repeated are no sign of copies.
        if self.splitting != Splitting::Random || self.table.n_cols() + self.table.n_categories() < 2 {
            return Ok(None);
        }
        let keys = keys(&self.table)?;
        let of = |part: &Subset<&Table>| (0..part.n_rows() as u32).map(|row| keys[part.row(row) as usize]).collect::<Vec<_>>();
        let (mut in_train, in_test) = (of(train), of(test));
        in_train.sort_unstable();
        in_train.dedup();
        let n_rows = in_test.iter().filter(|key| in_train.binary_search(key).is_ok()).count();
        let share = n_rows as f64 / in_test.len() as f64;
        if n_rows == 0 || share < MIN_SHARE {
            return Ok(None);
        }
        let by_chance = 1.0 - (1.0 - chance(&self.table, &keys)?).powf(in_train.len() as f64);
        Ok((share >= MIN_TIMES * by_chance).then_some(TabularWarning::EqualRows { n_rows, n_test: in_test.len() }))
    }
}

/// The probability that two different rows would be equal if their columns had nothing to do with each other.
fn chance(table: &Table, keys: &[u64]) -> Result<f64, Error> {
    let mut different = keys.to_vec();
    different.sort_unstable();
    different.dedup();
    let stride = different.len().div_ceil(SAMPLE);
    let sample: Vec<u64> = different.into_iter().step_by(stride).collect();
    let mut is_new = vec![true; sample.len()];
    let mut columns = vec![Vec::new(); table.n_cols() + table.n_categories()];
    for_each_row(table, "all", |row, features, categories| {
        let Ok(at) = sample.binary_search(&keys[row]) else { return };
        if std::mem::replace(&mut is_new[at], false) {
            let values = features.iter().map(|&value| bits(value)).chain(categories.iter().copied());
            columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        }
    })?;
    let pairs = |n: usize| (n * n.saturating_sub(1)) as f64;
    let equal = columns.into_iter().map(|mut column| {
        column.sort_unstable();
        column.chunk_by(|a, b| a == b).map(|same| pairs(same.len())).sum::<f64>() / pairs(column.len()).max(1.0)
    });
    Ok(equal.product())
}
