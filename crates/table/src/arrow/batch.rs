//! Conversion of batches of columns to rows.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, FixedSizeListArray, RecordBatch};

use super::columns::{Columns, Place};
use super::values::{Numbers, Texts, numbers, texts};
use crate::import::{BadRows, ChunkLabels, Digits, FeatureRules, Labels, OnMissing, Rejected, RowChunk, expected, minus_offset};
use crate::remedy::Expected;

#[derive(Debug)]
pub(super) struct Converted {
    pub(super) rows: RowChunk,
    /// The number of rows in the batch, good or bad.
    pub(super) n_rows: usize,
    pub(super) rejected: Rejected<Problem>,
}

/// Why a row was rejected.
#[derive(Debug)]
pub(super) struct Problem {
    /// The row's index in the batch.
    pub(super) row: usize,
    pub(super) col: usize,
    pub(super) found: String,
    pub(super) expected: &'static Expected,
}

/// Converts batches of the fields that [`Columns::fields`] lists.
pub(super) struct Converter<'a> {
    columns: &'a Columns,
    fields: Vec<usize>,
    bad_rows: BadRows,
    has_offsets: bool,
}

/// The columns of a batch that are read as text.
struct TextColumns {
    categories: Vec<Texts>,
    classes: Option<Texts>,
}

