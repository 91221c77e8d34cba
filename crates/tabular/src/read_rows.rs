use std::path::Path;
use std::sync::Arc;

use brisk_loader::RowSource;
use brisk_table::{
    Categorical, ColumnOptions, ColumnRef, CsvOptions, Error as TableError, Format, LabelKind, Missing, SourceError, Table,
    survey_csv,
};

use crate::columns::Columns;
use crate::detect::is_table;
use crate::error::{Error, WrongValue};
use crate::model::TabularModel;
use crate::predicted_rows::UnfamiliarValues;
use crate::reading::Decoding;
use crate::scratch::import_to_memory;
use crate::text_options::TextOptions;

/// Rows with the columns that a model needs: [`TabularModel::read_rows`].
#[derive(Debug)]
#[non_exhaustive]
pub struct TabularRows {
    /// The rows. Without labels, unless the file is a table that has them.
    pub table: Arc<Table>,
    /// Their columns.
    pub columns: Columns,
    /// What the model does not know of them.
    pub unfamiliar: UnfamiliarValues,
}

impl TabularModel {
    /// Reads the rows of a file of any format, for [`TabularPredictor::predict`](crate::TabularPredictor::predict). Every column
    /// is read as it was in training, whatever its cells look like in this file; columns are found by name, others are left out,
    /// and a target is not needed. Text is read with the model's [`text_options`](Self::text_options).
    ///
    /// # Errors
    /// [`Error::Table`] if the file cannot be read, lacks a column, or has text where the model needs numbers, with the line;
    /// [`Error::UnnamedColumns`]; [`Error::Value`], also with the line, for text where it needs dates; [`Error`](crate::Error)
    /// for columns of other kinds.
    /// # Examples
    /// ```no_run
    /// use brisk_nn::tensor::program::Device;
    /// use brisk_tabular::TabularModel;
    ///
    /// let model = TabularModel::load("prices")?;
    /// let rows = model.read_rows("new_houses.csv")?;
    /// rows.unfamiliar.unseen.iter().for_each(|unseen| eprintln!("{unseen}"));
    /// let predictions = model.predictor(&Device::best()?)?.predict(&rows.columns, &rows.table)?;
    /// # Ok::<(), brisk_tabular::Error>(())
    /// ```
    pub fn read_rows(&self, file: impl AsRef<Path>) -> Result<TabularRows, Error> {
        self.read_rows_with(file, self.text_options(), || ())
    }

    /// Like [`read_rows`](Self::read_rows), with other options for text; `progress` is called on this thread from time to time.
    ///
    /// # Errors
    /// As [`read_rows`](Self::read_rows); [`Error::UnusedOption`].
    pub fn read_rows_with(
        &self,
        file: impl AsRef<Path>,
        text: &TextOptions,
        mut progress: impl FnMut(),
    ) -> Result<TabularRows, Error> {
        let path = file.as_ref();
        let needed = self.preprocessing().columns();
        let (mut csv, mut n_blank_lines) = (None, 0);
        let (table, columns) = if is_table(path) {
            if text != self.text_options() {
                let (option, format) = ("text", "a table that was imported before");
                return Err(Error::UnusedOption { path: path.to_owned(), option, format });
            }
            let table = Table::open(path)?;
            table.check_intact()?;
            let columns = Columns::of(&table)?;
            (table, columns)
        } else {
            let format = Format::detect(path)?;
            if text != self.text_options() {
                text.check(path, format)?;
            }
            let decoded = needed.decoded.iter().map(|(name, _)| name.as_str());
            let text_columns = needed.categories.iter().map(|column| column.name()).chain(decoded).map(ColumnRef::from).collect();
            let columns = ColumnOptions {
                label_kind: LabelKind::Absent,
                features: Some(needed.numbers.iter().map(|name| name.as_str().into()).collect()),
                categorical: Categorical::Columns(text_columns),
                missing: Missing::Keep,
                ..ColumnOptions::default()
            };
            let import = text.import(columns);
            let imported = import_to_memory(path, &import, &mut progress);
            let (table, report) = imported.map_err(|error| of_missing(error, &needed))?;
            if let (Some(found), Some(expected)) = (Columns::n_unnamed(&report.source_columns), text.n_unnamed_columns) {
                // Without the last column, the others are where they were.
                let last = self.target().name() == format!("column_{}", expected - 1);
                if found != expected && !(last && found + 1 == expected) {
                    return Err(Error::UnnamedColumns { path: path.to_owned(), found, expected });
                }
            }
            let columns = Columns { decoded: needed.decoded.clone(), ..Columns::of(&table)? };
            csv = (format == Format::Csv).then_some(import.csv);
            if report.source_columns.len() == 1 {
                n_blank_lines = report.n_blank_lines;
            }
            (table, columns)
        };
        let over = self.preprocessing().over(&columns, &table).map_err(|error| in_file(error, path, csv.as_ref(), &needed))?;
        let unfamiliar = UnfamiliarValues { n_blank_lines, ..UnfamiliarValues::of(&over)? };
        Ok(TabularRows { table: Arc::new(table), columns, unfamiliar })
    }

