use brisk_loader::{Layout, RowSource, for_each_chunk};
use brisk_table::Dictionary;
use brisk_train::FeedElement;

use crate::columns::Columns;
use crate::error::{Error, WrongValue, failed};
use crate::reading::{Reading, nfc};

/// Where a number of a row comes from.
#[derive(Debug, Clone)]
pub(super) enum NumberSource {
    /// A feature.
    Feature { col: usize, reading: Reading },
    /// The text of a category, converted to a number for each code.
    Codes { category: usize, numbers: Vec<f32> },
}

impl NumberSource {
    /// The sources of numbers that are read from these columns of `rows`, which are among `columns`.
    ///
    /// # Errors
    /// [`Error::ColumnKind`]; [`Error::Value`] for text that is not of the kind.
    pub(super) fn find_all<'a, S: RowSource<Feature: FeedElement>>(
        columns: &Columns,
        rows: &S,
        readings: impl Iterator<Item = (&'a str, Reading)>,
    ) -> Result<Vec<Self>, Error> {
        let source = |(name, reading): (&str, Reading)| {
            let wrong_kind = |found, expected| Err(Error::ColumnKind { column: name.to_owned(), found, expected });
            if let Some(col) = columns.numbers.iter().position(|other| other == name) {
                return if reading.is_part_of_date() {
                    wrong_kind("numbers", "dates")
                } else {
                    Ok(Self::Feature { col, reading })
                };
            }
            if reading == Reading::Number {
                return wrong_kind("text", "numbers");
            }
            let category = columns.categories.iter().position(|other| other.name() == name);
            let category = category.expect("the column is among those of the rows");
            let numbers = numbers(&columns.categories[category], reading);
            match (1..numbers.len()).find(|&code| numbers[code].is_nan()) {
                Some(code) => Err(wrong_value(columns, rows, category, code, reading)?),
                None => Ok(Self::Codes { category, numbers }),
            }
        };
        readings.map(source).collect()
    }

    /// The number of a row; NaN if it is missing.
    pub(super) fn value<F: Copy + Into<f32>>(&self, features: &[F], codes: &[u32]) -> f32 {
        match self {
            Self::Feature { col, reading } => reading.of_number(features[*col].into()),
            Self::Codes { category, numbers } => numbers.get(codes[*category] as usize).copied().unwrap_or(f32::NAN),
        }
    }
}

/// The number for each code of a column; NaN for 0, and for text that is none.
fn numbers(column: &Dictionary, reading: Reading) -> Vec<f32> {
    let of_values = column.values().iter().map(|value| reading.of_text(&nfc(value)).unwrap_or(f32::NAN));
    std::iter::once(f32::NAN).chain(of_values).collect()
}

/// The error for a value that is no number, with the first row that has it.
fn wrong_value<S: RowSource<Feature: FeedElement>>(
    columns: &Columns,
    rows: &S,
    category: usize,
    code: usize,
    reading: Reading,
) -> Result<Error, Error> {
    let mut first = None;
    for_each_row(rows, "preprocessed", |row, _, codes| {
        if first.is_none() && codes[category] as usize == code {
            first = Some(rows.source_row(row as u32) as usize);
        }
    })?;
    let column = &columns.categories[category];
    let found = column.values()[code - 1].clone();
    let (column, expected) = (column.name().to_owned(), reading.expected());
    let wrong = WrongValue { path: None, line: None, row: first, column, found, expected };
    Ok(Error::Value(Box::new(wrong)))
}

/// Calls `f` with the number, the features and the codes of each row.
pub(super) fn for_each_row<S: RowSource>(
    rows: &S,
    set: &'static str,
    mut f: impl FnMut(usize, &[S::Feature], &[u32]),
) -> Result<(), Error> {
    let layout @ Layout { n_cols, n_categories, .. } = rows.layout();
    for_each_chunk(rows, failed(set), |read| {
        for i in 0..read.n_rows(&layout) {
            f(read.first + i, &read.features[i * n_cols..][..n_cols], &read.categories[i * n_categories..][..n_categories]);
        }
        Ok(())
    })
}
