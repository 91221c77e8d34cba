mod preprocessed;
mod task_labels;

use std::collections::HashMap;
use std::sync::Arc;

use brisk_loader::{Encoding, RowSource};
use brisk_nn::CategoricalColumn;
use brisk_table::Dictionary;
use brisk_train::{FeedElement, check_encoding};
use serde::{Deserialize, Serialize};

use crate::columns::Columns;
use crate::dictionaries;
use crate::digest::digest;
use crate::error::{Error, failed, no_rows};
use crate::mean::Moments;
use crate::number_source::{NumberSource, for_each_row};
use crate::reading::{Decoding, Reading, nfc};
use crate::scale::{ColumnScale, Scaling};
use crate::target::Target;

pub(super) use preprocessed::{Cells, Matched};
pub use preprocessed::{FarValues, MissingValues, Preprocessed, UnseenValues};
pub use task_labels::PreprocessedError;

/// How the columns of a table become the input of a network, learned from training rows: numbers are scaled, missing ones become
/// the mean of their column, and a column of 0 and 1 marks them; categories get the codes of an embedding, 0 for values that are
/// missing or did not occur in training. Dates and large numbers are [decoded](crate::Decoding). Text is compared after
/// normalization (NFC).
///
/// # Examples
/// ```
/// use brisk_loader::{RowBuffers, RowSelection, RowSource, Rows};
/// use brisk_table::Dictionary;
/// use brisk_tabular::{Columns, Preprocessing, Scaling};
///
/// let rows = Rows::new(vec![1.0, 3.0, f32::NAN, 2.0], vec![0.0; 4], 1)?.with_categories(vec![1, 2, 1, 0], 1)?;
/// let columns = Columns { categories: vec![Dictionary::new("sex", ["f", "m"])?], ..Columns::numbers(["age"]) };
/// let preprocessing = Preprocessing::fit(&columns, &rows, Scaling::Standard)?;
/// assert_eq!(preprocessing.feature_names(), ["age", "age_missing"]);
///
/// // The same columns in another table, whose codes stand for other values.
/// let others = Rows::new(vec![2.0, f32::NAN], vec![0.0; 2], 1)?.with_categories(vec![1, 2], 1)?;
/// let columns = Columns { categories: vec![Dictionary::new("sex", ["m", "other"])?], ..Columns::numbers(["age"]) };
/// let features = preprocessing.over(&columns, &others)?;
/// let (mut x, mut y, mut codes) = ([0.0; 4], [0.0; 2], [9; 2]);
/// let into = RowBuffers { categories: Some(&mut codes), ..RowBuffers::new(&mut x, &mut y) };
/// features.gather(RowSelection::Range(0..2), into)?;
/// assert_eq!((x, codes), ([0.0, 0.0, 0.0, 1.0], [2, 0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preprocessing {
    pub(super) scaling: Scaling,
    pub(super) numbers: Vec<NumberColumn>,
    #[serde(with = "dictionaries")]
    pub(super) categories: Vec<Dictionary>,
    /// Values in fewer rows are not among those of the categories.
    pub(super) min_category_rows: usize,
    /// How many these are, for each categorical column.
    pub(super) n_rare: Vec<usize>,
}

/// How a [`Preprocessing`] is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreprocessingOptions {
    /// How numbers are scaled.
    pub scaling: Scaling,
    /// The fewest training rows of a value of a category. Values in fewer rows become one with those that are missing or unknown,
    /// whose embedding is then trained. 1, the default, for none.
    pub min_category_rows: usize,
    /// Whether columns are [left out](Preprocessing::left_out) in which all training rows have the same value, or none, so that
    /// nothing is learned of them; likewise parts of dates. If that would leave no column, those with a value are kept. By
    /// default, a column without values is an error, and one with a single value is a feature, whose weights are not trained.
    pub leaves_out_same: bool,
}

impl Default for PreprocessingOptions {
    fn default() -> Self {
        Self { scaling: Scaling::default(), min_category_rows: 1, leaves_out_same: false }
    }
}

/// A column of numbers, read from a column of the training rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberColumn {
    /// Its name: that of the column, or `COLUMN_year` and so on for the parts of a date.
    pub name: String,
    /// The column of the rows.
    pub column: String,
    /// How it is read from that column.
    pub reading: Reading,
    /// The replacement for a missing value before it is scaled: the mean.
    pub mean: f64,
    /// The smallest and the largest value of the training rows.
    pub range: [f32; 2],
    /// Whether values were missing in training. Then a column of 0 and 1 follows all columns of numbers.
    pub has_indicator: bool,
    /// How it is scaled.
    pub scale: ColumnScale,
}

