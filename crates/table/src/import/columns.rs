use std::fmt;
use std::path::PathBuf;

use crate::{DType, Error, SourceIdentity};

/// What the columns of a source are for, and what becomes of cells that are not what they should be; the default: the first column is
/// the label, the others are features, and whatever is not a number is an error.
///
/// # Examples
/// ```
/// use brisk_table::{ColumnOptions, ColumnRef, LabelKind};
///
/// let columns = ColumnOptions {
///     labels: vec!["signal".into()],
///     label_kind: LabelKind::Binary,
///     drop: vec!["event_id".into(), ColumnRef::Index(7)],
///     ..ColumnOptions::default()
/// };
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnOptions {
    /// Which columns are labels, in the order of the table; the first column by default. Several are numbers, or 0 and 1: the targets of a regression, or the labels of
    /// which a row may have any number.
    pub labels: Vec<ColumnRef>,
    /// What a label may be.
    pub label_kind: LabelKind,
    /// Which column weighs the rows, if one does.
    pub weight: Option<ColumnRef>,
    /// Columns that are left out. Their cells may be anything.
    pub drop: Vec<ColumnRef>,
    /// Which columns are categories: text, or numbers that only name something.
    pub categorical: Categorical,
    /// What becomes of features that are missing. (A missing category has code 0.)
    pub missing: Missing,
    /// What says that a value is missing, besides an empty cell and the words that [`Missing`] lists: words, or numbers such as `-999.0`.
    pub missing_values: Vec<String>,
    /// Features beside which another says whether they were missing.
    pub indicators: Indicators,
    /// What features are stored as.
    pub dtype: FeatureDType,
    /// What becomes of rows that cannot be read.
    pub bad_rows: BadRows,
    /// A table to be like, as a test set is to its training set: the same columns, found by their names, in the same order; the same
    /// dictionaries, in which values that it has not are unknown; the same classes; the same values for what is missing.
    ///
    /// What that table settles is not asked of the other options: `labels`, `label_kind`, `categorical`, `indicators` and `dtype` are its own,
    /// `missing` too if it filled in values. Columns that it has not are left out.
    pub like: Option<PathBuf>,
}

impl Default for ColumnOptions {
    /// The first column is the label.
    fn default() -> Self {
        Self {
            labels: vec![ColumnRef::default()],
            label_kind: LabelKind::default(),
            weight: None,
            drop: Vec::new(),
            categorical: Categorical::default(),
            missing: Missing::default(),
            missing_values: Vec::new(),
            indicators: Indicators::default(),
            dtype: FeatureDType::default(),
            bad_rows: BadRows::default(),
            like: None,
        }
    }
}

impl ColumnOptions {
    /// What tells the table to be like from another that was put in its place.
    ///
    /// # Errors
    /// [`Error::Io`] if it is not there.
    pub(crate) fn like_fingerprint(&self) -> Result<String, Error> {
        let Some(path) = &self.like else { return Ok(String::new()) };
        let metadata = std::fs::metadata(path);
        let metadata = metadata.map_err(|cause| Error::Io { path: path.clone(), action: "open", cause })?;
        Ok(format!(" {:?}", SourceIdentity::new(path, &metadata)))
    }
}

/// A column of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRef {
    /// The last column.
    Last,
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
            Self::Last => f.write_str("the last one"),
            Self::Index(index) => write!(f, "at index {index}, counted from 0,"),
            Self::Name(name) => write!(f, "`{name}`"),
        }
    }
}

/// What a label may be. A missing label is an error, except if no column is a label.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum LabelKind {
    /// Any finite number, stored as `f32`.
    #[default]
    Number,
    /// 0 or 1, stored as `f32`.
    Binary,
    /// The name of a class, or a number that is one. Stored is the class's number as `u32`, counted from 0: classes are sorted, by value
    /// if all are whole numbers, else by the bytes of their names. [`Table::classes`](crate::Table::classes) has the names. For one label column.
    Classes,
    /// The same for classes that are given, in their order; any other label is an error.
    Given(Vec<Class>),
    /// No column is a label, as in rows to predict: [`ColumnOptions::labels`] is ignored, and the table's labels are 0.
    Absent,
}

/// A class that labels may name.
///
/// # Examples
/// ```
/// use brisk_table::{Class, LabelKind};
///
/// // One file ends its labels in a full stop, the other does not.
/// let income = |name: &str| Class { also: vec![format!("{name}.")], ..Class::from(name) };
/// let labels = LabelKind::Given(vec![income("<=50K"), income(">50K")]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Other spellings that mean it.
    pub also: Vec<String>,
}

impl From<&str> for Class {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), also: Vec::new() }
    }
}

/// Which columns are categories. Their values are text without blanks around it; numbers too are told apart by their spelling.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Categorical {
    /// None: text is an error.
    #[default]
    No,
    /// These.
    Columns(Vec<ColumnRef>),
    /// Those with text in the first rows: as many as a megabyte holds.
    Auto,
}

/// What becomes of features that are missing: cells that are empty, or `NaN`, `NA`, `N/A`, `null`, `None` or `?` in any case, and what
/// [`ColumnOptions::missing_values`] adds.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Missing {
    /// They are errors, and so are infinities.
    #[default]
    Error,
    /// They become NaN, and infinities stay.
    Keep,
    /// They become this value; infinities are errors.
    Value(f32),
    /// They become the mean of the values that their column has; infinities are errors. [`Table::imputed`](crate::Table::imputed) has the means.
    Mean,
}

/// Features beside which another says whether they were missing: 1 if so, else 0. These stand behind all others, and are called
/// `NAME_missing`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Indicators {
    /// None.
    #[default]
    No,
    /// These.
    Columns(Vec<ColumnRef>),
    /// All.
    All,
}

/// What features are stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FeatureDType {
    /// 32 bits, the nearest to what stands in the source.
    #[default]
    F32,
    /// 16 bits, rounded once more; a number beyond 65,504 is an error.
    #[cfg(feature = "half")]
    F16,
    /// Whole numbers from 0 to 255; anything else is an error.
    U8,
}

impl FeatureDType {
    pub(crate) fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            #[cfg(feature = "half")]
            Self::F16 => DType::F16,
            Self::U8 => DType::U8,
        }
    }

    pub(crate) fn from_dtype(dtype: DType) -> Option<Self> {
        match dtype {
            DType::F32 => Some(Self::F32),
            #[cfg(feature = "half")]
            DType::F16 => Some(Self::F16),
            DType::U8 => Some(Self::U8),
            _ => None,
        }
    }
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
