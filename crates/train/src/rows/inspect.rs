//! Checks of a set's rows before training: that there are rows, and that their values can be used.

use std::borrow::Cow;

use brisk_loader::{RowSource, with_causes};
use brisk_nn::tensor::DType;
use brisk_nn::{CategoricalColumn, Module};

use super::element::{FeedElement, FeedRows};
use super::{Features, RowLayout};
use crate::error::phrases::count;
use crate::error::{Cell, Error};

/// The layout of `source`'s rows, of which there must be at least one, and no more than row numbers allow.
pub(crate) fn layout_of<S: FeedRows>(set: &'static str, source: &S) -> Result<RowLayout, Error> {
    let (n_rows, n_cols) = (source.n_rows(), source.n_cols());
    let (n_labels, n_categories, has_weights) = (source.n_labels(), source.n_categories(), source.has_weights());
    if n_rows == 0 || n_cols + n_categories == 0 || n_rows >= u32::MAX as usize {
        return Err(no_rows(set, n_rows, n_cols));
    }
    Ok(RowLayout { dtype: S::Feature::DTYPE, labels: DType::F32, n_labels, n_cols, n_categories, has_weights })
}

/// Checks that a source still has `expected` rows, as it must at every call.
pub(crate) fn check_unchanged<S: RowSource>(set: &'static str, source: &S, expected: usize) -> Result<(), Error> {
    match source.n_rows() {
        found if found == expected => Ok(()),
        found => {
            Err(Error::Rows { set, reason: format!("the source has {found} rows now, expected {expected}, as many as before") })
        }
    }
}

/// Checks that rows have as many labels as a task takes. A task that takes none ignores them.
pub(crate) fn check_label_count<S: RowSource>(set: &'static str, source: &S, expected: usize) -> Result<(), Error> {
    let found = source.n_labels();
    if found == expected || expected == 0 { Ok(()) } else { Err(label_count(set, found, expected)) }
}

/// The number of a set's row where the rows are stored, so that an error names the row of the file rather than that of a split.
pub(crate) fn source_row<S: RowSource>(source: &S, row: usize) -> usize {
    u32::try_from(row).map_or(row, |row| source.source_row(row) as usize)
}

/// Checks that rows have the categorical columns that a model takes.
pub(crate) fn check_category_count<S: RowSource>(
    set: &'static str,
    source: &S,
    columns: &[CategoricalColumn],
) -> Result<(), Error> {
    let (found, expected) = (source.n_categories(), columns.len());
    if found == expected {
        return Ok(());
    }
    let way_out = "give the model an embedding for each, or leave the columns out".into();
    Err(Error::RowLayout { set, what: "categorical column", found, expected, way_out })
}

/// Checks that a model takes as many columns as rows have, if it knows how many it takes.
pub(crate) fn check_columns(set: &'static str, n_cols: usize, module: &dyn Module) -> Result<(), Error> {
    match module.n_inputs() {
        Some(expected) if expected != n_cols => {
            let way_out =
                format!("build the model for {}, or choose as many columns of the rows as it takes", count(n_cols, "column"));
            Err(Error::RowLayout { set, what: "column", found: n_cols, expected, way_out: way_out.into() })
        }
        _ => Ok(()),
    }
}

/// Values of some rows that are about to be copied to a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckedValues<'a, T> {
    pub(crate) features: &'a [T],
    pub(crate) labels: &'a [f32],
    pub(crate) weights: &'a [f32],
}

impl<T: FeedElement> CheckedValues<'_, T> {
    /// Checks that features are finite, labels that are stored as u32 are class numbers, and weights are finite and not negative;
    /// the error names the first that is not. `row_at` is the number in `source` of each of the rows.
    pub(crate) fn check<S: RowSource<Feature = T>>(
        self,
        set: &'static str,
        source: &S,
        layout: RowLayout,
        row_at: impl Fn(usize) -> usize,
    ) -> Result<(), Error> {
        if let Features::F32(x) = T::features(self.features)
            && let Some((at, found)) = first_non_finite(x)
        {
            let (row, column) = (source_row(source, row_at(at / layout.n_cols)), at % layout.n_cols);
            return Err(non_finite(set, row, column, source.names().column(column), found));
        }
        // 2^32, the first number that is no u32.
        let is_class = |label: f32| label >= 0.0 && label.fract() == 0.0 && label < 4_294_967_296.0;
        if layout.labels == DType::U32
            && let Some(at) = self.labels.iter().position(|&label| !is_class(label))
        {
            let expected = "the number of a class, from 0; number the classes so, or store labels as f32 (`FeedConfig::labels`)";
            let place = [row_at(at / layout.n_labels), at % layout.n_labels];
            return Err(wrong_label(set, source, place, self.labels[at], expected.into()));
        }
        match self.weights.iter().position(|&weight| !is_weight(weight)).filter(|_| layout.has_weights) {
            Some(row) => Err(weight_range(set, source_row(source, row_at(row)), self.weights[row])),
            None => Ok(()),
        }
    }
}