    /// Whether [`read_rows`](Self::read_rows) reads the same table of a file for both models.
    pub(super) fn reads_like(&self, other: &Self) -> bool {
        let [own, others] = [self, other].map(|model| model.preprocessing().columns());
        let names = |columns: &Columns| columns.categories.iter().map(|column| column.name().to_owned()).collect::<Vec<_>>();
        (&own.numbers, &own.decoded, names(&own)) == (&others.numbers, &others.decoded, names(&others))
            && self.text_options() == other.text_options()
    }

    /// Rows that were read by a model that [reads like](Self::reads_like) this one.
    pub(super) fn known_rows(&self, rows: &TabularRows) -> Result<TabularRows, Error> {
        let unfamiliar = UnfamiliarValues::of(&self.preprocessing().over(&rows.columns, &rows.table)?)?;
        let unfamiliar = UnfamiliarValues { n_blank_lines: rows.unfamiliar.n_blank_lines, ..unfamiliar };
        Ok(TabularRows { table: rows.table.clone(), columns: rows.columns.clone(), unfamiliar })
    }
}

/// The error of an import: of several missing columns, all are named; of one, a decoded column is not one of categories.
fn of_missing(error: Error, needed: &Columns) -> Error {
    let Error::Table(cause) = error else { return error };
    let TableError::Source { path, mut reason } = *cause else { return Error::Table(cause) };
    if let SourceError::NoColumn { role, asked, found, .. } = &mut *reason {
        let decoded = needed.decoded.iter().map(|(name, _)| name.clone());
        let names: Vec<String> = needed.names().into_iter().chain(decoded).filter(|name| !found.contains(name)).collect();
        if names.len() > 1 {
            return Error::MissingColumns { path: Some(path), names, found: std::mem::take(found) };
        }
        match needed.decoded.iter().find(|(name, _)| ColumnRef::from(name.as_str()).to_string() == *asked) {
            Some((_, Decoding::Number)) => *role = "columns of numbers",
            Some((_, Decoding::Date(_))) => *role = "columns of dates",
            None => {}
        }
    }
    reason.at(&path).into()
}

/// The error of a value of a file, with the line in a file of text: those of all cells were not kept.
fn in_file(error: Error, path: &Path, csv: Option<&CsvOptions>, needed: &Columns) -> Error {
    let Error::Value(wrong) = error else { return error };
    let surveyed = csv.and_then(|csv| survey_csv(path, csv).ok());
    let surveyed = surveyed.and_then(|survey| survey.columns.into_iter().find(|other| other.name == wrong.column));
    let cells = surveyed.map_or_else(Vec::new, |column| match needed.decoding(&column.name) {
        Some(Decoding::Date(format)) => column.not_in_format(format),
        _ => column.not_numbers,
    });
    let line = cells.into_iter().find(|cell| cell.text == wrong.found).map(|cell| cell.line);
    Error::Value(Box::new(WrongValue { path: Some(path.to_owned()), line, ..*wrong }))
}
