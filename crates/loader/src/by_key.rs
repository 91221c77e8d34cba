use std::cmp::Reverse;
use std::collections::HashMap;

use crate::error::Error;
use crate::shuffle::splitmix64_finish;
use crate::source::RowSource;
use crate::split::{Fold, check_folds, check_fractions, folds, n_rows_of, parts};
use crate::subset::Subset;

/// Splits rows by a key that `key` returns for each row: a patient, a session, a day. All rows with the same key are in the same
/// part, so that no key occurs in two parts.
///
/// The part depends only on the key, the seed and the fractions, so adding rows later does not move existing rows to another
/// part. Sizes match the fractions only approximately, and with few keys may differ from them a lot.
///
/// # Specification
/// A key is in the first part for which `finish(seed + finish(key)) / 2^64` is below the sum of the fractions up to it, with the
/// `finish` of [`Shuffle`](crate::Shuffle) on wrapping `u64`.
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
    parts(&source, &part_of_row)
}

/// Splits rows by a key, as [`split_by_key`] does, into parts of sizes that are as close to the fractions as the groups of rows
/// with the same key allow: groups come in an order that depends on the seed, and each is assigned to the part that lacks most
/// rows. A part is empty only if its fraction is 0, or if there are fewer groups than parts.
///
/// # Errors
/// As [`split_by_key`].
///
/// # Examples
/// ```
/// use brisk_loader::{RowSource, Rows, group_split};
///
/// let rows = Rows::new(vec![0.5; 100], vec![0.0; 100], 1)?;
/// // Five groups of 20 rows.
/// let [train, valid, test] = group_split(&rows, |row| u64::from(row / 20), 42, [0.6, 0.2, 0.2])?;
/// assert_eq!([train.n_rows(), valid.n_rows(), test.n_rows()], [60, 20, 20]);
/// # Ok::<(), brisk_loader::Error>(())
/// ```
pub fn group_split<S: RowSource + Clone, const N: usize>(
    source: S,
    key: impl Fn(u32) -> u64,
    seed: u64,
    fractions: [f64; N],
) -> Result<[Subset<S>; N], Error> {
    check_fractions(&fractions)?;
    let n_rows = n_rows_of(&source)?;
    let Groups { mut groups, of_row } = Groups::of(n_rows, key);
    groups.sort_by_key(|group| (splitmix64_finish(seed.wrapping_add(splitmix64_finish(group.key))), group.key));
    let (mut part_of_group, mut sizes) = (vec![0_u32; groups.len()], [0; N]);
    for (nth, Group { n_rows: n_of_group, number, .. }) in groups.iter().enumerate() {
        let empty = (0..N).filter(|&part| fractions[part] > 0.0 && sizes[part] == 0).count();
        let is_last_chance = groups.len() - nth <= empty;
        let lacks = |part: &usize| fractions[*part] * f64::from(n_rows) - sizes[*part] as f64;
        let parts = (0..N).filter(|&part| fractions[part] > 0.0 && (!is_last_chance || sizes[part] == 0));
        let part = parts.max_by(|a, b| lacks(a).total_cmp(&lacks(b))).unwrap_or(0);
        sizes[part] += n_of_group;
        part_of_group[*number as usize] = part as u32;
    }
    let part_of_row: Vec<u32> = of_row.iter().map(|&group| part_of_group[group as usize]).collect();
    parts(&source, &part_of_row)
}

