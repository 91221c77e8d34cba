use std::collections::HashSet;

use brisk_loader::{
    Fold, RowSource, Subset, group_k_fold, group_split, k_fold, labels_of, ordered_split, split, stratified_k_fold,
    stratified_split,
};
use brisk_table::{Table, printable};

use crate::class_rows::with_each_class;
use crate::error::{Error, failed};
use crate::target::Target;

/// Which rows of a table may be in different sets.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Splitting {
    /// Any, at random; those of each class in the same proportions, but at least one of each in every set, if there are as many.
    #[default]
    Random,
    /// Only rows of different groups: [`DetectOptions::group`](crate::DetectOptions::group), with the group of each row, as a
    /// number.
    Groups { column: String, groups: Vec<u64> },
    /// Only rows that differ in some feature: [`DetectOptions::group_equal`](crate::DetectOptions::group_equal), with a number of
    /// each row, which only equal rows have in common.
    Equal { keys: Vec<u64> },
    /// Only earlier and later rows: [`DetectOptions::time`](crate::DetectOptions::time), with the time of each row: a number, or
    /// the seconds since 1970.
    Times { column: String, times: Vec<f64> },
}

impl Splitting {
    /// As [`Detected::folds`](crate::Detected::folds); `table_row` is the number of a row in the table.
    pub(super) fn folds<S: RowSource + Clone>(
        &self,
        target: &Target,
        rows: S,
        table_row: impl Fn(u32) -> u32,
        seed: u64,
        n_folds: usize,
    ) -> Result<Vec<Fold<S>>, Error> {
        let check = |found: usize, what: &dyn Fn() -> String| {
            if (2..=found).contains(&n_folds) { Ok(()) } else { Err(Error::Folds { n_folds, found, what: what() }) }
        };
        check(rows.n_rows(), &|| "rows".to_owned())?;
        let folds = match (self, target) {
            (Self::Times { column, .. }, _) => return Err(Error::FoldsOfTimes { column: column.clone() }),
            (Self::Groups { column, groups }, _) => {
                let group = |row: u32| groups[table_row(row) as usize];
                let n_groups = (0..rows.n_rows() as u32).map(group).collect::<HashSet<_>>().len();
                check(n_groups, &|| format!("groups of `{}`", printable(column)))?;
                group_k_fold(rows, group, n_folds)
            }
            (Self::Equal { keys }, _) => {
                let key = |row: u32| keys[table_row(row) as usize];
                check((0..rows.n_rows() as u32).map(key).collect::<HashSet<_>>().len(), &|| "different rows".to_owned())?;
                group_k_fold(rows, key, n_folds)
            }
            (Self::Random, Target::Classes { classes, .. }) => {
                let labels = labels_of(&rows).map_err(failed("train"))?;
                for (class, name) in classes.iter().enumerate() {
                    let n_rows = labels.iter().filter(|&&label| label as usize == class).count();
                    if n_rows > 0 {
                        check(n_rows, &|| format!("rows of class {:?}", printable(name).to_string()))?;
                    }
                }
                stratified_k_fold(rows, &labels, seed, n_folds)
            }
            (Self::Random, Target::Number { .. }) => k_fold(rows, seed, n_folds),
        };
        folds.map_err(failed("train"))
    }

    /// As [`Detected::split`](crate::Detected::split).
    pub(super) fn split<'a, const N: usize>(
        &self,
        table: &'a Table,
        target: &Target,
        seed: u64,
        fractions: [f64; N],
    ) -> Result<[Subset<&'a Table>; N], Error> {
        let n_parts = fractions.iter().filter(|&&fraction| fraction > 0.0).count();
        let few = |column: &String, what: &'static str, found: usize| {
            if found >= n_parts {
                Ok(())
            } else {
                Err(Error::FewParts { column: column.clone(), what, found, expected: n_parts })
            }
        };
        let parts = match (self, target) {
            (Self::Groups { column, groups }, _) => {
                few(column, "groups", groups.iter().collect::<HashSet<_>>().len())?;
                group_split(table, |row| groups[row as usize], seed, fractions)
            }
            (Self::Equal { keys }, _) => {
                let found = keys.iter().collect::<HashSet<_>>().len();
                if found < n_parts {
                    return Err(Error::FewDifferent { n_rows: keys.len(), found, expected: n_parts });
                }
                group_split(table, |row| keys[row as usize], seed, fractions)
            }
            (Self::Times { column, times }, _) => {
                few(column, "different times", times.iter().map(|time| time.to_bits()).collect::<HashSet<_>>().len())?;
                ordered_split(table, times, fractions)
            }
            (Self::Random, Target::Classes { labels: classes, .. }) => {
                let labels = labels_of(table).map_err(failed("all"))?;
                let parts = stratified_split(table, &labels, seed, fractions).map_err(failed("all"))?;
                Ok(with_each_class(table, (&labels, classes), parts, fractions)?)
            }
            (Self::Random, Target::Number { .. }) => split(table, seed, fractions),
        };
        let parts = parts.map_err(failed("all"))?;
        let is_empty = |(part, fraction): (&Subset<_>, f64)| part.n_rows() == 0 && fraction > 0.0;
        if parts.iter().zip(fractions).any(is_empty) {
            return Err(Error::FewRows { n_rows: table.n_rows(), n_parts });
        }
        Ok(parts)
    }
}