impl NumberColumn {
    /// Whether a value is far from all those of training.
    pub(super) fn is_far(&self, value: f32) -> bool {
        const WIDTHS: f64 = 3.0;
        const DEVIATIONS: f64 = 20.0;
        let ([min, max], value) = (self.range.map(f64::from), f64::from(value));
        let beyond = (min - value).max(value - max);
        let deviations = match self.scale {
            ColumnScale::Standard { std, .. } if max > min => DEVIATIONS * std,
            _ => f64::INFINITY,
        };
        beyond > 0.0 && (beyond > WIDTHS * (max - min) || beyond > deviations)
    }
}

/// What a column of the table became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColumnUse {
    /// The column.
    pub(super) name: String,
    /// Its features, with those that mark missing values.
    pub(super) features: Vec<usize>,
    /// Its category.
    pub(super) category: Option<usize>,
}

/// The maximum number of values of a categorical column.
const MAX_VALUES: usize = 10_000;

/// The maximum number of rows whose values are sorted for quantiles.
const MAX_SORTED_ROWS: usize = 200_000;

impl Preprocessing {
    /// Fits the preprocessing to training rows, whose columns are `columns`.
    ///
    /// Of more than 200,000 rows, evenly spaced ones are used for quantiles.
    ///
    /// # Errors
    /// [`Error::RowSet`](brisk_train::Error::RowSet); [`Error::ColumnNames`] if the rows do not have these columns;
    /// [`Error::AllMissing`], [`Error::Infinite`], [`Error::TooManyValues`], [`Error::Value`] for columns that cannot be used;
    /// [`Error::Rows`](brisk_train::Error::Rows) if the source fails.
    pub fn fit<S: RowSource<Feature: FeedElement>>(columns: &Columns, rows: &S, scaling: Scaling) -> Result<Self, Error> {
        Self::fit_with(columns, rows, &PreprocessingOptions { scaling, ..PreprocessingOptions::default() })
    }

