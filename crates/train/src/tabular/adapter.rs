use brisk_loader::{RowSource, Rows};

use super::{Columns, Preprocessing, TabularError, Target};
use crate::Error;
use crate::feed::FeedElement;
use crate::feed::inspect::{failed, for_each_chunk};

/// Rows of another source whose columns a [`Preprocessing`] converts to features: [`Preprocessing::over`].
#[derive(Debug, Clone)]
pub struct Preprocessed<S> {
    rows: S,
    preprocessing: Preprocessing,
    /// The source's feature for each column of numbers.
    numbers: Vec<usize>,
    /// The source's category for each categorical column.
    categories: Vec<usize>,
    /// For each categorical column, the model's code for each code of the source.
    codes: Vec<Vec<u32>>,
    target: Option<Target>,
    n_features: usize,
}

impl<S: RowSource<Feature: FeedElement>> Preprocessed<S> {
    pub(super) fn new(preprocessing: &Preprocessing, columns: &Columns, rows: S) -> Result<Self, Error> {
        let number = |name: &str| columns.numbers.iter().position(|other| other == name);
        let category = |name: &str| columns.categories.iter().position(|other| other.name() == name);
        let (mut numbers, mut categories, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        let mut other_kind = None;
        let [plain, text] = ["numbers", "text"];
        for column in &preprocessing.numbers {
            match number(&column.name) {
                Some(col) => numbers.push(col),
                None if category(&column.name).is_some() => other_kind = Some((&column.name[..], text, plain)),
                None => missing.push(column.name.clone()),
            }
        }
        for column in &preprocessing.categories {
            match category(column.name()) {
                Some(col) => categories.push(col),
                None if number(column.name()).is_some() => other_kind = Some((column.name(), plain, text)),
                None => missing.push(column.name().to_owned()),
            }
        }
        if !missing.is_empty() {
            return Err(TabularError::MissingColumns { names: missing, found: columns.names() }.into());
        }
        if let Some((column, found, expected)) = other_kind {
            return Err(TabularError::ColumnKind { column: column.to_owned(), found, expected }.into());
        }
        let codes = preprocessing.categories.iter().zip(&categories).map(|(column, &col)| {
            let values = columns.categories[col].values().iter().map(|value| column.code(value));
            std::iter::once(0).chain(values).collect()
        });
        let codes = codes.collect();
        let n_features = preprocessing.feature_names().len();
        Ok(Self { rows, numbers, categories, codes, target: None, n_features, preprocessing: preprocessing.clone() })
    }

    /// The same rows with labels as the [task](Target::task) of `target` takes them: class numbers, or standardised numbers.
    pub fn with_target(self, target: &Target) -> Self {
        Self { target: Some(target.clone()), ..self }
    }

    /// The rows in memory, for sources that are read more than once.
    ///
    /// # Errors
    /// [`Error::Rows`] if the source fails, with the name of the `set`.
    pub fn to_rows(&self, set: &'static str) -> Result<Rows, Error> {
        let (mut features, mut labels, mut categories, mut weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for_each_chunk(set, self, |read| {
            features.extend_from_slice(read.features);
            labels.extend_from_slice(read.labels);
            categories.extend_from_slice(read.categories);
            weights.extend_from_slice(read.weights);
            Ok(())
        })?;
        let rows = Rows::with_label_columns(features, labels, self.n_cols(), self.n_labels())
            .and_then(|rows| rows.with_categories(categories, self.n_categories()));
        let rows = if self.has_weights() { rows.and_then(|rows| rows.with_weights(weights)) } else { rows };
        rows.map_err(|error| failed(set, &error))
    }

    /// Computes the features of one row of the source.
    fn convert(&self, from: &[S::Feature], to: &mut [f32]) {
        let columns = &self.preprocessing.numbers;
        let (numbers, indicators) = to.split_at_mut(columns.len());
        let mut indicators = indicators.iter_mut();
        for ((column, &col), to) in columns.iter().zip(&self.numbers).zip(numbers) {
            let value: f32 = from[col].into();
            let is_missing = value.is_nan();
            *to = column.scale.apply(if is_missing { column.mean } else { value });
            if column.has_indicator
                && let Some(indicator) = indicators.next()
            {
                *indicator = f32::from(is_missing);
            }
        }
        // Without columns of numbers there is one feature, which is 0.
        indicators.for_each(|zero| *zero = 0.0);
    }
}

impl<S: RowSource<Feature: FeedElement>> RowSource for Preprocessed<S> {
    type Feature = f32;
    type Error = S::Error;

    fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.n_features
    }

    fn n_labels(&self) -> usize {
        self.rows.n_labels()
    }

    fn gather(&self, rows: &[u32], features: &mut [f32], labels: &mut [f32]) -> Result<(), S::Error> {
        let width = self.rows.n_cols();
        let mut raw = vec![S::Feature::default(); rows.len() * width];
        if features.len() != rows.len() * self.n_features {
            // The source reports the error for buffers of a wrong length.
            raw.push(S::Feature::default());
            return self.rows.gather(rows, &mut raw, labels);
        }
        self.rows.gather(rows, &mut raw, labels)?;
        for (row, to) in features.chunks_exact_mut(self.n_features).enumerate() {
            self.convert(&raw[row * width..][..width], to);
        }
        if let Some(target) = &self.target {
            labels.iter_mut().for_each(|label| *label = target.label(*label));
        }
        Ok(())
    }

    fn gather_labels(&self, rows: &[u32], labels: &mut [f32]) -> Result<(), S::Error> {
        self.rows.gather_labels(rows, labels)?;
        if let Some(target) = &self.target {
            labels.iter_mut().for_each(|label| *label = target.label(*label));
        }
        Ok(())
    }

    fn n_categories(&self) -> usize {
        self.categories.len()
    }

    fn gather_categories(&self, rows: &[u32], categories: &mut [u32]) -> Result<(), S::Error> {
        let (width, n) = (self.rows.n_categories(), self.categories.len());
        let mut raw = vec![0; rows.len() * width];
        if categories.len() != rows.len() * n {
            raw.push(0);
            return self.rows.gather_categories(rows, &mut raw);
        }
        self.rows.gather_categories(rows, &mut raw)?;
        for (row, to) in categories.chunks_exact_mut(n.max(1)).enumerate() {
            for ((to, &col), codes) in to.iter_mut().zip(&self.categories).zip(&self.codes) {
                *to = codes.get(raw[row * width + col] as usize).copied().unwrap_or(0);
            }
        }
        Ok(())
    }

    fn has_weights(&self) -> bool {
        self.rows.has_weights()
    }

    fn gather_weights(&self, rows: &[u32], weights: &mut [f32]) -> Result<(), S::Error> {
        self.rows.gather_weights(rows, weights)
    }

    fn check_intact(&self) -> Result<(), S::Error> {
        self.rows.check_intact()
    }

    fn source_row(&self, row: u32) -> u32 {
        self.rows.source_row(row)
    }

    fn column_name(&self, column: usize) -> Option<&str> {
        self.preprocessing.numbers.get(column).map(|column| column.name.as_str())
    }

    fn label_name(&self, label: usize) -> Option<&str> {
        self.rows.label_name(label)
    }

    fn prefetch(&self, rows: &[u32]) {
        self.rows.prefetch(rows);
    }

    fn prefetch_range(&self, rows: std::ops::Range<usize>) {
        self.rows.prefetch_range(rows);
    }

    fn release_range(&self, rows: std::ops::Range<usize>) {
        self.rows.release_range(rows);
    }
}
