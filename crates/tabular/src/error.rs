use std::fmt;
use std::path::PathBuf;

use brisk_atomic_file::{listed, printable};
use brisk_loader::with_causes;
use brisk_table::OddCell;

use crate::reading::shortest;
use crate::target_kind::{TARGETS, TargetKind};
use crate::warning::TabularWarning;

/// An error of a table's columns, its target, or the folder of a model; or of reading, training and predicting.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// Training or predicting failed, or a file could not be read or written.
    #[error(transparent)]
    Train(#[from] brisk_train::Error),
    /// A model is to be made of no networks at all.
    #[error("there is no recipe to train a network by; give at least one, such as those of `Effort::recipes`")]
    NoRecipe,
    /// A table cannot be read or imported.
    #[error(transparent)]
    Table(Box<brisk_table::Error>),
    /// Columns that a model needs, `names`, are not among those of the rows, `found`; `path` is the source, if it is a file.
    #[error(
        "{}the rows lack the columns {}, which the model needs; they have {}",
        path.as_ref().map_or(String::new(), |path| format!("{}: ", printable(path))), listed(names), listed(found)
    )]
    MissingColumns { path: Option<PathBuf>, names: Vec<String>, found: Vec<String> },
    /// A column is of a different kind than when the model was trained.
    #[error("column `{column}` has {found}, the model was trained with {expected} there; convert the column")]
    ColumnKind { column: String, found: &'static str, expected: &'static str },
    /// Nothing but the target is left of a file. `left_out` says why its columns were left out.
    #[error(
        "{path}: no column is left for features{}; {}", reasons(left_out),
        match (left_out.is_empty(), n_dropped) {
            (true, 0) => "is the delimiter right?",
            (true, _) => "drop fewer of them",
            (false, _) => "name one of them in `DetectOptions::categorical`",
        },
        path = printable(path)
    )]
    NoFeatures { path: PathBuf, left_out: Vec<TabularWarning>, n_dropped: usize },
    /// Two columns have the same name, by which they are found.
    #[error("two columns are named `{column}`; rename one of them", column = printable(column))]
    SameName { column: String },
    /// A file without names of columns has another number of them than the training table had.
    #[error(
        "{path}: has {found} columns without names, and the table that the model was trained on had {expected}, which are identified by their positions; give the rows the same columns, or both files a first row with names",
        path = printable(path)
    )]
    UnnamedColumns { path: PathBuf, found: usize, expected: usize },
    /// A column is nearly all numbers or dates, so that the other cells are probably mistakes or words for a missing value.
    #[error(
        "{0}; correct them, {decimal}add a word for missing values to `TextOptions::missing_values`, or name the column in `DetectOptions::categorical`",
        decimal = if .0.decimal_comma { "set `TextOptions::decimal`, " } else { "" }
    )]
    OddCells(Box<OddCells>),
    /// The target looks like classes, except for a few rows.
    #[error("{0}; correct them, or choose the kind of the target in `DetectOptions::task`")]
    FewLabels(Box<FewLabels>),
    /// A cell with text is not what the model reads from its column.
    #[error("{0}; correct it")]
    Value(Box<WrongValue>),
    /// The last column was taken for the target, which was not named, and does not look like one. `n_missing` rows have no value
    /// of it.
    #[error(
        "{path}: no column is called {}, and the last one, `{column}`, has no value in {n_missing} rows; name the target in `DetectOptions::target`",
        TARGETS.join(", "), path = printable(path), column = printable(column)
    )]
    NoTarget { path: PathBuf, column: String, n_missing: u64 },
    /// The target has no value at all.
    #[error("{path}: no row has a value of `{column}`, which is to be predicted; name another target", path = printable(path), column = printable(column))]
    Unlabelled { path: PathBuf, column: String },
    /// There are too few rows of each class.
    #[error(
        "target `{}`: {n_classes} classes in {n_rows} rows are too many to learn; choose another target, or ask for classes if they are right",
        printable(target)
    )]
    TooManyClasses { target: String, n_classes: usize, n_rows: usize },
    /// A setting, `what`, that is only for targets of classes.
    #[error("target `{target}` is a number, but {what} are for classes; leave them out, or predict classes", target = printable(target))]
    NotClasses { target: String, what: &'static str },
    /// A setting, `what`, that is only for targets that are numbers.
    #[error("target `{target}` has {n_classes} classes, but {what} are for numbers; leave them out, or predict a number", target = printable(target))]
    NotNumber { target: String, n_classes: usize, what: &'static str },
    /// A number that has no logarithm, for a target that is scaled by it. `row` counts from 0.
    #[error(
        "row {row}, target `{target}`: found {number}, expected a number above 0, of which there is a logarithm; correct it, or choose `TargetScale::Standard`",
        target = printable(target)
    )]
    NotPositive { target: String, row: usize, number: f64 },
    /// A coverage of intervals that is no share.
    #[error("intervals cannot hold a share of {coverage} of the numbers; choose one between 0 and 1, such as 0.9")]
    Coverage { coverage: f64 },
    /// There are too few validation rows for intervals of such a coverage: `n_rows` of them have a weight above 0.
    #[error(
        "target `{target}`: intervals that hold {coverage} of the numbers need at least {needed} validation rows, there are {n_rows}; choose a lower coverage, or use more rows",
        target = printable(target)
    )]
    FewIntervalRows { target: String, coverage: f64, n_rows: usize, needed: usize },
    /// A threshold for a target that does not have two classes. `n_classes` is 0 for a number.
    #[error(
        "target `{target}` {}, but a threshold decides between two classes; leave the threshold out",
        if *n_classes == 0 { "is a number".to_owned() } else { format!("has {n_classes} classes") }, target = printable(target)
    )]
    NotTwoClasses { target: String, n_classes: usize },
    /// The validation rows of a target of two classes are all of one, and a metric of both decides when training ends. `n_rows`
    /// of them have a weight above 0.
    #[error(
        "target `{target}`: all {n_rows} validation rows are of class {class:?}, so that there is no AUC by which training could end; choose the log loss as `Recipe::monitor`, or use more rows of the other class",
        target = printable(target), class = printable(class).to_string()
    )]
    WatchedClass { target: String, class: String, n_rows: usize },
    /// The validation rows by which a threshold between two classes is chosen are all of one. `n_rows` of them have a weight
    /// above 0.
    #[error(
        "target `{target}`: all {n_rows} validation rows are of class {class:?}, which says nothing about a threshold between two classes; leave the threshold out, or use more rows of the other class",
        target = printable(target), class = printable(class).to_string()
    )]
    ThresholdClass { target: String, class: String, n_rows: usize },
    /// No row has a weight.
    #[error("{path}: column `{column}`: all {n_rows} weights are 0, expected some above 0; choose another column", path = printable(path), column = printable(column))]
    NoWeight { path: PathBuf, column: String, n_rows: usize },
    /// A cross-validation with too few folds, or more than there are things to divide among them: `found` rows, rows of a
    /// class, or groups, as `what` says.
    #[error(
        "{n_folds} folds cannot be made of {found} {what}; choose 2 folds or more, and at most as many as there are of these"
    )]
    Folds { n_folds: usize, found: usize, what: String },
    /// A cross-validation of rows that are split by time.
    #[error(
        "rows that are split by the times of `{}` have no folds, which would be validated by earlier rows; leave the folds or the times out",
        printable(column)
    )]
    FoldsOfTimes { column: String },
    /// Rows are to be split in two ways.
    #[error("rows are split by groups, by time or by equal rows, not in two of these ways; choose one")]
    TwoSplits,
    /// There are fewer groups, or different times, as `what` says, than sets that rows are split into.
    #[error("column `{column}` has {found} {what}, expected at least {expected}, one for each set of rows; split by another column", column = printable(column))]
    FewParts { column: String, what: &'static str, found: usize, expected: usize },
    /// There are fewer different rows, `found`, than sets that rows are split into.
    #[error(
        "{n_rows} rows have {found} different values of their columns, expected at least {expected}, one for each set of rows; do not split by equal rows"
    )]
    FewDifferent { n_rows: usize, found: usize, expected: usize },
    /// There are too few rows to split.
    #[error("{n_rows} rows are too few to be split into {n_parts} sets, to train, to validate and to test; use more rows")]
    FewRows { n_rows: usize, n_parts: usize },
    /// Rows have no value in the column that they are split by, whose `role` is `group` or `time`. `row` is the first, from 0.
    #[error(
        "{path}: column `{column}` has no {role} in {n_missing} rows, first in row {row}; fill them in, or leave these rows out",
        path = printable(path), column = printable(column)
    )]
    NoRowValue { path: PathBuf, column: String, role: &'static str, n_missing: usize, row: usize },
    /// A column by whose times rows are to be split has something else. `example` is one of its cells.
    #[error(
        "{path}: column `{column}` has {example:?}, expected times: numbers, or dates in one format such as 2024-01-31; correct it, or choose another column",
        path = printable(path), column = printable(column), example = printable(example).to_string()
    )]
    NotTimes { path: PathBuf, column: String, example: String },
    /// An option does nothing for a source of this format.
    #[error("{path}: `{option}` has no effect on {format}; leave it out", path = printable(path))]
    UnusedOption { path: PathBuf, option: &'static str, format: &'static str },
    /// A table with several labels, or none.
    #[error("{path}: the table has {n_labels} labels, a model predicts one; import its source again with one label", path = printable(path))]
    LabelCount { path: PathBuf, n_labels: usize },
    /// A table that was imported with another label than the target.
    #[error("{path}: the label of this table is `{}`; import its source again with another", printable(label), path = printable(path))]
    OtherLabel { path: PathBuf, label: String },
    /// The columns and the rows do not belong together. `what` is numbers or categories.
    #[error("{n_names} {what} are named, the rows have {found}; name the columns of these rows")]
    ColumnNames { what: &'static str, n_names: usize, found: usize },
    /// No training row has a value in this column.
    #[error("column `{column}` has no value in any of {n_rows} training rows; drop it")]
    AllMissing { column: String, n_rows: usize },
    /// A value is infinite. `row` counts from 0.
    #[error("row {row}, column `{column}`: found an infinite value, expected a finite number or none; replace it")]
    Infinite { row: usize, column: String },
    /// No value of a categorical column of `n_values` values is in as many rows as asked for, `min_rows`; the most frequent one
    /// is in `largest`.
    #[error(
        "column `{column}`: its most frequent value is in {largest} training rows, but a value needs at least {min_rows}; drop the column, or lower `PreprocessingOptions::min_category_rows`",
        column = printable(column)
    )]
    RareValues { column: String, n_values: usize, largest: usize, min_rows: usize },
    /// A categorical column has more values than `limit`, beyond which an embedding is not useful.
    #[error(
        "column `{column}` has {n_values} different values in {n_rows} training rows, at most {limit} can be categories; drop it if it identifies rows, or raise `PreprocessingOptions::min_category_rows`, so that rare values become one"
    )]
    TooManyValues { column: String, n_values: usize, n_rows: usize, limit: usize },
    /// There are no names for the codes of categorical columns.
    #[error("{path}: the table has {n_categories} categorical columns without dictionaries; import it with brisk-table")]
    NoDictionaries { path: PathBuf, n_categories: usize },
    /// All labels are the same.
    #[error(
        "target `{target}`: {n_rows} rows all have the label {label}, expected at least two different ones; choose another target"
    )]
    OneLabel { target: String, label: String, n_rows: usize },
    /// The labels, which are `found`, do not suit the kind of target that was requested.
    #[error("target `{target}`: found {found}, expected {} for a target of kind {kind}; choose another kind", kind.expected())]
    TargetKind { target: String, kind: TargetKind, found: String },
    /// A folder is not that of a model, or one of its files is missing.
    #[error("{path}: not found; the folder of a model has `model.json` and `parameters.safetensors`")]
    NoModel { path: PathBuf },
    /// A folder has the models of several targets, which the file at `path` names.
    #[error(
        "{path}: the folder has the models of several targets; load them by `TabularModels::load`, or one of them from its own folder, such as `0`"
    )]
    SeveralModels { path: PathBuf },
    /// Models of no target at all, or several of the same one.
    #[error("models of the targets {}; expected one or more, each of a different target", listed(names))]
    Targets { names: Vec<String> },
    /// A model was written in another format than this version reads, `expected`, by `version` of brisk.
    #[error(
        "{path}: the model has format {found}, this version of brisk reads format {expected}; train it again or use the version that wrote it ({version})"
    )]
    ModelFormat { path: PathBuf, found: String, expected: u64, version: String },
    /// The description of a model is damaged.
    #[error("{path}: {problem}; train the model again or restore the file")]
    ModelFile { path: PathBuf, problem: String },
    /// The parameters at `path` are not those that the description was written with, which expects another checksum.
    #[error(
        "{path}: the parameters have checksum {found:08x}, model.json expects {expected:08x}; the two files are of different models"
    )]
    OtherParameters { path: PathBuf, found: u32, expected: u32 },
}