    /// The same with more options.
    ///
    /// # Errors
    /// As [`fit`](Self::fit), but for columns that are [left out](PreprocessingOptions::leaves_out_same); [`Error::RareValues`]
    /// for a column without a value in as many rows as asked for.
    pub fn fit_with<S: RowSource<Feature: FeedElement>>(
        columns: &Columns,
        rows: &S,
        options: &PreprocessingOptions,
    ) -> Result<Self, Error> {
        let &PreprocessingOptions { scaling, min_category_rows, leaves_out_same } = options;
        check_columns(columns, rows)?;
        let n_rows = rows.n_rows();
        if n_rows == 0 || n_rows >= u32::MAX as usize {
            return Err(no_rows("train", n_rows, rows.n_cols()));
        }
        let plain = columns.numbers.iter().map(|column| (column.as_str(), Reading::Number));
        let decoded = columns.categories.iter().filter_map(|column| {
            let readings = columns.decoding(column.name())?.readings(column.values());
            Some(readings.into_iter().map(|reading| (column.name(), reading)))
        });
        let readings: Vec<(&str, Reading)> = plain.chain(decoded.flatten()).collect();
        let sources = NumberSource::find_all(columns, rows, readings.iter().copied())?;
        let mut moments = vec![Moments::default(); readings.len()];
        let mut sorted = vec![Vec::new(); if scaling == Scaling::Quantile { readings.len() } else { 0 }];
        let stride = n_rows.div_ceil(MAX_SORTED_ROWS);
        let mut counts: Vec<Vec<usize>> = columns.categories.iter().map(|column| vec![0; column.n_codes()]).collect();
        let mut infinite = None;
        for_each_row(rows, "train", |row, features, codes| {
            for (col, source) in sources.iter().enumerate() {
                let value = source.value(features, codes);
                if value.is_infinite() {
                    infinite = infinite.or(Some((row, col)));
                }
                moments[col].add(value);
                if let Some(sorted) = sorted.get_mut(col).filter(|_| row % stride == 0 && !value.is_nan()) {
                    sorted.push(value);
                }
            }
            for (counts, &code) in counts.iter_mut().zip(codes) {
                counts.get_mut(code as usize).into_iter().for_each(|count| *count += 1);
            }
        })?;
        if let Some((row, col)) = infinite {
            return Err(Error::Infinite { row: rows.source_row(row as u32) as usize, column: readings[col].0.to_owned() });
        }
        let all_missing = |column: &str| Error::AllMissing { column: column.to_owned(), n_rows };
        let numbers_differ = |moments: &Moments| moments.n > 0.0 && (moments.min < moments.max || (moments.n as usize) < n_rows);
        // The first of them is missing values.
        let values_differ = |counts: &[usize]| counts[1..].iter().any(|&count| count > 0 && count < n_rows);
        let is_category = |column: &Dictionary| columns.decoding(column.name()).is_none();
        let leaves_out = leaves_out_same
            && (moments.iter().any(numbers_differ)
                || columns.categories.iter().zip(&counts).any(|(column, counts)| is_category(column) && values_differ(counts)));
        let sorted = sorted.into_iter().map(Some).chain(std::iter::repeat(None));
        let number = |&(column, reading): &(&str, Reading), moments: Moments, values: Option<Vec<f32>>| {
            if moments.n == 0.0 || values.as_ref().is_some_and(Vec::is_empty) {
                return Err(all_missing(column));
            }
            let scale = values.map_or_else(|| ColumnScale::standard(moments.mean, moments.std()), ColumnScale::quantile);
            let (name, column) = (reading.feature_name(column), column.to_owned());
            let has_indicator = (moments.n as usize) < n_rows;
            let (mean, range) = (moments.mean, [moments.min, moments.max]);
            Ok(NumberColumn { name, column, reading, mean, range, has_indicator, scale })
        };
        let numbers = readings.iter().zip(moments).zip(sorted).filter(|((_, moments), values)| {
            // Those that quantiles are of may be none.
            !leaves_out || (numbers_differ(moments) && values.as_ref().is_none_or(|values| !values.is_empty()))
        });
        let numbers = numbers.map(|((reading, moments), values)| number(reading, moments, values)).collect::<Result<_, _>>()?;
        let category = |(column, counts): (&Dictionary, Vec<usize>)| {
            let found = column.values().iter().zip(&counts[1..]).filter(|(_, count)| **count > 0);
            // Different spellings of a value are one after normalization.
            let (mut known, mut values) = (HashMap::new(), Vec::<(String, usize)>::new());
            for (value, count) in found.map(|(value, count)| (nfc(value), count)) {
                let at = *known.entry(value.to_string()).or_insert(values.len());
                match values.get_mut(at) {
                    Some((_, sum)) => *sum += count,
                    None => values.push((value.into_owned(), *count)),
                }
            }
            let n_found = values.len();
            let largest = values.iter().map(|(_, count)| *count).max().unwrap_or(0);
            values.retain(|(_, count)| *count >= min_category_rows);
            let name = || column.name().to_owned();
            match values.len() {
                _ if n_found == 0 => Err(all_missing(column.name())),
                0 => Err(Error::RareValues { column: name(), n_values: n_found, largest, min_rows: min_category_rows }),
                n_values if n_values > MAX_VALUES => {
                    Err(Error::TooManyValues { column: name(), n_values, n_rows, limit: MAX_VALUES })
                }
                n_values => {
                    let values = values.into_iter().map(|(value, _)| value).collect();
                    Ok((dictionary(column.name(), values)?, n_found - n_values))
                }
            }
        };
        let categories = columns.categories.iter().zip(counts).filter(|(column, _)| is_category(column));
        let categories = categories.filter(|(_, counts)| !leaves_out || values_differ(counts));
        let categories = categories.map(category).collect::<Result<Vec<_>, Error>>()?;
        let (categories, n_rare) = categories.into_iter().unzip();
        Ok(Self { scaling, numbers, categories, min_category_rows, n_rare })
    }

    /// The features and categories of `rows`, whose columns are `columns`. Columns are found by name: their order may differ, and
    /// those that did not exist in training are left out.
    ///
    /// Infinite numbers remain infinite where columns are standardised.
    ///
    /// # Errors
    /// [`Error::MissingColumns`], [`Error::ColumnKind`], [`Error::ColumnNames`]; [`Error::Value`] for text that is no
    /// number or date where the model needs one.
    pub fn over<S: RowSource<Feature: FeedElement>>(&self, columns: &Columns, rows: S) -> Result<Preprocessed<S>, Error> {
        Ok(Preprocessed::new(self.matched(columns, &rows, None)?, rows))
    }

    /// The columns of `rows`, as they are read: those that were `last` matched, if they are the same.
    pub(super) fn matched<S: RowSource<Feature: FeedElement>>(
        &self,
        columns: &Columns,
        rows: &S,
        last: Option<&Arc<Matched>>,
    ) -> Result<Arc<Matched>, Error> {
        check_columns(columns, rows)?;
        match last.filter(|last| last.columns == *columns) {
            Some(last) => Ok(last.clone()),
            None => Ok(Arc::new(Matched::new(self, columns, rows)?)),
        }
    }

    /// How numbers are scaled.
    pub fn scaling(&self) -> Scaling {
        self.scaling
    }

    /// The columns of numbers.
    pub fn numbers(&self) -> &[NumberColumn] {
        &self.numbers
    }

    /// The fewest training rows of a value of a category: [`PreprocessingOptions::min_category_rows`].
    pub fn min_category_rows(&self) -> usize {
        self.min_category_rows
    }

