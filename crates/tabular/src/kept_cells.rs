use std::path::Path;

use brisk_table::{Categorical, ColumnOptions, ColumnRef, Dictionary, Format, LabelKind, Missing, read_cells};

use crate::detect::is_table;
use crate::error::Error;
use crate::scratch::import_to_memory;
use crate::text_options::TextOptions;

impl TextOptions {
    /// The cells of some columns of a file as text, in the order of its rows: for each column its name and the text of each row.
    /// Those of a text file are as they are in the file; in other formats, missing ones are empty.
    ///
    /// # Errors
    /// [`Error::Table`] if the file cannot be read or lacks a column; [`Error::UnusedOption`] for a table that was imported
    /// before, which does not have the cells of its file.
    pub fn read_cells(
        &self,
        file: impl AsRef<Path>,
        columns: &[String],
        mut progress: impl FnMut(),
    ) -> Result<Vec<(String, Vec<String>)>, Error> {
        let path = file.as_ref();
        if is_table(path) {
            let (option, format) = ("keep", "a table that was imported before");
            return Err(Error::UnusedOption { path: path.to_owned(), option, format });
        }
        let columns: Vec<ColumnRef> = columns.iter().map(|column| column.as_str().into()).collect();
        if Format::detect(path)? == Format::Csv {
            let csv = self.import(ColumnOptions::default()).csv;
            return Ok(read_cells(path, &csv, &columns, |_| progress())?);
        }
        let options = ColumnOptions {
            label_kind: LabelKind::Absent,
            features: Some(Vec::new()),
            categorical: Categorical::Columns(columns),
            missing: Missing::Keep,
            ..ColumnOptions::default()
        };
        let (table, _) = import_to_memory(path, &self.import(options), &mut progress)?;
        let (codes, dictionaries) = (table.categories(0..table.n_rows())?, table.dictionaries());
        let of_column = |(col, dictionary): (usize, &Dictionary)| {
            let codes = codes.iter().skip(col).step_by(dictionaries.len());
            // Code 0 is a missing value.
            let text =
                |&code: &u32| (code as usize).checked_sub(1).map_or_else(String::new, |at| dictionary.values()[at].clone());
            (dictionary.name().to_owned(), codes.map(text).collect())
        };
        Ok(dictionaries.iter().enumerate().map(of_column).collect())
    }
}
