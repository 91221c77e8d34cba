use brisk_loader::key_of;
use brisk_table::Table;

use crate::error::Error;
use crate::number_source::for_each_row;

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

/// How many different rows are compared, column by column.
const SAMPLE: usize = 4096;

/// The probability that two different rows would be equal if their columns had nothing to do with each other.
pub(super) fn chance(table: &Table, keys: &[u64]) -> Result<f64, Error> {
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
