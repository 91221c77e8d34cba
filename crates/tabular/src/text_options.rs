use std::path::Path;

use brisk_table::{ColumnOptions, CsvOptions, Decimal, Delimiter, Format, Header, ImportOptions};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// How a text file of rows is read. With a model, only what is not of one file is kept.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextOptions {
    /// The delimiter between cells.
    #[serde(skip)]
    pub delimiter: Delimiter,
    /// Whether the first row names the columns.
    #[serde(skip)]
    pub header: Header,
    /// Lines at the start of the file that are neither header nor rows.
    #[serde(skip)]
    pub skip_lines: usize,
    /// The decimal mark of numbers.
    #[serde(with = "DecimalMark")]
    pub decimal: Decimal,
    /// The number of columns of a file whose first row does not name them, so that they are identified by their positions; `None`
    /// for any. A model has that of the file it was trained on; in a file of rows to predict, a target in the last place may be
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_unnamed_columns: Option<usize>,
    /// Words for missing values, besides those that [`brisk_table::Missing`] lists.
    pub missing_values: Vec<String>,
}

/// [`Decimal`] in a file.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Decimal", rename_all = "snake_case")]
enum DecimalMark {
    Point,
    Comma,
}

impl TextOptions {
    /// The options of an import of a file of that format.
    ///
    /// # Errors
    /// [`Error::UnusedOption`] if the format has no use for one of them.
    pub(super) fn check(&self, path: &Path, format: Format) -> Result<(), Error> {
        let is_text = format == Format::Csv;
        let has_names = is_text || matches!(format, Format::Arrow | Format::Parquet);
        let options = [
            (is_text || self.delimiter == Delimiter::Auto, "delimiter"),
            (is_text || self.header == Header::Auto, "header"),
            (is_text || self.skip_lines == 0, "skip_lines"),
            (is_text || self.decimal == Decimal::Point, "decimal"),
            (has_names || self.missing_values.is_empty(), "missing_values"),
        ];
        options.into_iter().try_for_each(|(is_used, option)| check_used(is_used, path, option, format.description()))
    }

    /// The options of an import of these columns.
    pub(super) fn import(&self, columns: ColumnOptions) -> ImportOptions {
        let Self { delimiter, header, skip_lines, decimal, missing_values, n_unnamed_columns: _ } = self.clone();
        let mut options = ImportOptions::with_columns(&ColumnOptions { missing_values, ..columns });
        options.csv = CsvOptions { delimiter, header, skip_lines, decimal, ..options.csv };
        options
    }
}

/// # Errors
/// [`Error::UnusedOption`] unless the option is used or has its default.
pub(super) fn check_used(is_used: bool, path: &Path, option: &'static str, format: &'static str) -> Result<(), Error> {
    if is_used { Ok(()) } else { Err(Error::UnusedOption { path: path.to_owned(), option, format }) }
}