/// A column that is nearly all numbers or dates: [`Error::OddCells`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OddCells {
    /// The source.
    pub path: PathBuf,
    /// The column.
    pub column: String,
    /// What cells of the column are expected to be: `numbers`, `plain numbers`, or `dates such as` an example.
    pub expected: String,
    /// How many cells are of this kind.
    pub n_expected: u64,
    /// The first of the cells that are not.
    pub cells: Vec<OddCell>,
    /// What the cells' numbers count: `line` or `row`.
    pub counted: &'static str,
    /// Whether they are numbers with decimal commas.
    pub decimal_comma: bool,
    /// Whether these commas may as well be separators between thousands.
    pub thousands: bool,
    /// Whether it is the column to predict.
    pub is_target: bool,
}

/// A target with few different numbers in nearly all rows: [`Error::FewLabels`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FewLabels {
    /// The source.
    pub path: PathBuf,
    /// The target.
    pub target: String,
    /// The numbers that nearly all rows have.
    pub labels: Vec<f64>,
    /// How many rows have them.
    pub n_rows: usize,
    /// The first of the other cells.
    pub cells: Vec<OddCell>,
    /// What the cells' numbers count: `line` or `row`.
    pub counted: &'static str,
}

impl fmt::Display for FewLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, target, labels, n_rows, cells, counted } = self;
        let (path, target) = (printable(path), printable(target));
        let labels = labels.iter().map(|&label| shortest(label)).collect::<Vec<_>>().join(", ");
        let cells = shown_cells(cells, counted);
        write!(f, "{path}: target `{target}` has one of the numbers {labels} in {n_rows} rows, but {cells}")
    }
}

