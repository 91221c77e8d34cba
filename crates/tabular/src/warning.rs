use std::fmt;

use brisk_atomic_file::listed;
use brisk_table::{ImportWarning, Remedy, printable};

use crate::date_order::DateOrder;
use crate::reading::shortest;

/// Something about a column that is probably not as it was meant, or a decision of
/// [`TabularModel::detect`](crate::TabularModel::detect) about it that can be changed with
/// [`DetectOptions`](crate::DetectOptions): [`remedy`](Self::remedy) says how.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum TabularWarning {
    /// What the import of the file found; its label is the target.
    Import(ImportWarning),
    /// Text whose values are nearly all different was left out. `n_distinct` is estimated.
    Identifier { column: String, n_distinct: u64, n_values: u64 },
    /// A column without a value in any row was left out.
    Empty { column: String },
    /// All training rows have the same value in a column, or none, and it was left out:
    /// [`Preprocessing::left_out`](crate::Preprocessing::left_out).
    SameInTraining { column: String },
    /// Dates in a form that is not read, or in several formats, such as `example`, were left out.
    OtherDates { column: String, example: String },
    /// Dates such as `example`, of which no cell says whether the day or the month is first, were read in this order.
    DateOrder { column: String, example: String, order: DateOrder },
    /// Dates whose years have two digits, such as `example`, which was read as `read`, were read as those of 1969 to 2068.
    ShortYears { column: String, example: String, read: String },
    /// The index of a data frame was left out.
    Index { column: String },
    /// A single column decides the predictions of the trained model: [`Importance::decisive`](crate::Importance::decisive).
    DecidesTarget { column: String },
    /// Numbers of which some have leading zeros are categories.
    Codes { column: String },
    /// A number that is so far from all others that they become nearly equal when the column is standardised, or that is probably
    /// a word for a missing value, such as -9999. `value` is as the first cell has it; `first` is its line, from 1, or its row,
    /// from 0, as `counted` says: `line` or `row`. `others` are the smallest and the largest of the other numbers.
    Outlier { column: String, value: String, n_rows: u64, first: u64, counted: &'static str, others: [f64; 2] },
    /// A date that is probably a word for a missing value, such as 9999-12-31: it is far before or after all others, or is before
    /// or after them and in more rows than any other. `others` are the first and the last of the other dates.
    PlaceholderDate { column: String, value: String, n_rows: u64, others: [String; 2] },
    /// The target has no value in `n_rows` of `n_all` rows, which were left out.
    Unlabelled { column: String, n_rows: u64, n_all: u64 },
    /// Test rows, `n_rows` of `n_test`, that are equal in all features to training rows:
    /// [`Detected::equal_rows`](crate::Detected::equal_rows).
    EqualRows { n_rows: usize, n_test: usize },
    /// A class of the target, of `n_rows` rows, without training rows:
    /// [`Detected::untrained_classes`](crate::Detected::untrained_classes).
    UntrainedClass { column: String, class: String, n_rows: u64 },
    /// A class of the target that hardly any row has: `n_rows` of `n_all`.
    RareClass { column: String, class: String, n_rows: u64, n_all: u64 },
    /// Numbers, such as `example`, whose decimal mark may be a separator between thousands:
    /// [`brisk_table::ColumnSurvey::thousands`].
    Thousands { column: String, example: String },
    /// Numbers with units, such as `example`, are text: [`brisk_table::ColumnSurvey::with_units`].
    Units { column: String, example: String },
    /// The last row has the sums of all others in these columns.
    Totals { columns: Vec<String> },
    /// Whole numbers that are too large for all their digits are numbers all the same. `largest` is the largest distance from 0.
    Rounded { column: String, largest: f64 },
}

impl TabularWarning {
    /// The column; `None` for what is about the first row, or about whole rows.
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::Import(warning) => warning.columns().first().map(String::as_str),
            Self::EqualRows { .. } | Self::Totals { .. } => None,
            Self::Identifier { column, .. }
            | Self::Empty { column }
            | Self::SameInTraining { column }
            | Self::OtherDates { column, .. }
            | Self::DateOrder { column, .. }
            | Self::ShortYears { column, .. }
            | Self::Index { column }
            | Self::DecidesTarget { column }
            | Self::Codes { column }
            | Self::Outlier { column, .. }
            | Self::PlaceholderDate { column, .. }
            | Self::Unlabelled { column, .. }
            | Self::RareClass { column, .. }
            | Self::UntrainedClass { column, .. }
            | Self::Thousands { column, .. }
            | Self::Units { column, .. }
            | Self::Rounded { column, .. } => Some(column),
        }
    }

    /// The option that changes it.
    pub fn remedy(&self) -> TabularRemedy {
        match self {
            Self::Import(warning) => match warning.remedies() {
                [Remedy::DropColumn, ..] => TabularRemedy::Drop,
                [Remedy::SubtractOffset | Remedy::ScaleColumn, ..] => TabularRemedy::Scale,
                [Remedy::HeaderPresent, ..] => TabularRemedy::Header,
                [Remedy::MakeCategorical, ..] => TabularRemedy::Categorical,
                _ => TabularRemedy::Correct,
            },
            Self::EqualRows { .. } => TabularRemedy::GroupEqual,
            Self::Index { .. } => TabularRemedy::KeepIndex,
            Self::DateOrder { .. } => TabularRemedy::DateOrder,
            Self::DecidesTarget { .. } => TabularRemedy::Drop,
            Self::Units { .. }
            | Self::SameInTraining { .. }
            | Self::UntrainedClass { .. }
            | Self::Unlabelled { .. }
            | Self::RareClass { .. }
            | Self::Thousands { .. }
            | Self::ShortYears { .. }
            | Self::Totals { .. }
            | Self::Empty { .. } => TabularRemedy::Correct,
            Self::Outlier { .. } | Self::PlaceholderDate { .. } => TabularRemedy::MissingValue,
            _ => TabularRemedy::Categorical,
        }
    }
}

