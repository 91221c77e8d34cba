use std::collections::HashSet;

use brisk_loader::{RowSource, Subset, group_split, labels_of, ordered_split, split, stratified_split};
use brisk_table::Table;

use crate::error::{Error, failed};
use crate::target::Target;

/// Which rows of a table may be in different sets.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Splitting {
    /// Any, at random; those of each class in the same proportions.
    #[default]
    Random,
    /// Only rows of different groups: [`DetectOptions::group`](crate::DetectOptions::group).
    Groups {
        /// The column.
        column: String,
        /// The group of each row, as a number.
        groups: Vec<u64>,
    },
    /// Only earlier and later rows: [`DetectOptions::time`](crate::DetectOptions::time).
    Times {
        /// The column.
        column: String,
        /// The time of each row: a number, or the seconds since 1970.
        times: Vec<f64>,
    },
}

impl Splitting {
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
            (Self::Times { column, times }, _) => {
                few(column, "different times", times.iter().map(|time| time.to_bits()).collect::<HashSet<_>>().len())?;
                ordered_split(table, times, fractions)
            }
            (Self::Random, Target::Classes { .. }) => {
                stratified_split(table, &labels_of(table).map_err(failed("all"))?, seed, fractions)
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