/// Splits rows by a number of each, such as a time: the first part has the smallest, the last the greatest. Rows with the same
/// number are in the same part, so that sizes match the fractions only approximately if numbers are repeated; within a part, rows
/// are in the order of the source. NaN comes last.
///
/// # Errors
/// [`Error::Fractions`] unless they are all 0 or more and sum to 1; [`Error::Length`] unless there is one number per row;
/// [`Error::TooManyRows`] beyond 2³² − 1.
///
/// # Examples
/// ```
/// use brisk_loader::{Rows, labels_of, ordered_split};
///
/// let days = [3.0, 1.0, 2.0, 2.0, 5.0];
/// let rows = Rows::new(vec![0.5; 5], days.map(|day| day as f32).to_vec(), 1)?;
/// let [earlier, later] = ordered_split(&rows, &days, [0.6, 0.4])?;
/// assert_eq!((labels_of(&earlier)?, labels_of(&later)?), (vec![1.0, 2.0, 2.0], vec![3.0, 5.0]));
/// # Ok::<(), brisk_loader::Error>(())
/// ```
pub fn ordered_split<S: RowSource + Clone, const N: usize>(
    source: S,
    numbers: &[f64],
    fractions: [f64; N],
) -> Result<[Subset<S>; N], Error> {
    check_fractions(&fractions)?;
    let n_rows = n_rows_of(&source)? as usize;
    if numbers.len() != n_rows {
        return Err(Error::Length { op: "ordered_split", arg: "numbers", expected: n_rows, found: numbers.len() });
    }
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // The different numbers, and how many rows have one of the first of them.
    let runs: Vec<&[f64]> = sorted.chunk_by(|a, b| a.total_cmp(b).is_eq()).collect();
    let ends: Vec<usize> = runs
        .iter()
        .scan(0, |end, run| {
            *end += run.len();
            Some(*end)
        })
        .collect();
    let (mut share, mut first, mut firsts) = (0.0, 0, [0; N]);
    for part in 0..N {
        firsts[part] = first;
        share += fractions[part];
        let n_later = fractions[part + 1..].iter().filter(|&&fraction| fraction > 0.0).count();
        let off = |n: &usize| (ends[n - 1] as f64 - n_rows as f64 * share).abs();
        // At least one number for this part, and for each of those after it.
        let nearest = (first + 1..=runs.len().saturating_sub(n_later)).min_by(|a, b| off(a).total_cmp(&off(b)));
        first = nearest.filter(|_| fractions[part] > 0.0).unwrap_or(first);
    }
    let part_of = |number: &f64| {
        let run = runs.partition_point(|run| run[0].total_cmp(number).is_lt());
        firsts.partition_point(|&first| first <= run).saturating_sub(1) as u32
    };
    let part_of_row: Vec<u32> = numbers.iter().map(part_of).collect();
    parts(&source, &part_of_row)
}

/// A key for [`split_by_key`] from bytes, such as a name. It will not change in later versions (64-bit FNV-1a).
pub fn key_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// Like [`k_fold`](crate::k_fold), with a key: all rows with the same key are in one fold's validation set. Folds are as even as
/// the groups allow: groups are assigned from the largest to the smallest, each to the smallest fold so far, as in scikit-learn's
/// `GroupKFold`. There is no randomness, and no seed.
///
/// # Errors
/// [`Error::Folds`] for fewer than two folds, or more than there are keys; [`Error::TooManyRows`] beyond 2³² − 1.
pub fn group_k_fold<S: RowSource + Clone>(source: S, key: impl Fn(u32) -> u64, n_folds: usize) -> Result<Vec<Fold<S>>, Error> {
    let Groups { mut groups, of_row } = Groups::of(n_rows_of(&source)?, key);
    check_folds(n_folds, "groups of rows with the same key", groups.len())?;
    // The largest first; among groups of the same size, the one with the greater key.
    groups.sort_by_key(|group| Reverse((group.n_rows, group.key)));
    let mut sizes = vec![0; n_folds];
    let mut fold_of_group = vec![0_u32; groups.len()];
    for Group { n_rows, number, .. } in groups {
        let lightest = (0..n_folds).min_by_key(|&fold| sizes[fold]).unwrap_or(0);
        sizes[lightest] += n_rows;
        fold_of_group[number as usize] = lightest as u32;
    }
    let fold_of_row: Vec<u32> = of_row.iter().map(|&group| fold_of_group[group as usize]).collect();
    folds(&source, &fold_of_row, n_folds)
}

/// The groups of rows with the same key, in the order of their first rows, and the group of each row.
struct Groups {
    groups: Vec<Group>,
    of_row: Vec<u32>,
}

impl Groups {
    fn of(n_rows: u32, key: impl Fn(u32) -> u64) -> Self {
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
        let of_row = (0..n_rows).map(group_of).collect();
        Self { groups, of_row }
    }
}

/// The rows with one key.
struct Group {
    n_rows: usize,
    key: u64,
    number: u32,
}
