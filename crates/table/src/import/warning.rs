use std::fmt;

use brisk_atomic_file::{listed, printable};

use crate::dtype::DType;
use crate::remedy::{Choice, Remedy};

/// Something in a source that was imported as asked, but is probably not what was meant.
///
/// [`Display`](fmt::Display) names what to do in terms of this crate; a program with its own options prints
/// [`problem`](Self::problem), and names its options for the [`remedies`](Self::remedies).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum ImportWarning {
    /// A feature that counts the rows from `first`, as an index or an identifier does.
    Sequence { column: String, first: f64 },
    /// Features that have the same value in all rows that have one.
    SameValue { columns: Vec<String> },
    /// Features that have no value in any row.
    NoValue { columns: Vec<String> },
    /// Weights that are 0 in all rows.
    ZeroWeights { column: String },
    /// A category with another value in each row.
    AllDifferent { column: String },
    /// A column that predicts the label without any other; see [`predicts_label`](crate::predicts_label).
    PredictsLabel { column: String },
    /// Features or labels of which `n_values` lost digits when they were rounded to `f32`: `first`, as in the source, became
    /// `stored`.
    Rounded { column: String, role: ColumnRole, n_values: u64, first: String, stored: f64 },
    /// Numbers whose errors of rounding are a relevant share of their standard deviation: more than a thousandth for `f32`, a
    /// hundredth for `f16`. `first`, as in the source, is stored as `stored`; `error` is the root of the mean square of the
    /// errors, `std` the standard deviation of the stored values.
    Imprecise { column: String, role: ColumnRole, dtype: DType, first: f64, stored: f64, error: f64, std: f64 },
    /// Numbers of which `n_values` are too small for `f32`, so that they lose digits or become 0, in a column without much larger
    /// ones. `first` is as in the source.
    Tiny { column: String, role: ColumnRole, n_values: u64, first: f64 },
    /// A first row that was read as numbers although it looks like names of columns: whole numbers in ascending order, unlike all
    /// rows after it.
    NumbersAsNames { line: u64, cells: String },
    /// Numbers of which `n_values` are written with leading zeros, which become equal to others without them.
    LeadingZeros { column: String, n_values: u64 },
    /// Two values of a category, or two classes, that differ only in case, blanks or a final full stop.
    Similar { column: String, texts: [String; 2] },
    /// The first row was read as the names of columns, but each of them is also a value of its column, and there are no numbers.
    ValuesAsNames { cells: String },
    /// Values of a category, in `n_values` cells, that are not in the dictionary of the table to match, so that they are stored
    /// as missing values.
    Unseen { column: String, n_values: u64, example: String },
    /// A value of a category, or a class, that has whole rows in it, as the text between two stray quotes has. `n_lines` are
    /// those of the value.
    RowsInCell { column: String, n_lines: usize },
    /// Whole numbers of which `n_values` lost digits when they were rounded to `f16`: `first` became `stored`.
    #[cfg(feature = "half")]
    RoundedToHalf { column: String, n_values: u64, first: f32, stored: f32 },
    /// Numbers of an array, a file or the member of an archive, of which `n_values` lost digits when they were rounded to `f32`:
    /// `first`, rounded only to `f64`, became `stored`.
    RoundedArray { array: String, n_values: u64, first: f64, stored: f64 },
    /// Two folders of classes that differ only in case, blanks or a final full stop.
    #[cfg(feature = "images")]
    SimilarClasses { classes: [String; 2] },
    /// A class without an image.
    #[cfg(feature = "images")]
    EmptyClass { class: String },
}

/// What a column is in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnRole {
    /// A feature.
    Feature,
    /// A label.
    Label,
    /// The weights of rows.
    Weight,
}

impl fmt::Display for ColumnRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Feature => "column",
            Self::Label => "label",
            Self::Weight => "weight",
        })
    }
}

