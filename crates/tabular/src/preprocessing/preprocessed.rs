use std::fmt;
use std::sync::{Arc, OnceLock};

use brisk_loader::{Encoding, Hint, Layout, Names, RowBuffers, RowSelection, RowSource, Rows, for_each_chunk};
use brisk_table::{Dictionary, printable};
use brisk_train::FeedElement;

use super::task_labels::{PreprocessedError, TaskLabels};
use super::{NumberColumn, Preprocessing};
use crate::columns::Columns;
use crate::digest::digest;
use crate::error::{Error, failed};
use crate::number_source::{NumberSource, for_each_row};
use crate::reading::{nfc, shortest};
use crate::target::Target;

/// Values of a categorical column that did not occur in training, or were too [rare](Preprocessing::rare_values):
/// [`Preprocessed::unseen_values`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnseenValues {
    /// The column.
    pub column: String,
    /// Rows with such a value.
    pub n_rows: usize,
    /// How many different values there are.
    pub n_values: usize,
    /// Rows with any value.
    pub n_present: usize,
    /// The first few of the values.
    pub examples: Vec<String>,
    /// The fewest rows of training that a known value of the column has; 1 if all that occurred are known.
    pub min_rows: usize,
}

impl UnseenValues {
    /// Whether no row has a value that occurred in training: the column then says nothing, and is probably a different one.
    pub fn are_all(&self) -> bool {
        self.n_rows == self.n_present
    }
}

impl fmt::Display for UnseenValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, n_rows, n_values, n_present, examples, min_rows } = self;
        let examples: Vec<_> = examples.iter().map(|value| format!("{:?}", printable(value))).collect();
        let more = if examples.len() < *n_values { ", …" } else { "" };
        let column = printable(column);
        let rare = if *min_rows > 1 { format!(", or in fewer than {min_rows} rows") } else { String::new() };
        write!(
            f,
            "column `{column}`: {n_rows} of {n_present} values did not occur in training{rare}: {}{more}",
            examples.join(", ")
        )
    }
}

/// Values of a column of numbers that are far from all those of training: [`Preprocessed::far_values`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FarValues {
    /// The column.
    pub column: String,
    /// Rows with such a value.
    pub n_rows: usize,
    /// Rows with any value.
    pub n_present: usize,
    /// The smallest and the largest value of training.
    pub trained: [f64; 2],
    /// The first of the values.
    pub example: f64,
    /// The row that has it, from 0.
    pub row: usize,
}

impl fmt::Display for FarValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, n_rows, n_present, trained: [min, max], example, row } = self;
        let [min, max, example] = [min, max, example].map(|number| shortest(*number));
        write!(f, "column `{}`: {n_rows} of {n_present} values are far from those of training, ", printable(column))?;
        write!(f, "which are from {min} to {max}: row {row} has {example}")
    }
}

/// Values that are missing although none was missing in training, or all of a column: [`Preprocessed::missing_values`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingValues {
    /// The column.
    pub column: String,
    /// Rows without a value.
    pub n_missing: usize,
    /// All rows.
    pub n_rows: usize,
    /// Whether missing values are replaced by the mean of the training rows, which is so for numbers if none of these was
    /// missing; others are a value of their own.
    pub is_replaced: bool,
}

impl fmt::Display for MissingValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, n_missing, n_rows, is_replaced } = self;
        write!(f, "column `{}`: {n_missing} of {n_rows} values are missing", printable(column))?;
        let replaced = if *is_replaced { ", although none was in training: the mean of training replaces them" } else { "" };
        f.write_str(replaced)
    }
}