/// ": column `a` is left out: …, and 2 more".
fn reasons(left_out: &[TabularWarning]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = left_out.iter().take(SHOWN).map(ToString::to_string).collect();
    match left_out.len() {
        0 => String::new(),
        n if n > SHOWN => format!(": {}, and {} more", shown.join(", "), n - SHOWN),
        _ => format!(": {}", shown.join(", ")),
    }
}

/// "line 5 has "0.5", line 9 has "x"".
fn shown_cells(cells: &[OddCell], counted: &str) -> String {
    let cells = cells.iter().map(|cell| format!("{counted} {} has {:?}", cell.line, printable(&cell.text)));
    cells.collect::<Vec<_>>().join(", ")
}

/// A cell with text that the model cannot read: [`Error::Value`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WrongValue {
    /// The file, if the rows are those of one.
    pub path: Option<PathBuf>,
    /// The first line with it, from 1, in a file of text.
    pub line: Option<u64>,
    /// The first row with it, from 0.
    pub row: Option<usize>,
    /// The column.
    pub column: String,
    /// The text.
    pub found: String,
    /// What the model reads.
    pub expected: String,
}

impl fmt::Display for WrongValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, row, column, found, expected } = self;
        if let Some(path) = path {
            write!(f, "{}: ", printable(path))?;
        }
        match (line, row) {
            (Some(line), _) => write!(f, "line {line}, ")?,
            (None, Some(row)) => write!(f, "row {row}, ")?,
            (None, None) => {}
        }
        write!(f, "column `{}`: found {:?}, expected {expected}", printable(column), printable(found))
    }
}

