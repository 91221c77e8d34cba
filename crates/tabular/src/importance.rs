use brisk_loader::{Chunk, Layout, RowMemory, RowSelection, RowSource, Shuffle};
use serde::{Deserialize, Serialize};

use crate::error::{Error, failed};
use crate::mean::mean_and_deviation;
use crate::preprocessing::{ColumnUse, Preprocessing};

/// How much a model needs each column of its table: how much worse its score on validation rows becomes if the values of the
/// column are permuted among the rows, so that they say nothing about the target. Of columns that say the same, a model may need
/// any.
///
/// # Reference
/// Breiman 2001, *Random Forests*; scikit-learn's `permutation_importance`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Importance {
    /// What is measured: `log_loss` of classes, `rmse` of numbers, in the unit of the target.
    pub score: String,
    /// The score of the rows as they are.
    pub base: f64,
    /// The score of the best constant prediction for these rows.
    pub constant: f64,
    /// How many rows there are.
    pub n_rows: usize,
    /// How often each column was permuted.
    pub n_repeats: usize,
    /// All columns, the most important one first.
    pub columns: Vec<ColumnImportance>,
}

/// A column of an [`Importance`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnImportance {
    /// The column of the table: all features that it became are permuted together.
    pub column: String,
    /// The mean difference of the score with the column permuted to the score of the rows as they are; about 0 for a column that
    /// the model does not use.
    pub mean: f64,
    /// The standard deviation over the permutations.
    pub deviation: f64,
}

/// How [`TabularModel::measure_importance`](crate::TabularModel::measure_importance) samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportanceOptions {
    /// The most rows; more are sampled.
    pub max_rows: usize,
    /// Permutations of each column.
    pub n_repeats: usize,
    /// The most rows to predict, over all columns and permutations: with more, there are fewer permutations, down to three, then
    /// fewer rows, down to 50, then fewer permutations; nothing is measured if that does not suffice.
    pub max_predictions: usize,
    /// The seed of the sample and of the permutations.
    pub seed: u64,
}

impl Default for ImportanceOptions {
    fn default() -> Self {
        Self { max_rows: 10_000, n_repeats: 5, max_predictions: usize::MAX, seed: 0 }
    }
}

/// The fewest rows that are sampled of more.
const MIN_ROWS: usize = 50;

/// Permutations that fewer rows are sampled for.
const FEW_REPEATS: usize = 3;

impl ImportanceOptions {
    /// How many of `n_rows` rows are sampled, and how often each of `n_columns` columns is permuted.
    fn sizes(&self, n_rows: usize, n_columns: usize) -> Option<(usize, usize)> {
        let (most, of_column) = (n_rows.min(self.max_rows), self.max_predictions / n_columns.max(1));
        let sampled = most.min((of_column / FEW_REPEATS).max(MIN_ROWS));
        let repeats = (of_column / sampled.max(1)).min(self.n_repeats.max(1));
        (sampled > 0 && repeats > 0).then_some((sampled, repeats))
    }
}

/// Rows that columns are permuted in.
pub(super) struct Sample {
    memory: RowMemory<f32>,
    layout: Layout,
    n_repeats: usize,
    seed: u64,
}

impl Sample {
    /// Some of the preprocessed `rows`; `None` if they would be too few.
    pub(super) fn of<S: RowSource<Feature = f32>>(
        preprocessing: &Preprocessing,
        rows: &S,
        options: &ImportanceOptions,
    ) -> Result<Option<Self>, Error> {
        let (layout, n_columns) = (rows.layout(), preprocessing.uses().len());
        let Some((n, n_repeats)) = options.sizes(layout.n_rows, n_columns) else { return Ok(None) };
        let order = Shuffle::new(layout.n_rows as u32, options.seed, 0);
        let mut chosen: Vec<u32> = (0..n as u32).map(|position| order.row(position)).collect();
        chosen.sort_unstable();
        let mut memory = RowMemory::new(layout, n);
        rows.gather(RowSelection::Numbers(&chosen), memory.buffers(n)).map_err(failed("valid"))?;
        Ok(Some(Self { memory, layout: Layout { n_rows: n, ..layout }, n_repeats, seed: options.seed }))
    }

