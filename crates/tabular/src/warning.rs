use std::fmt;

use brisk_table::printable;

use crate::reading::shortest;

/// Something about a column that is probably not as it was meant, or a decision of
/// [`TabularModel::detect`](crate::TabularModel::detect) about it that can be changed with
/// [`DetectOptions`](crate::DetectOptions): [`remedy`](Self::remedy) says how.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TabularWarning {
    /// Text whose values are nearly all different was left out.
    Identifier {
        /// The column.
        column: String,
        /// About how many different values it has.
        n_distinct: u64,
        /// How many values it has.
        n_values: u64,
    },
    /// A column without a value in any row was left out.
    Empty {
        /// The column.
        column: String,
    },
    /// Dates that are not those of ISO 8601 were left out.
    OtherDates {
        /// The column.
        column: String,
        /// One of them.
        example: String,
    },
    /// The index of a data frame was left out.
    Index {
        /// The column.
        column: String,
    },
    /// A column counts the rows, as an index does.
    Sequence {
        /// The column.
        column: String,
    },
    /// All rows have the same value, which says nothing about the target.
    Constant {
        /// The column.
        column: String,
    },
    /// A column alone predicts the target: see [`brisk_table::predicts_label`].
    PredictsTarget {
        /// The column.
        column: String,
    },
    /// A column alone decides the predictions of the trained model: [`Importance::decisive`](crate::Importance::decisive).
    DecidesTarget {
        /// The column.
        column: String,
    },
    /// Two values or classes that differ only in case, blanks or a final full stop.
    Similar {
        /// The column.
        column: String,
        /// The two texts.
        texts: [String; 2],
    },
    /// Numbers of which some have leading zeros are categories.
    Codes {
        /// The column.
        column: String,
    },
    /// Numbers that differ less than `f32` can tell.
    Imprecise {
        /// The column.
        column: String,
        /// One of the numbers.
        example: f64,
        /// What it became.
        stored: f64,
    },
    /// Numbers that are too small for `f32`: they lose digits, or become 0.
    Tiny {
        /// The column.
        column: String,
        /// One of the numbers.
        example: f64,
    },
    /// A number that is so far from all others that they become nearly equal when the column is standardised, or that is probably
    /// a word for a missing value, such as -9999.
    Outlier {
        /// The column.
        column: String,
        /// The number, as the first cell has it.
        value: String,
        /// How many rows have it.
        n_rows: u64,
        /// The first line that has it, from 1, or the first row, from 0.
        first: u64,
        /// What `first` counts: `line` or `row`.
        counted: &'static str,
        /// The smallest and the largest of the other numbers.
        others: [f64; 2],
    },
    /// The target has no value in some rows, which were left out.
    Unlabelled {
        /// The target.
        column: String,
        /// How many rows have no value.
        n_rows: u64,
        /// How many rows there are.
        n_all: u64,
    },
    /// A class of the target that hardly any row has.
    RareClass {
        /// The target.
        column: String,
        /// The class.
        class: String,
        /// How many rows have it.
        n_rows: u64,
        /// How many rows there are.
        n_all: u64,
    },
    /// A value that has whole rows in it, as the text between two stray quotes has.
    RowsInCell {
        /// The column.
        column: String,
        /// How many lines the value has.
        n_lines: usize,
    },
    /// The first row was read as numbers although it looks like the names of columns.
    NumbersAsNames {
        /// The name of the first column, which is not in the file.
        column: String,
        /// The line.
        line: u64,
        /// Its cells.
        cells: String,
    },
    /// The first row was read as the names of columns, but each of them is also a value of its column.
    ValuesAsNames {
        /// The first of them.
        column: String,
        /// All of them.
        cells: String,
    },
    /// Numbers whose decimal mark may be a separator between thousands: [`brisk_table::ColumnSurvey::thousands`].
    Thousands {
        /// The column.
        column: String,
        /// One of them.
        example: String,
    },
    /// Whole numbers that `f32` cannot tell apart are numbers all the same.
    Rounded {
        /// The column.
        column: String,
        /// The largest distance from 0.
        largest: f64,
    },
}

impl TabularWarning {
    /// The column.
    pub fn column(&self) -> &str {
        match self {
            Self::Identifier { column, .. }
            | Self::Empty { column }
            | Self::OtherDates { column, .. }
            | Self::Index { column }
            | Self::Sequence { column }
            | Self::Constant { column }
            | Self::PredictsTarget { column }
            | Self::DecidesTarget { column }
            | Self::Similar { column, .. }
            | Self::Codes { column }
            | Self::Imprecise { column, .. }
            | Self::Tiny { column, .. }
            | Self::Outlier { column, .. }
            | Self::Unlabelled { column, .. }
            | Self::RareClass { column, .. }
            | Self::RowsInCell { column, .. }
            | Self::NumbersAsNames { column, .. }
            | Self::ValuesAsNames { column, .. }
            | Self::Thousands { column, .. }
            | Self::Rounded { column, .. } => column,
        }
    }

