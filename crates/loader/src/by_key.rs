use std::cmp::Reverse;
use std::collections::HashMap;

use crate::error::Error;
use crate::shuffle::splitmix64_finish;
use crate::source::RowSource;
use crate::split::Fold;
use crate::split::{check_folds, check_fractions, folds, n_rows_of, parts};
use crate::subset::Subset;

/// Splits rows by a key that `key` returns for each row: a patient, a session, a day. All rows with the same key are in the same part, so that
/// no key occurs in two parts.
///
/// The part depends only on the key, the seed and the fractions, so adding rows later does not move existing rows to another part. Sizes
/// match the fractions only approximately, and with few keys may differ from them a lot.
///
/// # Specification
/// A key is in the first part for which `finish(seed + finish(key)) / 2^64` is below the sum of the fractions up to it, with the `finish` of
/// [`Shuffle`](crate::Shuffle) on wrapping `u64`.
///
/// # Errors
/// [`Error::Fractions`] unless they are all 0 or more and sum to 1; [`Error::TooManyRows`] beyond 2³² − 1.
///
/// # Examples
/// ```
/// use brisk_loader::{RowSource, Rows, key_of, split_by_key};
///
/// let patients: Vec<String> = (0..1000).map(|row| format!("patient {}", row / 4)).collect();
/// let rows = Rows::new(vec![0.5; 1000], vec![0.0; 1000], 1)?;
/// let [train, test] = split_by_key(&rows, |row| key_of(patients[row as usize].as_bytes()), 42, [0.8, 0.2])?;
/// assert_eq!(test.n_rows() % 4, 0);
/// assert!((150..250).contains(&test.n_rows()));
/// # Ok::<(), brisk_loader::Error>(())
/// ```
pub fn split_by_key<S: RowSource + Clone, const N: usize>(
    source: S,
    key: impl Fn(u32) -> u64,
    seed: u64,
    fractions: [f64; N],
) -> Result<[Subset<S>; N], Error> {
    check_fractions(&fractions)?;
    // Keys that are left over by rounding belong to the last part that is not empty.
    let last = fractions.iter().rposition(|&fraction| fraction > 0.0).unwrap_or(0) as u32;
    let part = |row| {
        let place = splitmix64_finish(seed.wrapping_add(splitmix64_finish(key(row)))) as f64 / 18_446_744_073_709_551_616.0;
        let mut share = 0.0;
        let ends = fractions.iter().map(|fraction| {
            share += fraction;
            share
        });
        (0..).zip(ends).find(|&(_, end)| place < end).map_or(last, |(part, _)| part)
    };
    let part_of_row: Vec<u32> = (0..n_rows_of(&source)?).map(part).collect();
    match parts(&source, &part_of_row, N)?.try_into() {
        Ok(parts) => Ok(parts),
        Err(_) => unreachable!("as many parts as fractions"),
    }
}

/// A key for [`split_by_key`] from bytes, such as a name. It will not change in later versions (64-bit FNV-1a).
pub fn key_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// Like [`k_fold`](crate::k_fold), with a key: all rows with the same key are in one fold's validation set. Folds are as even as the groups allow: groups
/// are assigned from the largest to the smallest, each to the smallest fold so far, as in scikit-learn's `GroupKFold`. There is no randomness, and no seed.
///
/// # Errors
/// [`Error::Folds`] for fewer than two folds, or more than there are keys; [`Error::TooManyRows`] beyond 2³² − 1.
pub fn group_k_fold<S: RowSource + Clone>(source: S, key: impl Fn(u32) -> u64, n_folds: usize) -> Result<Vec<Fold<S>>, Error> {
    let mut numbers = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let group_of = |row| {
        let (key, next) = (key(row), numbers.len() as u32);
        let number = *numbers.entry(key).or_insert(next);
        if number == next {
            groups.push(Group { n_rows: 0, key, number });
        }
        groups[number as usize].n_rows += 1;
        number
    };
    let group_of_row: Vec<u32> = (0..n_rows_of(&source)?).map(group_of).collect();
    check_folds(n_folds, groups.len())?;
    // The largest first; among groups of the same size, the one with the greater key.
    groups.sort_by_key(|group| Reverse((group.n_rows, group.key)));
    let mut sizes = vec![0; n_folds];
    let mut fold_of_group = vec![0_u32; groups.len()];
    for Group { n_rows, number, .. } in groups {
        let lightest = (0..n_folds).min_by_key(|&fold| sizes[fold]).unwrap_or(0);
        sizes[lightest] += n_rows;
        fold_of_group[number as usize] = lightest as u32;
    }
    let fold_of_row: Vec<u32> = group_of_row.iter().map(|&group| fold_of_group[group as usize]).collect();
    folds(&source, &fold_of_row, n_folds)
}

/// The rows with one key.
struct Group {
    n_rows: usize,
    key: u64,
    number: u32,
}
