//! Warnings about the sets that rows are split into.

use brisk_loader::{RowSource, Subset, labels_of};
use brisk_table::Table;

use crate::detect::Detected;
use crate::equal_rows::{chance, keys};
use crate::error::{Error, failed};
use crate::splitting::Splitting;
use crate::target::Target;
use crate::warning::TabularWarning;

/// The share of the test rows from which on there is a warning that they occur in training.
const MIN_SHARE: f64 = 0.01;

/// How many times as often rows are equal as they would be if their columns had nothing to do with each other.
const MIN_TIMES: f64 = 10.0;

impl Detected {
    /// Test rows that are equal in all features to training rows, which flatter the scores, if they are a hundredth of the test
    /// rows or more, and ten times as many as there would be by chance, given the values of the columns. `None` for rows of one
    /// column, and for rows that are split by [groups](crate::DetectOptions::group), by [time](crate::DetectOptions::time), or so
    /// that [equal rows](crate::DetectOptions::group_equal) are in one set.
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

    /// The classes of the target without training rows, which are therefore not learned.
    ///
    /// # Errors
    /// [`Error::Rows`](brisk_train::Error::Rows).
    pub fn untrained_classes(&self, train: &Subset<&Table>) -> Result<Vec<TabularWarning>, Error> {
        let Target::Classes { name, classes, labels } = &self.target else { return Ok(Vec::new()) };
        let (in_train, all) = (labels_of(train).map_err(failed("train"))?, labels_of(&self.table).map_err(failed("all"))?);
        let untrained = classes.iter().zip(labels).filter(|(_, label)| !in_train.contains(label));
        let warning = |(class, label): (&String, &f32)| {
            let n_rows = all.iter().filter(|&other| other == label).count() as u64;
            TabularWarning::UntrainedClass { column: name.clone(), class: class.clone(), n_rows }
        };
        Ok(untrained.map(warning).collect())
    }
}
