use crate::{ColumnOptions, Error};

/// How to read a text file of rows; the default suits most: everything is found out, the first column is the label, and whatever is not
/// a number is an error.
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
    /// What stands between cells.
    pub delimiter: Delimiter,
    /// What stands between a number's whole part and its fraction.
    pub decimal: Decimal,
    /// Whether the first row names the columns.
    pub header: Header,
    /// How many lines to leave out at the start of the file, which are neither header nor rows.
    pub skip_lines: usize,
    /// What the columns are for, and what becomes of cells that are not what they should be.
    pub columns: ColumnOptions,
    /// How many threads parse; 0 for one a core. The table is the same for any number.
    pub n_threads: usize,
}

impl CsvOptions {
    /// What decides the table, as text that can be kept and compared.
    ///
    /// # Errors
    /// [`Error::Io`] if the table to be like is not there.
    pub(super) fn fingerprint(&self) -> Result<String, Error> {
        let options = format!("{:?}", CsvOptions { n_threads: 0, ..self.clone() });
        Ok(options + &self.columns.like_fingerprint()?)
    }
}

/// What stands between cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Delimiter {
    /// A tab, a semicolon or a comma: the first of them that splits the first rows into equally many cells.
    #[default]
    Auto,
    /// This byte.
    Byte(u8),
}

/// What stands between a number's whole part and its fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Decimal {
    /// `1.5`
    #[default]
    Point,
    /// `1,5`; the delimiter is then something else.
    Comma,
}

/// Whether the first row names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Header {
    /// It does if none of its cells is a number; if some are, that is an error and you are asked.
    #[default]
    Auto,
    /// It does.
    Present,
    /// It is data; columns are then named `column_0`, `column_1` and so on, as in [`ColumnRef::Index`](crate::ColumnRef::Index).
    Absent,
}
