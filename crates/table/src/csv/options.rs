use crate::error::Error;
use crate::import::ColumnOptions;

/// How to read a text file of rows. The default suits most files: delimiter and header are detected, the first column is the label, and
/// anything that is not a number is an error.
///
/// # Examples
/// ```
/// use brisk_table::{ColumnOptions, CsvOptions, Delimiter};
///
/// let options = CsvOptions {
///     delimiter: Delimiter::Byte(b'|'),
///     columns: ColumnOptions { labels: vec!["signal".into()], ..ColumnOptions::default() },
///     ..CsvOptions::default()
/// };
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CsvOptions {
    /// The delimiter between cells.
    pub delimiter: Delimiter,
    /// The decimal mark of numbers.
    pub decimal: Decimal,
    /// Whether the first row names the columns.
    pub header: Header,
    /// The number of lines to skip at the start of the file, which are neither header nor rows.
    pub skip_lines: usize,
    /// The roles of the columns, and how invalid cells are treated.
    pub columns: ColumnOptions,
    /// The number of threads that parse, or 0 for one per core. The table does not depend on it.
    pub n_threads: usize,
}

impl CsvOptions {
    /// Everything that determines the table, as text that can be stored and compared.
    ///
    /// # Errors
    /// [`Error::Io`] if the table to match does not exist.
    pub(super) fn fingerprint(&self) -> Result<String, Error> {
        let options = format!("{:?}", CsvOptions { n_threads: 0, ..self.clone() });
        Ok(options + &self.columns.like_fingerprint()?)
    }
}

/// The delimiter between cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Delimiter {
    /// A tab, a semicolon or a comma: the first of them that splits the first rows into equally many cells.
    #[default]
    Auto,
    /// This byte.
    Byte(u8),
}

/// The decimal mark of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Decimal {
    /// `1.5`
    #[default]
    Point,
    /// `1,5`; the delimiter must then be something else.
    Comma,
}

/// Whether the first row names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Header {
    /// It does if none of its cells is a number. If only some are numbers, the import returns [`Error::HeaderOrRow`](crate::Error::HeaderOrRow).
    #[default]
    Auto,
    /// It does.
    Present,
    /// It is data; columns are then named `column_0`, `column_1` and so on, numbered as in [`ColumnRef::Index`](crate::ColumnRef::Index).
    Absent,
}