    /// The option that changes it.
    pub fn remedy(&self) -> TabularRemedy {
        match self {
            Self::Index { .. } => TabularRemedy::KeepIndex,
            Self::Sequence { .. } | Self::Constant { .. } | Self::PredictsTarget { .. } | Self::DecidesTarget { .. } => {
                TabularRemedy::Drop
            }
            Self::Similar { .. }
            | Self::RowsInCell { .. }
            | Self::Unlabelled { .. }
            | Self::RareClass { .. }
            | Self::Thousands { .. }
            | Self::Empty { .. } => TabularRemedy::Correct,
            Self::Imprecise { .. } | Self::Tiny { .. } => TabularRemedy::Scale,
            Self::Outlier { .. } => TabularRemedy::MissingValue,
            Self::NumbersAsNames { .. } | Self::ValuesAsNames { .. } => TabularRemedy::Header,
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
    /// Set [`DetectOptions::keep_index`](crate::DetectOptions::keep_index).
    KeepIndex,
    /// Correct the cells in the file.
    Correct,
    /// Subtract a number from the column in the file, or multiply it.
    Scale,
    /// Name the number in [`TextOptions::missing_values`](crate::TextOptions::missing_values), if it means that a value is
    /// missing.
    MissingValue,
    /// Set [`TextOptions::header`](crate::TextOptions::header).
    Header,
}

impl fmt::Display for TabularWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::NumbersAsNames { line, cells, .. } = self {
            let cells = printable(cells);
            return write!(f, "line {line} was read as a row, but its numbers look like names of columns: {cells}");
        }
        if let Self::ValuesAsNames { cells, .. } = self {
            let cells = printable(cells);
            return write!(f, "the first row was read as names of columns, but each is a value of its column as well: {cells}");
        }
        write!(f, "column `{}` ", printable(self.column()))?;
        match self {
            Self::NumbersAsNames { .. } | Self::ValuesAsNames { .. } => Ok(()),
            Self::Imprecise { example, stored, .. } => {
                write!(f, "has numbers that differ less than f32 can tell: {example} became {stored}")
            }
            Self::Tiny { example, .. } => {
                write!(f, "has numbers that are too small for f32, such as {example:e}")
            }
            Self::Unlabelled { n_rows, n_all, .. } => {
                write!(f, "has no value in {n_rows} of {n_all} rows, which are left out")
            }
            Self::Outlier { value, n_rows, first, counted, others: [min, max], .. } => {
                let rows = if *n_rows == 1 { "row" } else { "rows" };
                let (value, [min, max]) = (printable(value), [min, max].map(|other| shortest(*other)));
                write!(f, "has {value} in {n_rows} {rows}, first in {counted} {first}, far from all others, {min} to {max}")
            }
            Self::RowsInCell { n_lines, .. } => {
                write!(f, "has a value of {n_lines} lines that look like rows, as between two stray quotes")
            }
            Self::RareClass { class, n_rows, n_all, .. } => {
                write!(f, "has the class {:?} in {n_rows} of {n_all} rows", printable(class))
            }
            Self::Identifier { n_distinct, n_values, .. } => {
                write!(f, "is left out: it has {n_distinct} different texts in {n_values} rows, as an identifier has")
            }
            Self::OtherDates { example, .. } => {
                write!(f, "is left out: {:?} is not a date of ISO 8601, such as 2024-01-31", printable(example))
            }
            Self::Empty { .. } => f.write_str("is left out: it has no value in any row"),
            Self::Index { .. } => f.write_str("is left out: it is the index of a data frame"),
            Self::Sequence { .. } => f.write_str("counts the rows, as an index does"),
            Self::Constant { .. } => f.write_str("has the same value in all rows"),
            Self::PredictsTarget { .. } => f.write_str("alone predicts the target; is it known before the target is?"),
            Self::DecidesTarget { .. } => {
                f.write_str("alone decides the predictions, which are nearly without errors; is it known before the target is?")
            }
            Self::Similar { texts: [a, b], .. } => {
                write!(f, "has both {:?} and {:?}, which are different values", printable(a), printable(b))
            }
            Self::Codes { .. } => f.write_str("has numbers with leading zeros, which are read as categories"),
            Self::Thousands { example, .. } => {
                write!(
                    f,
                    "has {example} beside whole numbers below 1000, as if its mark were between thousands; it was read as decimal"
                )
            }
            Self::Rounded { largest, .. } => {
                write!(f, "has whole numbers up to {largest}, which are rounded to 24 bits; some become equal")
            }
        }
    }
}
