//! What is probably wrong with columns, found while their rows pass.

use super::leakage::{category_predicts_label, predicts_label};
use super::rows::ChunkLabels;
use super::{ImportWarning, Roles, RowChunk};

/// The fewest rows in which a column counts the rows not by chance.
const MIN_SEQUENCE: usize = 10;

/// The limits of the sample: its rows, and its values.
const SAMPLE_ROWS: usize = 4096;
const SAMPLE_VALUES: usize = 1 << 22;

/// Columns that count the rows, and a sample of rows.
#[derive(Debug)]
pub(super) struct Audit {
    /// The features that count the rows so far, with their first value.
    sequences: Vec<(usize, f32)>,
    n_rows: usize,
    /// Every `stride`-th row: its features, its categories and its label.
    sample: Vec<f32>,
    stride: usize,
    n_features: usize,
    n_labels: usize,
    row_len: usize,
    has_label: bool,
}

impl Audit {
    pub(super) fn new(roles: &Roles) -> Self {
        let (n_features, n_labels) = (roles.rules.n_features(), roles.n_labels());
        let row_len = n_features + roles.categories.len() + 1;
        let has_label = roles.label_columns.len() == 1;
        Self { sequences: Vec::new(), n_rows: 0, sample: Vec::new(), stride: 1, n_features, n_labels, row_len, has_label }
    }

    /// Looks at the rows of a chunk, whose codes are those of the table.
    pub(super) fn look_at(&mut self, rows: &RowChunk) {
        let n_features = self.n_features;
        let n_rows = rows.n_labels() / self.n_labels;
        if n_rows == 0 {
            return;
        }
        if self.n_rows == 0 {
            self.sequences = rows.features[..n_features].iter().copied().enumerate().collect();
        }
        let before = self.n_rows;
        self.sequences.retain(|&(feature, first)| {
            let mut values = rows.features.iter().skip(feature).step_by(n_features).enumerate();
            values.all(|(row, &value)| value == (f64::from(first) + (before + row) as f64) as f32)
        });
        if self.has_label {
            self.add_to_sample(rows, n_rows);
        }
        self.n_rows += n_rows;
    }

    fn add_to_sample(&mut self, rows: &RowChunk, n_rows: usize) {
        let (row_len, n_features) = (self.row_len, self.n_features);
        let n_categories = row_len - n_features - 1;
        let limit = SAMPLE_ROWS.min(SAMPLE_VALUES / row_len);
        let mut row = self.n_rows.next_multiple_of(self.stride) - self.n_rows;
        while row < n_rows {
            self.sample.extend_from_slice(&rows.features[row * n_features..][..n_features]);
            self.sample.extend(rows.categories[row * n_categories..][..n_categories].iter().map(|&code| code as f32));
            self.sample.push(match &rows.labels {
                ChunkLabels::Numbers(labels) => labels[row],
                ChunkLabels::Found(labels, _) | ChunkLabels::Known(labels) => labels[row] as f32,
            });
            row += self.stride;
            if self.sample.len() / row_len > limit {
                self.stride *= 2;
                self.sample = self.sample.chunks(row_len).step_by(2).flatten().copied().collect();
                // Rows that are multiples of the stride remain, so the next one is such a multiple, too.
                row = (self.n_rows + row).next_multiple_of(self.stride) - self.n_rows;
            }
        }
    }

    /// What was found about the features and categories of these names.
    pub(super) fn warnings(&self, features: &[String], categories: &[String], n_values: &[usize]) -> Vec<ImportWarning> {
        let mut warnings = Vec::new();
        if self.n_rows >= MIN_SEQUENCE {
            // `f32` holds only a few of the largest numbers, so that equal values seem to count.
            let few = (self.n_rows / MIN_SEQUENCE) as f64;
            let is_told = |&&(_, first): &&(usize, f32)| (f64::from(first) + few) as f32 != first;
            let counts =
                self.sequences.iter().filter(is_told).filter_map(|&(feature, first)| Some((features.get(feature)?, first)));
            warnings.extend(counts.map(|(name, first)| ImportWarning::Sequence { column: name.clone(), first: first.into() }));
            let different = categories.iter().zip(n_values).filter(|&(_, &n_values)| n_values == self.n_rows);
            warnings.extend(different.map(|(name, _)| ImportWarning::AllDifferent { column: name.clone() }));
        }
        let column = |at: usize| -> Vec<f32> { self.sample.iter().skip(at).step_by(self.row_len).copied().collect() };
        let labels = column(self.row_len - 1);
        let at_categories = self.n_features..self.row_len - 1;
        let features = features.iter().enumerate().filter(|(at, _)| predicts_label(&column(*at), &labels));
        let categories = at_categories.zip(categories).filter(|(at, _)| category_predicts_label(&column(*at), &labels));
        warnings.extend(features.chain(categories).map(|(_, name)| ImportWarning::PredictsLabel { column: name.clone() }));
        warnings
    }
}
