use brisk_table::{DateFormat, Dictionary, Table};

use crate::error::Error;
use crate::reading::Decoding;

/// The columns of a source of rows, by name and in its order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Columns {
    /// The columns that are numbers: the features of a row.
    pub numbers: Vec<String>,
    /// The columns that are categories, with the values that their codes stand for.
    pub categories: Vec<Dictionary>,
    /// The categories that are numbers or dates, by name, and how they become numbers.
    pub decoded: Vec<(String, Decoding)>,
    /// The names of the classes that labels are numbers of; empty for other labels. A target has numbers of its own for them.
    pub label_classes: Vec<String>,
    /// What was subtracted from labels that are numbers: [`Target::offset`](crate::Target::offset) of this source.
    pub label_offset: f64,
}

impl Columns {
    /// Columns of numbers only.
    pub fn numbers<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { numbers: names.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The columns of a table. Columns without names are called `column_0`, `column_1` and so on. Categories that are all dates
    /// of ISO 8601 are decoded.
    ///
    /// # Errors
    /// [`Error::NoDictionaries`] for categories for which the file does not say what their codes stand for.
    pub fn of(table: &Table) -> Result<Self, Error> {
        let numbers = match table.column_names() {
            [] => (0..table.n_cols()).map(|col| format!("column_{col}")).collect(),
            names => names.to_vec(),
        };
        if table.dictionaries().len() != table.n_categories() {
            let path = table.path().to_owned();
            return Err(Error::NoDictionaries { path, n_categories: table.n_categories() });
        }
        let categories = table.dictionaries().to_vec();
        let are_dates = |column: &&Dictionary| {
            !column.values().is_empty() && column.values().iter().all(|value| DateFormat::ISO.parse(value).is_some())
        };
        let decoded = categories
            .iter()
            .filter(are_dates)
            .map(|column| (column.name().to_owned(), Decoding::Date(DateFormat::ISO)))
            .collect();
        Ok(Self { numbers, categories, decoded, label_classes: table.classes().to_vec(), label_offset: 0.0 })
    }

    /// How many columns a source has whose columns have no names, by the names that an import gives them.
    pub(super) fn n_unnamed(names: &[String]) -> Option<usize> {
        let are_places = names.iter().enumerate().all(|(col, name)| name.strip_prefix("column_") == Some(&col.to_string()));
        are_places.then_some(names.len())
    }

    /// How the category is decoded, if it is.
    pub(super) fn decoding(&self, name: &str) -> Option<Decoding> {
        self.decoded.iter().find(|(other, _)| other == name).map(|(_, decoding)| *decoding)
    }

    /// The names of all columns.
    pub(super) fn names(&self) -> Vec<String> {
        self.numbers.iter().cloned().chain(self.categories.iter().map(|column| column.name().to_owned())).collect()
    }
}