impl fmt::Display for OddCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, column, expected, n_expected, cells, counted, .. } = self;
        let cells = shown_cells(cells, counted);
        let (path, column) = (printable(path), printable(column));
        if self.decimal_comma {
            let or = if self.thousands { ", or with commas between thousands" } else { "" };
            return write!(f, "{path}: column `{column}` has numbers with decimal commas{or}: {cells}");
        }
        write!(f, "{path}: column `{column}` has {n_expected} {expected}, but {cells}")
    }
}

/// The error for a set without rows, or with more than can be numbered.
pub(crate) fn no_rows(set: &'static str, n_rows: usize, n_cols: usize) -> Error {
    let found = format!("{n_rows} rows of {n_cols} columns");
    let expected = "at least one row and fewer than 2^32 - 1".into();
    brisk_train::Error::RowSet { set, found, expected }.into()
}

/// The error for a source of rows that fails.
pub(crate) fn failed<E: std::error::Error + 'static>(set: &'static str) -> impl Fn(E) -> Error {
    move |error| brisk_train::Error::Rows { set, reason: with_causes(&error) }.into()
}

impl From<brisk_table::Error> for Error {
    fn from(error: brisk_table::Error) -> Self {
        Self::Table(Box::new(error))
    }
}

impl From<brisk_nn::Error> for Error {
    fn from(error: brisk_nn::Error) -> Self {
        Self::Train(error.into())
    }
}

impl From<brisk_nn::tensor::program::Error> for Error {
    fn from(error: brisk_nn::tensor::program::Error) -> Self {
        Self::Train(error.into())
    }
}
