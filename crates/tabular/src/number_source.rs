use brisk_loader::{RowSource, for_each_chunk};
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
    /// The sources of numbers that are read from these columns of `rows`.
    ///
    /// # Errors
    /// [`Error::MissingColumns`], [`Error::ColumnKind`]; [`Error::Value`] for text that is not of the kind.
    pub(super) fn find_all<'a, S: RowSource<Feature: FeedElement>>(
        columns: &Columns,
        rows: &S,
        readings: impl Iterator<Item = (&'a str, Reading)>,
    ) -> Result<Vec<Self>, Error> {
        let (mut sources, mut missing) = (Vec::new(), Vec::new());
        for (name, reading) in readings {
            let is_number = matches!(reading, Reading::Number | Reading::Offset { .. });
            if let Some(col) = columns.numbers.iter().position(|other| other == name) {
                if !is_number {
                    let (column, found, expected) = (name.to_owned(), "numbers", "dates");
                    return Err(Error::ColumnKind { column, found, expected });
                }
                sources.push(Self::Feature { col, reading });
            } else if let Some(category) = columns.categories.iter().position(|other| other.name() == name) {
                if reading == Reading::Number {
                    let (column, found, expected) = (name.to_owned(), "text", "numbers");
                    return Err(Error::ColumnKind { column, found, expected });
                }
                let numbers = numbers(&columns.categories[category], reading);
                if let Some(code) = (1..numbers.len()).find(|&code| numbers[code].is_nan()) {
                    return Err(wrong_value(columns, rows, category, code, reading)?);
                }
                sources.push(Self::Codes { category, numbers });
            } else if !missing.iter().any(|other| other == name) {
                missing.push(name.to_owned());
            }
        }
        if !missing.is_empty() {
            return Err(Error::MissingColumns { names: missing, found: columns.names() });
        }
        Ok(sources)
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
    for_each_chunk(rows, failed("preprocessed"), |read| {
        let mut codes = read.categories.iter().skip(category).step_by(columns.categories.len());
        let found =
            codes.position(|&other| other as usize == code).map(|row| rows.source_row((read.first + row) as u32) as usize);
        first = first.or(found);
        Ok(())
    })?;
    let column = &columns.categories[category];
    let found = column.values()[code - 1].clone();
    let (column, expected) = (column.name().to_owned(), reading.expected());
    let wrong = WrongValue { path: None, line: None, row: first, column, found, expected };
    Ok(Error::Value(Box::new(wrong)))
}
