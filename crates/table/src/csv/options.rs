use std::fmt;

/// How to read a text file of rows; the default suits most: everything is found out, the first column is the label, and whatever is not
/// a number is an error.
///
/// # Examples
/// ```
/// use brisk_table::{ColumnRef, CsvOptions, LabelKind};
///
/// let options = CsvOptions {
///     label: "signal".into(),
///     label_kind: LabelKind::Binary,
///     drop: vec!["event_id".into(), ColumnRef::Index(7)],
///     ..CsvOptions::default()
/// };
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CsvOptions {
    /// What stands between cells.
    pub delimiter: Delimiter,
    /// What stands between a number's whole part and its fraction.
    pub decimal: Decimal,
    /// Whether the first row names the columns.
    pub header: Header,
    /// Which column is the label; the first by default.
    pub label: ColumnRef,
    /// What a label may be.
    pub label_kind: LabelKind,
    /// Which column weighs the rows, if one does.
    pub weight: Option<ColumnRef>,
    /// Columns that are left out. Their cells may be text.
    pub drop: Vec<ColumnRef>,
    /// What becomes of features that are missing.
    pub missing: Missing,
    /// What becomes of rows that cannot be read.
    pub bad_rows: BadRows,
    /// How many threads parse; 0 for one a core. The table is the same for any number.
    pub n_threads: usize,
}

impl CsvOptions {
    /// What decides the table, as text that can be kept and compared.
    pub(super) fn fingerprint(&self) -> String {
        format!("{:?}", CsvOptions { n_threads: 0, ..self.clone() })
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
    /// It is data; columns are then named `column_0`, `column_1` and so on, as in [`ColumnRef::Index`].
    Absent,
}

/// A column of a text file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRef {
    /// By its place, counted from 0.
    Index(usize),
    /// By its name in the header.
    Name(String),
}

impl Default for ColumnRef {
    fn default() -> Self {
        Self::Index(0)
    }
}

impl From<&str> for ColumnRef {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<usize> for ColumnRef {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl fmt::Display for ColumnRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "at index {index}, counted from 0,"),
            Self::Name(name) => write!(f, "`{name}`"),
        }
    }
}

/// What a label may be. A missing label is an error either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LabelKind {
    /// Any finite number.
    #[default]
    Number,
    /// 0 or 1.
    Binary,
}

/// What becomes of features that are missing: cells that are empty, or `NaN`, `NA`, `N/A`, `null`, `None` or `?` in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Missing {
    /// They are errors, and so are infinities.
    #[default]
    Error,
    /// They become NaN, and infinities stay.
    Keep,
}

/// What becomes of rows that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BadRows {
    /// The first of them is an error, and there is no table.
    #[default]
    Error,
    /// They are left out and counted, and the first few are reported.
    Skip,
}