/// Whether a row can count so often.
pub(crate) fn is_weight(weight: f32) -> bool {
    weight.is_finite() && weight >= 0.0
}

/// The first value that is NaN or infinite, and its index.
pub(crate) fn first_non_finite(x: &[f32]) -> Option<(usize, f32)> {
    // One pass over all values is vectorised; a search for the first is not.
    if x.iter().fold(true, |is_finite, x| is_finite & x.is_finite()) {
        return None;
    }
    x.iter().copied().enumerate().find(|(_, x)| !x.is_finite())
}

/// The first code that its column does not have: its row, its column, and the code. Rows have a code for each column.
pub(crate) fn first_unknown_code(codes: &[u32], columns: &[CategoricalColumn]) -> Option<(usize, usize, u32)> {
    let mut rows = codes.chunks_exact(columns.len().max(1)).enumerate();
    rows.find_map(|(row, codes)| {
        let column = codes.iter().zip(columns).position(|(&code, column)| code as usize >= column.n_codes)?;
        Some((row, column, codes[column]))
    })
}

pub(crate) fn failed(set: &'static str, error: &(dyn std::error::Error + 'static)) -> Error {
    Error::Rows { set, reason: with_causes(error) }
}

/// The error for a set that has no rows, neither columns nor categories, or more rows than can be numbered.
pub(crate) fn no_rows(set: &'static str, n_rows: usize, n_cols: usize) -> Error {
    let found = format!("{n_rows} rows of {}", count(n_cols, "column"));
    Error::row_set(set, found, "at least one of each and fewer than 2^32 - 1 rows")
}

/// The error for rows that have another number of columns than the training rows, or training rows that have another number than
/// their standardisation.
pub(crate) fn column_count(set: &'static str, found: usize, expected: usize) -> Error {
    let way_out = match set {
        "train" => "use a standardisation of these columns",
        _ => "give them the columns of the training rows",
    };
    Error::RowLayout { set, what: "column", found, expected, way_out: way_out.into() }
}

/// The error for rows that have another number of labels than the task takes.
pub(crate) fn label_count(set: &'static str, found: usize, expected: usize) -> Error {
    let way_out = match found {
        0 => format!("give the rows {}, or train a task that takes none", count(expected, "label")),
        _ => format!("choose as many label columns, or a task for {found}"),
    };
    Error::RowLayout { set, what: "label", found, expected, way_out: way_out.into() }
}

/// What a label that is a number must be, and what to do.
pub(crate) const FINITE_LABEL: &str = "a finite number; drop such rows, or choose another label column";

/// The error for a label that the task does not take: label `label` of row `row`.
pub(crate) fn wrong_label<S: RowSource>(
    set: &'static str,
    source: &S,
    [row, label]: [usize; 2],
    found: f32,
    expected: Cow<'static, str>,
) -> Error {
    let cell = Cell::Label((source.n_labels() > 1).then_some(label));
    let name = source.names().label(label).map(Into::into);
    Error::Value { set, row: source_row(source, row), cell, name, found: found.to_string(), expected }
}

/// The error for a feature that is NaN or infinite.
pub(crate) fn non_finite(set: &'static str, row: usize, column: usize, name: Option<&str>, found: f32) -> Error {
    let (cell, found) = (Cell::Column(column), found.to_string());
    let expected = "a finite number; replace missing values, or drop such rows".into();
    Error::Value { set, row, cell, name: name.map(Into::into), found, expected }
}

/// The error for a code that the model has no entry for.
pub(crate) fn unknown_code(set: &'static str, row: usize, column: usize, found: u32, n_codes: usize) -> Error {
    let expected = format!(
        "one below {n_codes}, the number of codes of the model; give the model more, or replace the code by 0, which stands for unknown"
    );
    Error::Value { set, row, cell: Cell::Code(column), name: None, found: found.to_string(), expected: expected.into() }
}

/// The error for a weight that is not a number of rows.
pub(crate) fn weight_range(set: &'static str, row: usize, found: f32) -> Error {
    let expected = "a finite number, 0 or more".into();
    Error::Value { set, row, cell: Cell::Weight, name: None, found: found.to_string(), expected }
}

/// The error for a weight that may make the sum over a batch infinite.
pub(crate) fn heavy_weight(set: &'static str, row: usize, found: f32, largest: f32, batch_rows: usize) -> Error {
    let expected =
        format!("at most {largest:e} in batches of {batch_rows} rows, whose weights are summed; scale the weights down");
    Error::Value { set, row, cell: Cell::Weight, name: None, found: format!("{found:e}"), expected: expected.into() }
}

/// The error for rows none of which counts.
pub(crate) fn all_weights_are_zero(set: &'static str, n_rows: usize) -> Error {
    Error::row_set(set, format!("all {n_rows} weights are 0"), "some above 0; leave the weights out, or set some")
}
