use brisk_table::{Dictionary, Table};

use super::TabularError;
use crate::Error;

/// The columns of a source of rows, by name and in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Columns {
    /// The columns that are numbers: the features of a row.
    pub numbers: Vec<String>,
    /// The columns that are categories, with the values that their codes stand for.
    pub categories: Vec<Dictionary>,
}

impl Columns {
    /// Columns of numbers only.
    pub fn numbers<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { numbers: names.into_iter().map(Into::into).collect(), categories: Vec::new() }
    }

    /// The columns of a table. Columns without names are called `column_0`, `column_1` and so on.
    ///
    /// # Errors
    /// [`TabularError::NoDictionaries`] for categories for which the file does not say what their codes stand for.
    pub fn of(table: &Table) -> Result<Self, Error> {
        let numbers = match table.column_names() {
            [] => (0..table.n_cols()).map(|col| format!("column_{col}")).collect(),
            names => names.to_vec(),
        };
        if table.dictionaries().len() != table.n_categories() {
            let path = table.path().to_owned();
            return Err(TabularError::NoDictionaries { path, n_categories: table.n_categories() }.into());
        }
        Ok(Self { numbers, categories: table.dictionaries().to_vec() })
    }

    /// The names of all columns.
    pub(super) fn names(&self) -> Vec<String> {
        self.numbers.iter().cloned().chain(self.categories.iter().map(|column| column.name().to_owned())).collect()
    }
}