    pub(super) fn rows(&self) -> Chunk<'_, f32> {
        self.memory.chunk(0, self.layout.n_rows)
    }

    pub(super) fn weights(&self) -> Option<&[f32]> {
        self.layout.has_weights.then_some(self.rows().weights)
    }

    /// The importance of each column by a score of features and categories; `None` if a score is not finite.
    pub(super) fn importance(
        &self,
        preprocessing: &Preprocessing,
        name: &str,
        constant: f64,
        mut score: impl FnMut(&[f32], &[u32]) -> Result<f64, Error>,
    ) -> Result<Option<Importance>, Error> {
        let Chunk { features, categories, .. } = self.rows();
        let base = score(features, categories)?;
        let mut columns = Vec::new();
        for (nth, column) in preprocessing.uses().into_iter().enumerate() {
            let mut differences = Vec::new();
            for repeat in 0..self.n_repeats {
                let (features, categories) = self.permuted(&column, 1 + nth * self.n_repeats + repeat);
                differences.push(score(&features, &categories)? - base);
            }
            let [mean, deviation] = mean_and_deviation(&differences);
            columns.push(ColumnImportance { column: column.name, mean, deviation });
        }
        let is_finite = |column: &ColumnImportance| column.mean.is_finite() && column.deviation.is_finite();
        if !base.is_finite() || !constant.is_finite() || !columns.iter().all(is_finite) {
            return Ok(None);
        }
        columns.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        let (n_rows, n_repeats) = (self.layout.n_rows, self.n_repeats);
        Ok(Some(Importance { score: name.to_owned(), base, constant, n_rows, n_repeats, columns }))
    }

    /// The features and categories with those of one column permuted among the rows, the same way for all of them.
    fn permuted(&self, column: &ColumnUse, nth: usize) -> (Vec<f32>, Vec<u32>) {
        let Layout { n_rows, n_cols, n_categories, .. } = self.layout;
        let order = Shuffle::new(n_rows as u32, self.seed, nth as u32);
        let rows = self.rows();
        let (mut features, mut categories) = (rows.features.to_vec(), rows.categories.to_vec());
        for (row, position) in (0..n_rows).zip(0..) {
            let from = order.row(position) as usize;
            for col in &column.features {
                features[row * n_cols + col] = rows.features[from * n_cols + col];
            }
            if let Some(col) = column.category {
                categories[row * n_categories + col] = rows.categories[from * n_categories + col];
            }
        }
        (features, categories)
    }
}

impl Importance {
    /// The mean of those of several models of the same columns.
    pub(super) fn mean_of(all: &[Self]) -> Option<Self> {
        let first = all.first()?;
        let mean = |of: &dyn Fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let column = |name: &String| {
            let of = |importance: &Self| importance.columns.iter().find(|other| other.column == *name).cloned();
            let found: Vec<ColumnImportance> = all.iter().filter_map(of).collect();
            let means: Vec<f64> = found.iter().map(|column| column.mean).collect();
            let [mean, between] = mean_and_deviation(&means);
            // The variance of all permutations is that between the models and the mean of those within them.
            let within = found.iter().map(|column| column.deviation.powi(2)).sum::<f64>() / found.len() as f64;
            ColumnImportance { column: name.clone(), mean, deviation: (between.powi(2) + within).sqrt() }
        };
        let mut columns: Vec<ColumnImportance> = first.columns.iter().map(|other| column(&other.column)).collect();
        columns.sort_by(|a, b| b.mean.total_cmp(&a.mean));
        Some(Self {
            score: first.score.clone(),
            base: mean(&|importance| importance.base),
            constant: mean(&|importance| importance.constant),
            n_rows: all.iter().map(|importance| importance.n_rows).sum(),
            n_repeats: first.n_repeats,
            columns,
        })
    }

    /// The column that decides the predictions by itself, which is probably known only after the target is: the rows are
    /// predicted nearly without errors, without this column no better than by a constant, and no other column matters.
    pub fn decisive(&self) -> Option<&ColumnImportance> {
        const LITTLE: f64 = 0.1;
        let [first, others @ ..] = &self.columns[..] else { return None };
        let is_known = self.base <= LITTLE * self.constant;
        let is_needed = self.base + first.mean >= (1.0 - LITTLE) * self.constant;
        let is_alone = !others.is_empty() && others.iter().all(|other| other.mean <= LITTLE * first.mean);
        (is_known && is_needed && is_alone && first.mean > 0.0).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_takes_permutations_first_then_rows() {
        let sizes = |max_predictions: usize, n_rows: usize, n_columns: usize| {
            ImportanceOptions { max_predictions, ..ImportanceOptions::default() }.sizes(n_rows, n_columns)
        };
        assert_eq!(sizes(usize::MAX, 30_000, 10), Some((10_000, 5)));
        assert_eq!(sizes(45_000, 1000, 10), Some((1000, 4)));
        assert_eq!(sizes(15_000, 1000, 10), Some((500, 3)));
        assert_eq!(sizes(5000, 1000, 50), Some((50, 2)));
        assert_eq!(sizes(5000, 1000, 200), None);
        assert_eq!(sizes(5000, 7, 500), Some((7, 1)));
        assert_eq!(sizes(5000, 0, 5), None);
    }

    #[test]
    fn a_column_decides_if_no_other_one_matters() {
        let of = |base: f64, means: &[f64]| {
            let column = |&mean: &f64| ColumnImportance { column: mean.to_string(), mean, deviation: 0.0 };
            let columns = means.iter().map(column).collect();
            let importance = Importance { score: "rmse".to_owned(), base, constant: 1.0, n_rows: 100, n_repeats: 2, columns };
            importance.decisive().map(|column| column.mean)
        };
        assert_eq!(of(0.01, &[1.3, 0.02, -0.01]), Some(1.3));
        assert_eq!(of(0.01, &[1.3, 0.2]), None, "another column matters, too");
        assert_eq!(of(0.4, &[1.3, 0.02]), None, "the rest is not known");
        assert_eq!(of(0.01, &[0.5, 0.02]), None, "the others know it as well");
        assert_eq!(of(0.01, &[1.3]), None, "there is no other");
    }
}
