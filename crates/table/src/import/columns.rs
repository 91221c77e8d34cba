use std::fmt;

/// What the columns of a source are for, and what becomes of cells that are not what they should be; the default: the first column is
/// the label, the others are features, and whatever is not a number is an error.
///
/// # Examples
/// ```
/// use brisk_table::{ColumnOptions, ColumnRef, LabelKind};
///
/// let columns = ColumnOptions {
///     label: "signal".into(),
///     label_kind: LabelKind::Binary,
///     drop: vec!["event_id".into(), ColumnRef::Index(7)],
///     ..ColumnOptions::default()
/// };
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ColumnOptions {
    /// Which column is the label; the first by default.
    pub label: ColumnRef,
    /// What a label may be.
    pub label_kind: LabelKind,
    /// Which column weighs the rows, if one does.
    pub weight: Option<ColumnRef>,
    /// Columns that are left out. Their cells may be anything.
    pub drop: Vec<ColumnRef>,
    /// What becomes of features that are missing.
    pub missing: Missing,
    /// What becomes of rows that cannot be read.
    pub bad_rows: BadRows,
}

/// A column of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRef {
    /// By its place, counted from 0.
    Index(usize),
    /// By its name.
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