type Cell = Result<f32, (String, &'static Expected)>;

impl Numbers {
    /// The number in a row without an offset.
    fn minus(&self, row: usize, offset: f64) -> Option<f64> {
        let exact = self.values[row]?;
        let whole = self.wholes.get(&row).filter(|_| offset != 0.0).and_then(|&whole| minus_offset(whole, offset));
        Some(whole.unwrap_or(exact - offset))
    }

    /// Notes what is lost of the number in a row.
    fn note(&self, row: usize, digits: &mut Digits) {
        let Some(value) = self.values[row] else { return };
        match self.wholes.get(&row) {
            Some(&whole) => digits.note_whole(whole),
            None => digits.note(value),
        }
    }
}

impl<'a> Converter<'a> {
    pub(super) fn new(columns: &'a Columns, bad_rows: BadRows) -> Self {
        let rules = &columns.roles.rules;
        let has_offsets = (0..rules.n_features()).any(|feature| rules.offset(feature) != 0.0);
        Self { columns, fields: columns.fields(), bad_rows, has_offsets }
    }

    /// Converts the rows of a batch. Unless bad rows are skipped, the result ends before the first of them.
    pub(super) fn convert(&self, batch: &RecordBatch) -> Converted {
        let roles = &self.columns.roles;
        let n_rows = batch.num_rows();
        let mut out = Converted { rows: RowChunk::new(roles), n_rows, rejected: Rejected::default() };
        // A list is shared by all of its columns and is converted once.
        let mut lists = BTreeMap::new();
        let mut as_numbers = |col: usize| self.numbers(batch, col, &mut lists);
        let features: Vec<_> = roles.features.iter().map(|&col| as_numbers(col)).collect();
        let weights = roles.weight.map(&mut as_numbers);
        let are_classes = roles.labels.are_classes();
        let labels: Vec<_> = roles.label_columns.iter().filter(|_| !are_classes).map(|&col| as_numbers(col)).collect();
        let text = TextColumns {
            categories: roles.categories.iter().map(|&col| self.texts(batch, col)).collect(),
            classes: roles.label_columns.first().filter(|_| are_classes).map(|&col| self.texts(batch, col)),
        };
        let mut values = vec![0.0; roles.rules.n_features() + labels.len()];
        for row in 0..n_rows {
            let taken = self.row(row, &features, &labels, weights.as_ref(), &text, &mut values, &mut out.rows);
            if let Err((col, found, expected)) = taken {
                let is_skipped = self.bad_rows.skips(self.is_unlabelled(col, &found, expected));
                if out.rejected.add(is_skipped, || Problem { row, col, found, expected }) {
                    break;
                }
            }
        }
        out.rows.seal();
        out
    }

    /// Whether a row was rejected because its label is missing: a null, NaN, or a value that stands for one.
    fn is_unlabelled(&self, col: usize, found: &str, expected: &Expected) -> bool {
        let is_missing = found == "null" || self.columns.roles.rules.is_missing_text(found.as_bytes());
        self.columns.roles.label_columns.contains(&col) && (is_missing || *expected == expected::LABEL_NOT_MISSING)
    }

    /// Appends one row. On an error, nothing is appended.
    #[expect(clippy::too_many_arguments, reason = "the columns of a batch by what they are for")]
    fn row(
        &self,
        row: usize,
        features: &[Numbers],
        labels: &[Numbers],
        weights: Option<&Numbers>,
        text: &TextColumns,
        values: &mut [f32],
        out: &mut RowChunk,
    ) -> Result<(), (usize, String, &'static Expected)> {
        let roles = &self.columns.roles;
        let (values, row_labels) = values.split_at_mut(roles.rules.n_features());
        for ((value, column), &col) in values.iter_mut().zip(features).zip(&roles.features) {
            *value = feature(column.values[row], &roles.rules.on_missing).map_err(|(found, expected)| (col, found, expected))?;
        }
        if self.has_offsets {
            shift(values, features, row, &roles.rules);
        }
        if let Err((place, expected)) = roles.rules.finish(values) {
            let found = features[place].values[row].map_or_else(|| "null".to_owned(), |value| value.to_string());
            return Err((roles.features[place], found, expected));
        }
        for (i, ((value, column), &col)) in row_labels.iter_mut().zip(labels).zip(&roles.label_columns).enumerate() {
            let wrong = |(found, expected)| (col, found, expected);
            let place = roles.rules.n_features() + i;
            *value = label(column.minus(row, roles.rules.offset(place)), &roles.labels).map_err(wrong)?;
            if let Some(found) = column.values[row].filter(|&exact| roles.rules.is_missing_number(exact)) {
                return Err((col, found.to_string(), &expected::LABEL_NOT_MISSING));
            }
        }
        let weight = match (weights, roles.weight) {
            (Some(weights), Some(col)) => {
                let finite = finite(weights.values[row], &expected::WEIGHT).and_then(|weight| match weight < 0.0 {
                    true => Err((weight.to_string(), &expected::WEIGHT)),
                    false => Ok(weight),
                });
                Some(finite.map_err(|(found, expected)| (col, found, expected))?)
            }
            _ => None,
        };
        let class = match (&text.classes, roles.label_columns.first()) {
            (Some(classes), Some(&col)) => {
                let wrong = |found: &str, expected| (col, found.to_owned(), expected);
                let name = classes.rows[row].map(|at| classes.values[at].as_str());
                let Some(name) = name.filter(|name| !roles.rules.is_missing_text(name.as_bytes())) else {
                    return Err(wrong(name.unwrap_or("null"), &expected::CLASS));
                };
                if let Labels::Known(known) = &roles.labels
                    && known.number(name).is_none()
                {
                    return Err(wrong(name, &expected::GIVEN_CLASS));
                }
                Some(name)
            }
            _ => None,
        };
        // Nothing can go wrong from here on.
        let (of_features, of_labels) = out.digits.split_at_mut(roles.rules.n_features());
        for (digits, column) in of_features.iter_mut().zip(features).chain(of_labels.iter_mut().zip(labels)) {
            column.note(row, digits);
        }
        if let (Some(weight), Some(digits)) = (weights.and_then(|weights| weights.values[row]), of_labels.last_mut()) {
            digits.note_tiny(weight);
        }
        out.features.extend_from_slice(values);
        out.weights.extend(weight);
        match (&mut out.labels, &roles.labels) {
            (ChunkLabels::Numbers(labels), _) if row_labels.is_empty() => labels.push(0.0),
            (ChunkLabels::Numbers(labels), _) => labels.extend_from_slice(row_labels),
            (ChunkLabels::Found(labels, values), _) => labels.extend(class.map(|name| values.code(name))),
            (ChunkLabels::Known(labels), Labels::Known(known)) => labels.extend(class.and_then(|name| known.number(name))),
            (ChunkLabels::Known(_), _) => unreachable!("a chunk has labels of the kind that the roles ask for"),
        }
        for (column, values) in text.categories.iter().zip(&mut out.values) {
            let value = column.rows[row].map(|at| column.values[at].as_str());
            let value = value.filter(|value| !roles.rules.is_missing_text(value.as_bytes()));
            out.categories.push(value.map_or(0, |value| values.code(value)));
        }
        Ok(())
    }

    fn numbers(&self, batch: &RecordBatch, col: usize, lists: &mut BTreeMap<usize, Numbers>) -> Numbers {
        let Place { field, element } = self.columns.places[col];
        let array = self.array(batch, field);
        let Some(element) = element else { return numbers(array) };
        let array = array.as_fixed_size_list();
        let of_lists = lists.entry(field).or_insert_with(|| numbers(array.values()));
        let len = list_len(array);
        let value = |(row, value): (usize, &Option<f64>)| value.filter(|_| array.is_valid(row));
        let values = of_lists.values.iter().skip(element).step_by(len).enumerate().map(value).collect();
        let of_column = of_lists.wholes.iter().filter(|(at, _)| *at % len == element);
        Numbers { values, wholes: of_column.map(|(at, &whole)| (at / len, whole)).collect() }
    }

    fn texts(&self, batch: &RecordBatch, col: usize) -> Texts {
        let Place { field, element } = self.columns.places[col];
        let array = self.array(batch, field);
        let Some(element) = element else { return texts(array) };
        let array = array.as_fixed_size_list();
        let of_all = texts(array.values());
        let value = |(row, value): (usize, &Option<usize>)| value.filter(|_| array.is_valid(row));
        let rows = of_all.rows.iter().skip(element).step_by(list_len(array)).enumerate().map(value).collect();
        Texts { values: of_all.values, rows }
    }

    fn array<'b>(&self, batch: &'b RecordBatch, field: usize) -> &'b dyn Array {
        let at = self.fields.binary_search(&field).expect("the fields are those of the columns that are used");
        batch.column(at)
    }
}