impl ImportWarning {
    /// What the caller can do, as the end of the message says in terms of this crate.
    pub fn remedies(&self) -> &'static [Remedy] {
        use Remedy::*;
        match self {
            Self::Sequence { .. }
            | Self::AllDifferent { .. }
            | Self::PredictsLabel { .. }
            | Self::SameValue { .. }
            | Self::NoValue { .. } => &[DropColumn],
            Self::ZeroWeights { .. } => &[OtherWeight],
            Self::Rounded { role: ColumnRole::Label, .. } => &[SubtractOffset, LabelsAsClasses],
            Self::Rounded { .. } => &[MakeCategorical, SubtractOffset, DropColumn],
            #[cfg(feature = "half")]
            Self::Imprecise { dtype: DType::F16, .. } => &[StoreAsF32],
            Self::Imprecise { .. } => &[SubtractOffset],
            Self::Tiny { .. } => &[ScaleColumn],
            Self::NumbersAsNames { .. } | Self::ValuesAsNames { .. } => &[HeaderPresent, HeaderAbsent],
            Self::LeadingZeros { .. } => &[MakeCategorical],
            Self::Similar { .. } | Self::RowsInCell { .. } => &[Correct],
            #[cfg(feature = "half")]
            Self::RoundedToHalf { .. } => &[StoreAsF32],
            Self::RoundedArray { .. } | Self::Unseen { .. } => &[],
            #[cfg(feature = "images")]
            Self::SimilarClasses { .. } | Self::EmptyClass { .. } => &[],
        }
    }

    /// The columns that it is about; none for what is about the first row, an array or a folder.
    pub fn columns(&self) -> &[String] {
        match self {
            Self::SameValue { columns } | Self::NoValue { columns } => columns,
            Self::Sequence { column, .. }
            | Self::ZeroWeights { column }
            | Self::AllDifferent { column }
            | Self::PredictsLabel { column }
            | Self::Rounded { column, .. }
            | Self::Imprecise { column, .. }
            | Self::Tiny { column, .. }
            | Self::LeadingZeros { column, .. }
            | Self::Similar { column, .. }
            | Self::Unseen { column, .. }
            | Self::RowsInCell { column, .. } => std::slice::from_ref(column),
            #[cfg(feature = "half")]
            Self::RoundedToHalf { column, .. } => std::slice::from_ref(column),
            _ => &[],
        }
    }

    /// The message without its [`remedies`](Self::remedies).
    pub fn problem(&self) -> String {
        let column = printable(self.columns().first().map_or("", String::as_str));
        match self {
            Self::Sequence { first, .. } => format!("column `{column}` counts the rows from {first}, as an index does"),
            Self::SameValue { columns } => format!("{} the same value in all rows", have(columns)),
            Self::NoValue { columns } => format!("{} no value in any row", have(columns)),
            Self::ZeroWeights { .. } => format!("weight `{column}` is 0 in all rows"),
            Self::AllDifferent { .. } => format!("column `{column}` has a different value in each row, as an identifier does"),
            Self::PredictsLabel { .. } => {
                format!("column `{column}` predicts the label by itself; is it known before the label is?")
            }
            Self::Rounded { role, n_values, first, stored, .. } => {
                format!("{role} `{column}`: f32 has too few digits for {n_values} of its numbers, {first} became {stored:.0}")
            }
            Self::Imprecise { role, dtype, first, stored, error, std, .. } => {
                let dtype = dtype.name().to_lowercase();
                let share = match 100.0 * error / std {
                    share if share < 100.0 => format!("{share:.1} %"),
                    _ => "all".to_owned(),
                };
                format!(
                    "{role} `{column}`: {dtype} has too few digits, {first} became {stored}; the errors are {share} of the deviation"
                )
            }
            Self::Tiny { role, n_values, first, .. } => {
                format!("{role} `{column}`: {n_values} of its numbers are too small for f32, such as {first:e}")
            }
            Self::NumbersAsNames { line, cells } => {
                format!("line {line} was read as a row, but its numbers look like names of columns: {}", printable(cells))
            }
            Self::LeadingZeros { n_values, .. } => {
                format!("column `{column}`: {n_values} of its numbers have leading zeros, as codes do, and lost them")
            }
            Self::Similar { texts: [a, b], .. } => {
                let (a, b) = (printable(a), printable(b));
                format!("column `{column}` has both {a:?} and {b:?}, which are different values")
            }
            Self::ValuesAsNames { cells } => {
                let cells = printable(cells);
                format!("the first row was read as names of columns, but each is a value of its column as well: {cells}")
            }
            Self::Unseen { n_values, example, .. } => {
                let example = printable(example);
                format!(
                    "column `{column}`: the table to match lacks {n_values} of its values, such as {example:?}; they were stored as missing"
                )
            }
            Self::RowsInCell { n_lines, .. } => {
                format!("column `{column}` has a value of {n_lines} lines that look like rows, as between two stray quotes")
            }
            #[cfg(feature = "half")]
            Self::RoundedToHalf { n_values, first, stored, .. } => {
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

/// "column `a` has", "the columns ["a", "b"] have".
fn have(columns: &[String]) -> String {
    match columns {
        [column] => format!("column `{}` has", printable(column)),
        columns => format!("the columns {} have", listed(columns)),
    }
}

impl fmt::Display for ImportWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.problem(), Choice(self.remedies()))
    }
}
