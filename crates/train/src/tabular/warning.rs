use std::fmt;

use brisk_table::printable;

/// Something about a column that is probably not as it was meant, or a decision of [`TabularModel::detect`](super::TabularModel::detect) about it that can be
/// changed with [`DetectOptions`](super::DetectOptions): [`remedy`](Self::remedy) says how.
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
    /// A column alone predicts the target: see [`brisk_table::predicts_label`].
    PredictsTarget {
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
            | Self::OtherDates { column, .. }
            | Self::Index { column }
            | Self::Sequence { column }
            | Self::PredictsTarget { column }
            | Self::Similar { column, .. }
            | Self::Codes { column }
            | Self::Rounded { column, .. } => column,
        }
    }

    /// The option that changes it.
    pub fn remedy(&self) -> TabularRemedy {
        match self {
            Self::Index { .. } => TabularRemedy::KeepIndex,
            Self::Sequence { .. } | Self::PredictsTarget { .. } => TabularRemedy::Drop,
            Self::Similar { .. } => TabularRemedy::Correct,
            _ => TabularRemedy::Categorical,
        }
    }
}

/// What can be done about a [`TabularWarning`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TabularRemedy {
    /// Name the column in [`DetectOptions::categorical`](super::DetectOptions::categorical): its values become categories.
    Categorical,
    /// Name it in [`DetectOptions::drop`](super::DetectOptions::drop).
    Drop,
    /// Set [`DetectOptions::keep_index`](super::DetectOptions::keep_index).
    KeepIndex,
    /// Correct the cells in the file.
    Correct,
}

impl fmt::Display for TabularWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column `{}` ", printable(self.column()))?;
        match self {
            Self::Identifier { n_distinct, n_values, .. } => {
                write!(f, "is left out: it has {n_distinct} different texts in {n_values} rows, as an identifier has")
            }
            Self::OtherDates { example, .. } => {
                write!(f, "is left out: {:?} is not a date of ISO 8601, such as 2024-01-31", printable(example))
            }
            Self::Index { .. } => f.write_str("is left out: it is the index of a data frame"),
            Self::Sequence { .. } => f.write_str("counts the rows, as an index does"),
            Self::PredictsTarget { .. } => f.write_str("alone predicts the target; is it known before the target is?"),
            Self::Similar { texts: [a, b], .. } => {
                write!(f, "has both {:?} and {:?}, which are different values", printable(a), printable(b))
            }
            Self::Codes { .. } => f.write_str("has numbers with leading zeros, which are read as categories"),
            Self::Rounded { largest, .. } => {
                write!(f, "has whole numbers up to {largest}, which are rounded to 24 bits; some become equal")
            }
        }
    }
}