/// The length of the lists; never 0, since an element of one of them is requested.
fn list_len(lists: &FixedSizeListArray) -> usize {
    usize::try_from(lists.value_length()).expect("a list has no negative length")
}

/// Converts a feature to the value to store; NaN if it is missing.
fn feature(value: Option<f64>, on_missing: &OnMissing) -> Cell {
    let Some(value) = value.filter(|value| !value.is_nan()) else {
        return match on_missing {
            OnMissing::Error => Err((value.map_or("null", |_| "NaN").to_owned(), &expected::NOT_MISSING)),
            _ => Ok(f32::NAN),
        };
    };
    let rounded = value as f32;
    match (rounded.is_finite(), value.is_finite()) {
        (true, _) => Ok(rounded),
        (false, true) => Err((value.to_string(), &expected::IN_RANGE)),
        (false, false) if *on_missing == OnMissing::Keep => Ok(rounded),
        (false, false) => Err((value.to_string(), &expected::FINITE)),
    }
}

/// Subtracts the offsets from the features of a row that are present.
fn shift(values: &mut [f32], features: &[Numbers], row: usize, rules: &FeatureRules) {
    for (feature, (value, column)) in values.iter_mut().zip(features).enumerate() {
        let offset = rules.offset(feature);
        if let (Some(exact), Some(shifted)) = (column.values[row], column.minus(row, offset))
            && offset != 0.0
            && value.is_finite()
        {
            *value = if rules.is_missing_number(exact) { f32::NAN } else { shifted as f32 };
        }
    }
}

fn label(value: Option<f64>, labels: &Labels) -> Cell {
    let value = finite(value, &expected::LABEL)?;
    if *labels == Labels::Binary && value != 0.0 && value != 1.0 {
        return Err((value.to_string(), &expected::BINARY_LABEL));
    }
    Ok(value)
}

fn finite(value: Option<f64>, expected: &'static Expected) -> Cell {
    let rounded = value.map(|value| value as f32).filter(|value| value.is_finite());
    rounded.ok_or_else(|| (value.map_or_else(|| "null".to_owned(), |value| value.to_string()), expected))
}