/// What can be done about a [`TabularWarning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TabularRemedy {
    /// Name the column in [`DetectOptions::categorical`](crate::DetectOptions::categorical): its values become categories.
    Categorical,
    /// Name it in [`DetectOptions::drop`](crate::DetectOptions::drop).
    Drop,
    /// Set [`DetectOptions::date_order`](crate::DetectOptions::date_order).
    DateOrder,
    /// Set [`DetectOptions::keep_index`](crate::DetectOptions::keep_index).
    KeepIndex,
    /// Set [`DetectOptions::group_equal`](crate::DetectOptions::group_equal), or leave copies of rows out of the file.
    GroupEqual,
    /// Correct the cells in the file.
    Correct,
    /// Subtract a number from the column in the file, or multiply it.
    Scale,
    /// Name the number or date in [`TextOptions::missing_values`](crate::TextOptions::missing_values), if it means that a value
    /// is missing.
    MissingValue,
    /// Set [`TextOptions::header`](crate::TextOptions::header).
    Header,
}

impl fmt::Display for TabularWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Import(warning) = self {
            return f.write_str(&warning.problem());
        }
        if let Self::EqualRows { n_rows, n_test } = self {
            return write!(
                f,
                "{n_rows} of {n_test} test rows have the same values in all columns as training rows, so that their scores are not those of new rows"
            );
        }
        if let Self::Totals { columns } = self {
            return write!(
                f,
                "the last row has the sums of all others in the columns {}, as a line of totals has",
                listed(columns)
            );
        }
        write!(f, "column `{}` ", printable(self.column().unwrap_or_default()))?;
        match self {
            Self::Import(_) | Self::EqualRows { .. } | Self::Totals { .. } => Ok(()),
            Self::Unlabelled { n_rows, n_all, .. } => {
                write!(f, "has no value in {n_rows} of {n_all} rows, which are left out")
            }
            Self::Outlier { value, n_rows, first, counted, others: [min, max], .. } => {
                let rows = if *n_rows == 1 { "row" } else { "rows" };
                let (value, [min, max]) = (printable(value), [min, max].map(|other| shortest(*other)));
                write!(f, "has {value} in {n_rows} {rows}, first in {counted} {first}, far from all others, {min} to {max}")
            }
            Self::PlaceholderDate { value, n_rows, others, .. } => {
                let rows = if *n_rows == 1 { "row" } else { "rows" };
                let [value, first, last] = [value, &others[0], &others[1]].map(|date| printable(date));
                write!(f, "has {value} in {n_rows} {rows}, before or after all other dates, {first} to {last}")
            }
            Self::RareClass { class, n_rows, n_all, .. } => {
                write!(f, "has the class {:?} in {n_rows} of {n_all} rows", printable(class))
            }
            Self::UntrainedClass { class, n_rows, .. } => {
                let rows = if *n_rows == 1 { "row, which is no training row" } else { "rows, none of which is a training row" };
                write!(f, "has the class {:?} in {n_rows} {rows}, so that it is never predicted", printable(class))
            }
            Self::Identifier { n_distinct, n_values, .. } => {
                write!(f, "is left out: it has {n_distinct} different texts in {n_values} rows, as an identifier has")
            }
            Self::OtherDates { example, .. } => {
                write!(
                    f,
                    "is left out: {:?} is a date in another form than others, or in one that is not read",
                    printable(example)
                )
            }
            Self::DateOrder { example, order, .. } => {
                let first = if *order == DateOrder::DayFirst { "day" } else { "month" };
                let example = printable(example);
                write!(
                    f,
                    "has dates such as {example:?}, of which no cell says whether day or month is first; the {first} is taken to be"
                )
            }
            Self::ShortYears { example, read, .. } => {
                let example = printable(example);
                write!(f, "has years of two digits, which are read as 1969 to 2068: {example:?} is {read}")
            }
            Self::Empty { .. } => f.write_str("is left out: it has no value in any row"),
            Self::SameInTraining { .. } => f.write_str("is left out: all training rows have the same value there, or none"),
            Self::Index { .. } => f.write_str("is left out: it is the index of a data frame"),
            Self::DecidesTarget { .. } => f.write_str(
                "decides the predictions by itself, which are nearly without errors; is it known before the target is?",
            ),
            Self::Codes { .. } => f.write_str("has numbers with leading zeros, which are read as categories"),
            Self::Thousands { example, .. } => {
                write!(
                    f,
                    "has {example} beside whole numbers below 1000, as if its mark were between thousands; it was read as decimal"
                )
            }
            Self::Units { example, .. } => {
                write!(f, "has numbers with units, such as {:?}, which are read as text, not as numbers", printable(example))
            }
            Self::Rounded { largest, .. } => {
                let largest = shortest(*largest);
                write!(f, "has whole numbers up to {largest}, which are rounded, so that some become equal")
            }
        }
    }
}
