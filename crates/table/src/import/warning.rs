use std::fmt;

use crate::remedy::Choice;
use crate::{Remedy, printable};

/// Something in a source that was imported as asked, but is probably not what was meant.
///
/// [`Display`](fmt::Display) names what to do in terms of this crate; a program with its own options prints [`problem`](Self::problem), and names its options for
/// the [`remedies`](Self::remedies).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ImportWarning {
    /// A feature that counts the rows, as an index or an identifier does.
    Sequence {
        /// The column.
        column: String,
        /// Its value in the first row.
        first: f64,
    },
    /// A category with another value in each row.
    AllDifferent {
        /// The column.
        column: String,
    },
    /// A column from which alone the label can be predicted; see [`predicts_label`](crate::predicts_label).
    PredictsLabel {
        /// The column.
        column: String,
    },
    /// Numbers that lost digits when they were rounded to `f32`.
    Rounded {
        /// The column.
        column: String,
        /// How many of its values.
        n_values: u64,
        /// The first of them, as in the source.
        first: f64,
        /// The value stored in its place.
        stored: f64,
    },
    /// Labels that lost digits when they were rounded to `f32`.
    RoundedLabel {
        /// The column.
        column: String,
        /// How many of its values.
        n_values: u64,
        /// The first of them, as in the source.
        first: f64,
        /// The value stored in its place.
        stored: f64,
    },
    /// Numbers written with leading zeros, which become equal to others without them.
    LeadingZeros {
        /// The column.
        column: String,
        /// How many of its values.
        n_values: u64,
    },
    /// Two values of a category, or two classes, that differ only in case, blanks or a final full stop.
    Similar {
        /// The column.
        column: String,
        /// The two texts.
        texts: [String; 2],
    },
    /// Whole numbers that lost digits when they were rounded to `f16`.
    #[cfg(feature = "half")]
    RoundedToHalf {
        /// The column.
        column: String,
        /// How many of its values.
        n_values: u64,
        /// The first of them.
        first: f32,
        /// The value stored in its place.
        stored: f32,
    },
    /// Numbers of an array that lost digits when they were rounded to `f32`.
    RoundedArray {
        /// The file or the member of an archive.
        array: String,
        /// How many of its numbers.
        n_values: u64,
        /// The first of them, rounded only to `f64`.
        first: f64,
        /// The value stored in its place.
        stored: f64,
    },
    /// Two folders of classes that differ only in case, blanks or a final full stop.
    #[cfg(feature = "images")]
    SimilarClasses {
        /// The two folders.
        classes: [String; 2],
    },
    /// A class without an image.
    #[cfg(feature = "images")]
    EmptyClass {
        /// Its folder.
        class: String,
    },
}

const COUNTS_ROWS: &[Remedy] = &[Remedy::DropColumn];
const LOSES_DIGITS: &[Remedy] = &[Remedy::MakeCategorical, Remedy::SubtractOffset, Remedy::DropColumn];
const LABEL_LOSES_DIGITS: &[Remedy] = &[Remedy::LabelsAsClasses];
const CORRECT: &[Remedy] = &[Remedy::Correct];
#[cfg(feature = "half")]
const STORE_AS_F32: &[Remedy] = &[Remedy::StoreAsF32];
const IS_CODE: &[Remedy] = &[Remedy::MakeCategorical];

impl ImportWarning {
    /// What the caller can do, as the end of the message says in terms of this crate.
    pub fn remedies(&self) -> &'static [Remedy] {
        match self {
            Self::Sequence { .. } | Self::AllDifferent { .. } | Self::PredictsLabel { .. } => COUNTS_ROWS,
            Self::Rounded { .. } => LOSES_DIGITS,
            Self::RoundedLabel { .. } => LABEL_LOSES_DIGITS,
            Self::LeadingZeros { .. } => IS_CODE,
            Self::Similar { .. } => CORRECT,
            #[cfg(feature = "half")]
            Self::RoundedToHalf { .. } => STORE_AS_F32,
            Self::RoundedArray { .. } => &[],
            #[cfg(feature = "images")]
            Self::SimilarClasses { .. } | Self::EmptyClass { .. } => &[],
        }
    }

    /// The message without its [`remedies`](Self::remedies).
    pub fn problem(&self) -> String {
        match self {
            Self::Sequence { column, first } => {
                format!("column `{}` counts the rows from {first}, as an index does", printable(column))
            }
            Self::AllDifferent { column } => {
                format!("column `{}` has a different value in each row, as an identifier does", printable(column))
            }
            Self::PredictsLabel { column } => {
                format!("column `{}` alone predicts the label; is it known before the label is?", printable(column))
            }
            Self::Rounded { column, n_values, first, stored } => {
                let column = printable(column);
                format!("column `{column}`: f32 has too few digits for {n_values} of its numbers, {first} became {stored}")
            }
            Self::RoundedLabel { column, n_values, first, stored } => {
                let column = printable(column);
                format!("label `{column}`: f32 has too few digits for {n_values} of its numbers, {first} became {stored}")
            }
            Self::LeadingZeros { column, n_values } => {
                let column = printable(column);
                format!("column `{column}`: {n_values} of its numbers have leading zeros, as codes do, and lost them")
            }
            Self::Similar { column, texts: [a, b] } => {
                let (column, a, b) = (printable(column), printable(a), printable(b));
                format!("column `{column}` has both {a:?} and {b:?}, which are different values")
            }
            #[cfg(feature = "half")]
            Self::RoundedToHalf { column, n_values, first, stored } => {
                let column = printable(column);
                format!("column `{column}`: f16 has too few digits for {n_values} of its whole numbers, {first} became {stored}")
            }
            Self::RoundedArray { array, n_values, first, stored } => {
                let array = printable(array);
                format!(
                    "`{array}`: f32 has too few digits for {n_values} of its numbers, {first} became {stored}; subtract an offset before saving it"
                )
            }
            #[cfg(feature = "images")]
            Self::SimilarClasses { classes: [a, b] } => {
                let (a, b) = (printable(a), printable(b));
                format!("the folders `{a}` and `{b}` are different classes; if they are one, move the images into one of them")
            }
            #[cfg(feature = "images")]
            Self::EmptyClass { class } => format!("the folder of class `{}` has no image", printable(class)),
        }
    }
}

impl fmt::Display for ImportWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.problem(), Choice(self.remedies()))
    }
}