    /// The categorical columns with values in [fewer rows](Self::min_category_rows), and how many these are.
    pub fn rare_values(&self) -> impl Iterator<Item = (&str, usize)> {
        let columns = self.categories.iter().zip(&self.n_rare).filter(|(_, n_rare)| **n_rare > 0);
        columns.map(|(column, n_rare)| (column.name(), *n_rare))
    }

    /// Those of `columns`, which it was [fitted](PreprocessingOptions::leaves_out_same) to, that it leaves out.
    pub fn left_out<'a>(&self, columns: &'a Columns) -> impl Iterator<Item = &'a str> {
        let uses = self.uses();
        let all = columns.numbers.iter().map(String::as_str).chain(columns.categories.iter().map(Dictionary::name));
        all.filter(move |name| !uses.iter().any(|used| used.name == *name))
    }

    /// The categorical columns, with the values that occurred in training, except for rare ones.
    pub fn categories(&self) -> &[Dictionary] {
        &self.categories
    }

    /// The columns that rows must have; those that are decoded have no dictionary.
    pub fn columns(&self) -> Columns {
        let mut columns = Columns { categories: self.categories.clone(), ..Columns::default() };
        for NumberColumn { column, reading, .. } in &self.numbers {
            let decoding = match reading {
                Reading::Number => {
                    columns.numbers.push(column.clone());
                    continue;
                }
                Reading::Offset { .. } => Decoding::Number,
                Reading::Date { format, .. } => Decoding::Date(*format),
            };
            if columns.decoding(column).is_none() {
                columns.decoded.push((column.clone(), decoding));
            }
        }
        columns
    }

    /// The names of the features, in order: those of the numbers, then `NAME_missing` for each that was missing in training. A
    /// table of categories only has one feature, `zero`, which is always 0.
    pub fn feature_names(&self) -> Vec<String> {
        let numbers = self.numbers.iter().map(|column| column.name.clone());
        let indicators = self.numbers.iter().filter(|column| column.has_indicator);
        let mut names: Vec<String> = numbers.chain(indicators.map(|column| format!("{}_missing", column.name))).collect();
        if names.is_empty() {
            names.push("zero".to_owned());
        }
        names
    }

    /// What each column of the table became, in the order of the features and then of the categories.
    pub(super) fn uses(&self) -> Vec<ColumnUse> {
        let mut uses: Vec<ColumnUse> = Vec::new();
        let mut next_indicator = self.numbers.len();
        for (col, number) in self.numbers.iter().enumerate() {
            let at = uses.iter().position(|column| column.name == number.column).unwrap_or_else(|| {
                uses.push(ColumnUse { name: number.column.clone(), features: Vec::new(), category: None });
                uses.len() - 1
            });
            uses[at].features.push(col);
            if number.has_indicator {
                uses[at].features.push(next_indicator);
                next_indicator += 1;
            }
        }
        let of_category = |(col, column): (usize, &Dictionary)| ColumnUse {
            name: column.name().to_owned(),
            features: Vec::new(),
            category: Some(col),
        };
        uses.extend(self.categories.iter().enumerate().map(of_category));
        uses
    }

    /// How rows are encoded that it has converted, with labels of this target.
    pub(super) fn encoding(&self, target: &Target) -> Encoding {
        Encoding { inputs: Some(digest(self)), labels: Some(digest(target)) }
    }

    /// Checks that it has converted rows, and their labels for this target: others give scores, too.
    ///
    /// # Errors
    /// [`Error::RowSet`](brisk_train::Error::RowSet) with the name of the `set`.
    pub(super) fn check_rows<S: RowSource>(&self, target: &Target, set: &'static str, rows: &S) -> Result<(), Error> {
        Ok(check_encoding(set, rows.names().encoding, self.encoding(target))?)
    }

    /// The sizes of embeddings for the categorical columns.
    pub fn embeddings(&self) -> Vec<CategoricalColumn> {
        self.categories.iter().map(|column| CategoricalColumn::of(column.n_codes())).collect()
    }
}

pub(super) fn dictionary(name: &str, values: Vec<String>) -> Result<Dictionary, Error> {
    Dictionary::new(name, values).map_err(failed("train"))
}

fn check_columns<S: RowSource>(columns: &Columns, rows: &S) -> Result<(), Error> {
    let counts = [
        ("columns of numbers", columns.numbers.len(), rows.n_cols()),
        ("categorical columns", columns.categories.len(), rows.n_categories()),
    ];
    if let Some((what, n_names, found)) = counts.into_iter().find(|(_, n_names, found)| n_names != found) {
        return Err(Error::ColumnNames { what, n_names, found });
    }
    let mut names = columns.names();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(Error::SameName { column: twice[0].clone() }),
        None => Ok(()),
    }
}
