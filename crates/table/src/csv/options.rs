use crate::import::ColumnOptions;

/// How to read a CSV or TSV file. The default suits most files: delimiter and header are detected, the first column is the label,
/// and anything that is not a number is an error.
///
/// Every cell becomes the `f32` nearest to the number in it, as with `str::parse`. Cells are parsed on all cores while the file
/// is still being read; memory use is a few megabytes per core, however large the file. Blank lines are not rows, blanks around
/// cells are ignored, and quotes follow RFC 4180.
///
/// # Errors
/// [`Error::Source`](crate::Error::Source) with file, line, column, what was found and what was expected, always of the first bad
/// row ([`SourceError::Cell`](crate::SourceError::Cell), [`SourceError::Ragged`](crate::SourceError::Ragged)), or for a file or
/// options that make no table; [`Error::Io`](crate::Error::Io) if the file cannot be read or decompressed;
/// [`Error::Write`](crate::Error::Write). On `Err`, `dest` is unchanged.
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (source, dest) = (folder.path().join("two.csv"), folder.path().join("two.safetensors"));
/// use brisk_table::{ColumnOptions, CsvOptions, Table, import};
///
/// std::fs::write(&source, "y,a,b\n1,0.5,2\n0,1.5,-3e-2\n")?;
/// let report = import(&source, &dest, &CsvOptions::default())?;
/// assert_eq!((report.n_rows, report.column_names), (2, vec!["a".into(), "b".into()]));
/// assert_eq!(Table::open(&dest)?.rows::<f32>(0..2)?, [0.5, 2.0, 1.5, -0.03]);
///
/// std::fs::write(&source, "y,a,b\n1,0.5,2\n0,1.5,two\n")?;
/// let columns = ColumnOptions { labels: vec!["a".into()], ..ColumnOptions::default() };
/// let error = import(&source, &dest, &CsvOptions { columns, ..CsvOptions::default() }).unwrap_err().to_string();
/// assert!(error.contains("line 3, column 3 (`b`): found \"two\", expected a number"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
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

/// The delimiter between cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Delimiter {
    /// A tab, a semicolon, a comma or a vertical bar: the first of them that splits the first rows into equally many cells.
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
    /// It does if none of its cells is a number. If only some are numbers, the import returns an
    /// error.
    #[default]
    Auto,
    /// It does.
    Present,
    /// It is data; columns are then named `column_0`, `column_1` and so on, numbered as in
    /// [`ColumnRef::Index`](crate::ColumnRef::Index).
    Absent,
}
