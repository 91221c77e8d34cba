use std::fmt;
use std::path::PathBuf;

use crate::dtype::DType;

/// The roles of the columns of a source, and how invalid cells are treated. By default, the first column is the label, the others
/// are features, and anything that is not a number is an error.
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
    /// Which columns are labels, in the order of the table; the first column by default. Several labels are numbers, or 0 and 1:
    /// the targets of a regression, or the labels of a multi-label classification.
    pub labels: Vec<ColumnRef>,
    /// What values labels may have.
    pub label_kind: LabelKind,
    /// Which columns are features; by default all that have no other role. If they are named, columns without a role are dropped.
    pub features: Option<Vec<ColumnRef>>,
    /// The column with the weights of the rows, if there is one.
    pub weight: Option<ColumnRef>,
    /// Columns to drop. Their cells may contain anything.
    pub drop: Vec<ColumnRef>,
    /// Which columns are categories: text, or numbers that are only names.
    pub categorical: Categorical,
    /// How missing features are treated. (A missing category has code 0.)
    pub missing: Missing,
    /// Cells that count as missing, besides empty ones and the words that [`Missing`] lists: words, or numbers such as `-999.0`.
    pub missing_values: Vec<String>,
    /// Features that have an indicator, which says whether they were missing.
    pub indicators: Indicators,
    /// The type in which features are stored.
    pub dtype: FeatureDType,
    /// Numbers to subtract from features, or from labels that are numbers, before they are rounded to `f32`, for columns of large
    /// numbers that differ in their last digits, such as time stamps: see [`Digits`](crate::Digits). Filled-in values, means and
    /// statistics are those after the subtraction.
    pub offsets: Vec<(ColumnRef, f64)>,
    /// Whether the index of a data frame is kept as a column: the columns that pandas' metadata in Arrow and Parquet files name
    /// as the index, and the columns without a name at the start of a text file's header, as `DataFrame.to_csv` writes them. By
    /// default they are left out, unless another option names them, and
    /// [`ImportReport::index_columns`](crate::ImportReport::index_columns) has their names.
    pub keep_index: bool,
    /// How rows that cannot be read are treated.
    pub bad_rows: BadRows,
    /// A table to match, so that a test set can be imported like its training set: with the same columns, found by their names,
    /// in the same order; the same dictionaries, so values that are not in them are unknown, which is a
    /// [warning](crate::ImportWarning::Unseen); the same classes; and the same values in place of missing ones.
    ///
    /// The table replaces some of the other options: `labels`, `label_kind`, `features`, `categorical`, `indicators` and `dtype`
    /// are taken from it, and `missing` too if it filled in values. Columns that it does not have are dropped.
    ///
    /// It records `missing_values`, `offsets` and `weight`, which are taken from it unless they are given. A different `offsets`
    /// or `weight`, or `missing_values` without those of the table, is an error. So is a weight if the table has none. A table
    /// with weights that does not record their column requires `weight`. Rows to predict, with [`LabelKind::Absent`], need no
    /// weights.
    pub like: Option<PathBuf>,
}

impl Default for ColumnOptions {
    /// The first column is the label.
    fn default() -> Self {
        Self {
            labels: vec![ColumnRef::default()],
            label_kind: LabelKind::default(),
            features: None,
            weight: None,
            drop: Vec::new(),
            categorical: Categorical::default(),
            missing: Missing::default(),
            missing_values: Vec::new(),
            indicators: Indicators::default(),
            dtype: FeatureDType::default(),
            offsets: Vec::new(),
            keep_index: false,
            bad_rows: BadRows::default(),
            like: None,
        }
    }
}

/// A column of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnRef {
    /// The last column, except for the index of a data frame.
    Last,
    /// By its index, counted from 0.
    Index(usize),
    /// By its name.
    Name(String),
    /// As a user writes it: by its name or, if no column has that name, by its index. `name:3` is only a name and `index:3` only
    /// an index. A word that is the name of one column and the index of another is
    /// [`SourceError::AmbiguousColumn`](crate::SourceError::AmbiguousColumn).
    Word(String),
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
            Self::Name(name) | Self::Word(name) => write!(f, "`{name}`"),
        }
    }
}

/// What values labels may have. A missing label is an error, unless no column is a label.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum LabelKind {
    /// Any finite number, stored as `f32`.
    #[default]
    Number,
    /// 0 or 1, stored as `f32`.
    Binary,
    /// The name of a class, or a number that stands for one. Labels are stored as class numbers, as `u32` counted from 0. Classes
    /// are sorted by value if all are whole numbers, else by the bytes of their names. [`Table::classes`](crate::Table::classes)
    /// has the names. Only for one label column.
    Classes,
    /// Like [`Classes`](Self::Classes), for given classes in the given order; any other label is an error.
    Given(Vec<Class>),
    /// No column is a label, as in rows to predict: [`ColumnOptions::labels`] is ignored, and the table's labels are 0.
    Absent,
}

/// A class of labels.
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
    /// Alternative spellings of the name.
    pub also: Vec<String>,
}

impl From<&str> for Class {
    fn from(name: &str) -> Self {
        Self { name: name.to_owned(), also: Vec::new() }
    }
}

/// Which columns are categories. Their values are text without surrounding blanks; numbers that are spelled differently are
/// different values.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Categorical {
    /// None: text is an error.
    #[default]
    No,
    /// These.
    Columns(Vec<ColumnRef>),
    /// All columns with text, or with whole numbers that have leading zeros as codes do, in the first rows: as many rows as a
    /// megabyte holds. In files whose columns have types, those of text and of booleans.
    Auto,
}

/// How missing features are treated: cells that are empty, or in any case one of `NaN`, `NA`, `N/A`, `null`, `None`, `NaT`,
/// `<NA>`, `?`, `-`, `--`, `.`, `\N`, `#N/A`, `#DIV/0!`, `#VALUE!` and the other error values of spreadsheets, and the cells that
/// [`ColumnOptions::missing_values`] lists. In a column of text, `None` is a value like any other.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Missing {
    /// They are errors, and so are infinities.
    #[default]
    Error,
    /// They become NaN, and infinities stay.
    Keep,
    /// They become this value; infinities are errors.
    Value(f32),
    /// They become the mean of the values that are present in their column; infinities are errors.
    /// [`Table::imputed`](crate::Table::imputed) has the means.
    Mean,
}

/// Features that have an indicator: another feature that is 1 if they were missing, else 0. Indicators come after all other
/// features and are named `NAME_missing`.
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

/// The type in which features are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FeatureDType {
    /// 32 bits, the nearest to the number in the source.
    #[default]
    F32,
    /// 16 bits, rounded from `f32`; a number beyond 65,504 is an error.
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

/// How rows that cannot be read are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BadRows {
    /// The first of them is an error, and no table is written.
    #[default]
    Error,
    /// They are skipped and counted, and the first few are reported.
    Skip,
    /// Those without a label are skipped and counted, and the first few are reported; the first other one is an error.
    SkipUnlabelled,
}

impl BadRows {
    /// Whether a bad row is skipped, which lacks only its label or not.
    pub(crate) fn skips(self, is_unlabelled: bool) -> bool {
        match self {
            Self::Error => false,
            Self::Skip => true,
            Self::SkipUnlabelled => is_unlabelled,
        }
    }
}