/// What rows have in a column.
#[derive(Debug)]
pub(crate) enum Cells<'a> {
    /// The numbers as they are read from the column; NaN where they are missing.
    Numbers { column: &'a NumberColumn, cells: Vec<f32> },
    /// The model's codes, 0 for unseen values; `None` where values are missing.
    Category { column: &'a Dictionary, codes: Vec<Option<u32>> },
}

/// The columns of a source of rows, as a [`Preprocessing`] reads them. It depends on the values of the source's categories, but
/// not on its rows.
#[derive(Debug)]
pub(crate) struct Matched {
    preprocessing: Preprocessing,
    /// Where each column of numbers comes from.
    numbers: Vec<NumberSource>,
    /// The source's category for each categorical column.
    categories: Vec<usize>,
    /// For each categorical column, the model's code for each code of the source.
    codes: Vec<Vec<u32>>,
    pub(super) columns: Columns,
    feature_names: Vec<String>,
    /// Of the preprocessing, once it is asked for: it takes longer than to predict a row.
    digest: OnceLock<u64>,
}

impl Matched {
    pub(crate) fn new<S>(preprocessing: &Preprocessing, columns: &Columns, rows: &S) -> Result<Self, Error>
    where
        S: RowSource<Feature: FeedElement>,
    {
        let found = columns.names();
        let is_missing = |name: &&str| !found.iter().any(|other| other == name);
        let names = preprocessing.numbers.iter().map(|column| column.column.as_str());
        let names = names.chain(preprocessing.categories.iter().map(Dictionary::name));
        let mut missing: Vec<String> = names.filter(is_missing).map(str::to_owned).collect();
        missing.dedup();
        if !missing.is_empty() {
            return Err(Error::MissingColumns { path: None, names: missing, found });
        }
        let readings = preprocessing.numbers.iter().map(|column| (column.column.as_str(), column.reading));
        let numbers = NumberSource::find_all(columns, rows, readings)?;
        let (mut categories, mut codes) = (Vec::new(), Vec::new());
        for column in &preprocessing.categories {
            let Some(col) = columns.categories.iter().position(|other| other.name() == column.name()) else {
                let (column, found, expected) = (column.name().to_owned(), "numbers", "text");
                return Err(Error::ColumnKind { column, found, expected });
            };
            categories.push(col);
            let values = columns.categories[col].values().iter().map(|value| column.code(&nfc(value)));
            codes.push(std::iter::once(0).chain(values).collect());
        }
        let feature_names = preprocessing.feature_names();
        let (preprocessing, columns) = (preprocessing.clone(), columns.clone());
        Ok(Self { preprocessing, numbers, categories, codes, columns, feature_names, digest: OnceLock::new() })
    }
}

/// Rows of another source whose columns a [`Preprocessing`] converts to features: [`Preprocessing::over`].
#[derive(Debug, Clone)]
pub struct Preprocessed<S> {
    rows: S,
    matched: Arc<Matched>,
    labels: Option<TaskLabels>,
}

impl<S: RowSource<Feature: FeedElement>> Preprocessed<S> {
    /// Rows whose columns are those of `matched`.
    pub(crate) fn new(matched: Arc<Matched>, rows: S) -> Self {
        Self { rows, matched, labels: None }
    }

    /// The categorical columns with values that did not occur in training, or were too [rare](Preprocessing::rare_values), in
    /// which case they count as missing.
    ///
    /// # Errors
    /// [`Error::Rows`](brisk_train::Error::Rows) if the source fails.
    pub fn unseen_values(&self) -> Result<Vec<UnseenValues>, Error> {
        let mut counts: Vec<Vec<usize>> = self.matched.codes.iter().map(|codes| vec![0; codes.len()]).collect();
        if self.matched.codes.iter().any(|codes| codes.iter().skip(1).any(|&code| code == 0)) {
            for_each_row(&self.rows, "preprocessed", |_, _, codes| {
                for (counts, &col) in counts.iter_mut().zip(&self.matched.categories) {
                    counts.get_mut(codes[col] as usize).into_iter().for_each(|count| *count += 1);
                }
            })?;
        }
        let of_column = |i: usize| {
            let (counts, codes, column) =
                (&counts[i], &self.matched.codes[i], &self.matched.columns.categories[self.matched.categories[i]]);
            let is_unseen = |code: &usize| codes[*code] == 0 && counts[*code] > 0;
            let unseen: Vec<usize> = (1..codes.len()).filter(is_unseen).collect();
            (!unseen.is_empty()).then(|| UnseenValues {
                column: column.name().to_owned(),
                n_rows: unseen.iter().map(|&code| counts[code]).sum(),
                n_values: unseen.len(),
                n_present: counts.iter().skip(1).sum(),
                examples: unseen.iter().take(3).filter_map(|&code| column.value(code as u32)).map(str::to_owned).collect(),
                min_rows: if self.matched.preprocessing.n_rare[i] > 0 { self.matched.preprocessing.min_category_rows } else { 1 },
            })
        };
        Ok((0..self.matched.codes.len()).filter_map(of_column).collect())
    }

    /// The columns of numbers with values far from all those of training: outside of their range by more than three times its
    /// width, or by more than 20 standard deviations. What a model predicts from them is arbitrary.
    ///
    /// # Errors
    /// [`Error::Rows`](brisk_train::Error::Rows) if the source fails.
    pub fn far_values(&self) -> Result<Vec<FarValues>, Error> {
        let columns = &self.matched.preprocessing.numbers;
        let none = |column: &NumberColumn| {
            let trained = column.range.map(|value| column.reading.in_units(value));
            FarValues { column: column.name.clone(), n_rows: 0, n_present: 0, trained, example: f64::NAN, row: 0 }
        };
        let mut found: Vec<FarValues> = columns.iter().map(none).collect();
        for_each_row(&self.rows, "preprocessed", |row, features, codes| {
            for ((column, source), far) in columns.iter().zip(&self.matched.numbers).zip(&mut found) {
                let value = source.value(features, codes);
                far.n_present += usize::from(!value.is_nan());
                if column.is_far(value) {
                    if far.n_rows == 0 {
                        (far.row, far.example) = (row, column.reading.in_units(value));
                    }
                    far.n_rows += 1;
                }
            }
        })?;
        found.retain(|far| far.n_rows > 0);
        Ok(found)
    }

    /// The columns of numbers with missing values of which training had none, and all columns without any value.
    ///
    /// # Errors
    /// [`Error::Rows`](brisk_train::Error::Rows) if the source fails.
    pub fn missing_values(&self) -> Result<Vec<MissingValues>, Error> {
        let Preprocessing { numbers, categories, .. } = &self.matched.preprocessing;
        let numbers = numbers.iter().map(|column| (column.column.as_str(), !column.has_indicator));
        let columns: Vec<(&str, bool)> = numbers.chain(categories.iter().map(|column| (column.name(), false))).collect();
        let (mut n_rows, mut n_missing) = (0, vec![0; columns.len()]);
        for_each_row(&self.rows, "preprocessed", |_, features, codes| {
            n_rows += 1;
            let of_numbers = self.matched.numbers.iter().map(|source| source.value(features, codes).is_nan());
            let of_categories = self.matched.categories.iter().map(|&col| codes[col] == 0);
            let are_missing = of_numbers.chain(of_categories);
            n_missing.iter_mut().zip(are_missing).for_each(|(n, is_missing)| *n += usize::from(is_missing));
        })?;
        let all = columns.into_iter().zip(n_missing).map(|((column, is_replaced), n_missing)| MissingValues {
            column: column.to_owned(),
            n_missing,
            n_rows,
            is_replaced,
        });
        let is_odd = |of: &MissingValues| of.n_missing > 0 && (of.is_replaced || of.n_missing == n_rows);
        let mut found: Vec<MissingValues> = all.filter(is_odd).collect();
        // The parts of a date.
        found.dedup();
        Ok(found)
    }

    /// The same rows with labels as the [task](Target::task) of `target` takes them: class numbers, or standardised numbers.
    /// Classes are found by the names that the [columns](Columns::label_classes) of the rows have for them. Gathering the label
    /// of a row of another class is an error, [`PreprocessedError::UnknownClass`]; a label that is missing is NaN, which no task
    /// takes.
    pub fn with_target(self, target: &Target) -> Self {
        Self { labels: Some(TaskLabels::new(target, &self.matched.columns)), ..self }
    }

    /// What all rows have in each column of numbers and in each categorical column that the model uses.
    ///
    /// # Errors
    /// [`Error::Rows`](brisk_train::Error::Rows) if the source fails.
    pub(crate) fn cells(&self) -> Result<Vec<Cells<'_>>, Error> {
        let mut numbers = vec![Vec::new(); self.matched.numbers.len()];
        let mut categories = vec![Vec::new(); self.matched.categories.len()];
        for_each_row(&self.rows, "preprocessed", |_, features, codes| {
            for (source, cells) in self.matched.numbers.iter().zip(&mut numbers) {
                cells.push(source.value(features, codes));
            }
            for ((&col, known), cells) in self.matched.categories.iter().zip(&self.matched.codes).zip(&mut categories) {
                let code = codes[col] as usize;
                cells.push((code > 0).then(|| known.get(code).copied().unwrap_or(0)));
            }
        })?;
        let numbers = self.matched.preprocessing.numbers.iter().zip(numbers);
        let categories = self.matched.preprocessing.categories.iter().zip(categories);
        let numbers = numbers.map(|(column, cells)| Cells::Numbers { column, cells });
        Ok(numbers.chain(categories.map(|(column, codes)| Cells::Category { column, codes })).collect())
    }

    /// The rows in memory, for sources that are read more than once.
    ///
    /// # Errors
    /// [`Error::Rows`](brisk_train::Error::Rows) if the source fails, with the name of the `set`.
    pub fn to_rows(&self, set: &'static str) -> Result<Rows, Error> {
        let (mut features, mut labels, mut categories, mut weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for_each_chunk(self, failed(set), |read| {
            features.extend_from_slice(read.features);
            labels.extend_from_slice(read.labels);
            categories.extend_from_slice(read.categories);
            weights.extend_from_slice(read.weights);
            Ok(())
        })?;
        let rows = Rows::with_label_columns(features, labels, self.n_cols(), self.n_labels())
            .and_then(|rows| rows.with_categories(categories, self.n_categories()));
        let rows = if self.has_weights() { rows.and_then(|rows| rows.with_weights(weights)) } else { rows };
        Ok(rows.map_err(failed(set))?.with_encoding(self.names().encoding))
    }

    /// Computes the features of one row of the source.
    fn convert(&self, from: &[S::Feature], codes: &[u32], to: &mut [f32]) {
        let columns = &self.matched.preprocessing.numbers;
        let (numbers, indicators) = to.split_at_mut(columns.len());
        let mut indicators = indicators.iter_mut();
        for ((column, source), to) in columns.iter().zip(&self.matched.numbers).zip(numbers) {
            let value = source.value(from, codes);
            let is_missing = value.is_nan();
            *to = column.scale.apply(if is_missing { column.mean } else { value.into() });
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
    type Error = PreprocessedError<S::Error>;

    fn layout(&self) -> Layout {
        Layout { n_cols: self.matched.feature_names.len(), n_categories: self.matched.categories.len(), ..self.rows.layout() }
    }

    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Self::Error> {
        let (from, to, n) = (self.rows.layout(), self.layout(), rows.len());
        let RowBuffers { features, mut labels, categories, weights } = into;
        let takes_codes = |source: &NumberSource| matches!(source, NumberSource::Codes { .. });
        let needs_codes = categories.is_some() || (features.is_some() && self.matched.numbers.iter().any(takes_codes));
        // The source reports the error for buffers of a wrong length.
        let n_raw = |found: Option<usize>, width: usize, needed: usize| match found {
            Some(found) if found != n * width => needed + 1,
            _ => needed,
        };
        let n_features = features.as_ref().map(|features| features.len());
        let n_codes = categories.as_ref().map(|categories| categories.len());
        let mut raw = vec![S::Feature::default(); n_raw(n_features, to.n_cols, n * from.n_cols)];
        let codes_width = if needs_codes { from.n_categories } else { 0 };
        let mut codes = vec![0; n_raw(n_codes, to.n_categories, n * codes_width)];
        let raw_rows = RowBuffers {
            features: features.is_some().then_some(&mut raw[..]),
            labels: labels.as_deref_mut(),
            categories: needs_codes.then_some(&mut codes[..]),
            weights,
        };
        self.rows.gather(rows.clone(), raw_rows).map_err(PreprocessedError::Source)?;
        let codes_of = |row: usize| &codes[row * codes_width..][..codes_width];
        for (row, features) in features.into_iter().flat_map(|all| all.chunks_exact_mut(to.n_cols)).enumerate() {
            self.convert(&raw[row * from.n_cols..][..from.n_cols], codes_of(row), features);
        }
        for (row, own) in categories.into_iter().flat_map(|all| all.chunks_exact_mut(to.n_categories.max(1))).enumerate() {
            for ((to, &col), known) in own.iter_mut().zip(&self.matched.categories).zip(&self.matched.codes) {
                *to = known.get(codes_of(row)[col] as usize).copied().unwrap_or(0);
            }
        }
        if let (Some(to_task), Some(labels)) = (&self.labels, labels) {
            for (i, label) in labels.iter_mut().enumerate() {
                let row = match &rows {
                    RowSelection::Range(range) => (range.start + i / from.n_labels) as u32,
                    RowSelection::Numbers(numbers) => numbers[i / from.n_labels],
                };
                *label = to_task
                    .label(*label)
                    .ok_or_else(|| to_task.unknown_class(self.rows.source_row(row), *label, &self.matched.columns))?;
            }
        }
        Ok(())
    }

    fn names(&self) -> Names<'_> {
        // Classes and codes are those of the training rows, whatever names they have in these.
        let inputs = *self.matched.digest.get_or_init(|| digest(&self.matched.preprocessing));
        let labels = self.labels.as_ref().map(|labels| labels.digest);
        let (columns, encoding) = (&self.matched.feature_names[..], Encoding { inputs: Some(inputs), labels });
        Names { columns, labels: self.rows.names().labels, encoding, ..Names::default() }
    }

    fn check_intact(&self) -> Result<(), Self::Error> {
        self.rows.check_intact().map_err(PreprocessedError::Source)
    }

    fn source_row(&self, row: u32) -> u32 {
        self.rows.source_row(row)
    }

    fn hint(&self, rows: RowSelection<'_>, hint: Hint) {
        self.rows.hint(rows, hint);
    }
}
