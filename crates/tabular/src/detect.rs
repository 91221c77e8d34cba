use std::path::Path;

use brisk_loader::{Fold, RowSource, Subset};
use brisk_table::{
    BadRows, Categorical, ColumnKind, ColumnOptions, ColumnRef, ColumnSurvey, CsvOptions, Format, ImportOptions, ImportWarning,
    LabelKind, Missing, OddCell, SourceError, Table, find_numbers, survey_csv_with_progress,
};
use brisk_train::Labels;

use crate::column_summary::ColumnSummary;
use crate::columns::Columns;
use crate::date_order::{DateOrder, is_open};
use crate::equal_rows::keys;
use crate::error::{Error, FewLabels, OddCells};
use crate::model::TabularModel;
use crate::odd_values::{NearlyClasses, Outlier, PlaceholderDate, Totals, counts, nearly_classes, outliers, placeholder_dates};
use crate::reading::{Decoding, middle, shortest};
use crate::row_column::RowColumn;
use crate::scratch::import_to_memory;
use crate::splitting::Splitting;
use crate::surveyed::{
    MAX_EXACT, MAX_EXACT_F64, Surveyed, are_far_from_zero, are_many_numbers, is_precise, may_be_classes, survey_typed,
};
use crate::target::{MAX_GUESSED_CLASSES, Target};
use crate::target_kind::{TARGETS, TargetKind};
use crate::text_options::{TextOptions, check_used};
use crate::warning::TabularWarning;

/// The options of [`TabularModel::detect`] for a file. Columns are named as in [`ColumnRef::Word`]: by their names, or by their
/// indices from 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DetectOptions {
    /// The column to predict. By default, a column that is called `target`, `label`, `class` or `y`, in any case; else the last.
    pub target: Option<String>,
    /// The targets of other models, which are no features of this one.
    pub other_targets: Vec<String>,
    /// What the target is, if it is not to be found out: see [`Target::detect`].
    pub task: Option<TargetKind>,
    /// Columns to leave out.
    pub drop: Vec<String>,
    /// Columns that are categories, whatever their cells are.
    pub categorical: Vec<String>,
    /// The column of the groups of rows, such as patients or sessions: all rows of a group are split into the same set. It is no
    /// feature.
    pub group: Option<String>,
    /// Whether day or month is first in dates such as `03/04/2024`, where no cell of the column says it. By default, it is as in
    /// other columns of the file, or else the day is first before a point, and the month before other marks.
    pub date_order: Option<DateOrder>,
    /// The column of the times of rows, numbers or dates: the latest rows are the last set that rows are split into.
    /// It is a feature as well, unless it is dropped.
    pub time: Option<String>,
    /// Whether rows that are equal in all features, such as copies of a row, are split into the same set.
    pub group_equal: bool,
    /// The column of the weights of rows, numbers of at least 0: how much each counts in the loss, in calibration and in scores,
    /// but not in preprocessing. It is no feature.
    pub weight: Option<String>,
    /// Whether the index of a data frame is kept as a column: [`ColumnOptions::keep_index`].
    pub keep_index: bool,
    /// How text is read.
    pub text: TextOptions,
}

/// A table and what its columns are: [`TabularModel::detect`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Detected {
    /// The rows.
    pub table: Table,
    /// Its columns.
    pub columns: Columns,
    /// The target; [`Target::fitted_to`] fits it to the training rows.
    pub target: Target,
    /// What each of the columns has, besides the target, also of those that are no features, if they have names in the file; none
    /// of features that are no `f32`.
    pub summaries: Vec<ColumnSummary>,
    /// What rows are split by.
    pub splitting: Splitting,
    /// Whether the target was chosen because of its name or its place, not by its user.
    pub target_is_guess: bool,
    /// Decisions that the user may want to change.
    pub warnings: Vec<TabularWarning>,
    /// The words for missing values, of those that [`DetectOptions::text`] names, that no cell of the file has.
    pub unused_missing_values: Vec<String>,
    /// The words and marks with which the text was read, to be [kept](TabularModel::set_text_options) with the model.
    pub text: TextOptions,
}

impl Detected {
    /// Splits the table, for example into rows to train on, to validate and to test: at random, and those of each class by the
    /// same fractions, but each part has a row of each class that has as many; by [groups](DetectOptions::group) or [equal
    /// rows](DetectOptions::group_equal), whose sizes the fractions fit as far as possible; or by [time](DetectOptions::time),
    /// the latest rows last.
    ///
    /// # Errors
    /// [`Error::FewParts`] for fewer groups or different times than parts; [`Error::FewRows`] if a part would have no rows;
    /// [`Error::Rows`](brisk_train::Error::Rows).
    pub fn split<const N: usize>(&self, seed: u64, fractions: [f64; N]) -> Result<[Subset<&Table>; N], Error> {
        self.splitting.split(&self.table, &self.target, seed, fractions)
    }

    /// The folds of a cross-validation over a part of the table: `rows` are those of `part`, preprocessed and with the
    /// [labels](crate::Preprocessed::with_target) of the target. Each fold has its share of each class, or whole groups.
    ///
    /// # Errors
    /// [`Error::Folds`] for fewer than two folds, or more than there are rows, rows of a class, or groups;
    /// [`Error::FoldsOfTimes`] for rows that are split by time; [`Error::Rows`](brisk_train::Error::Rows).
    pub fn folds<S: RowSource + Clone>(
        &self,
        part: &Subset<&Table>,
        rows: S,
        seed: u64,
        n_folds: usize,
    ) -> Result<Vec<Fold<S>>, Error> {
        self.splitting.folds(&self.target, rows, |row| part.row(row), seed, n_folds)
    }
}

/// A column of text identifies rows if at least this share of its values are different, of more than [`MIN_IDENTIFIERS`].
const IDENTIFIER_SHARE: f64 = 0.9;
const MIN_IDENTIFIERS: u64 = 20;

/// Columns with at most this many different values can be decoded: their text has to fit into the header of a table.
const MAX_DECODED: u64 = 1_000_000;

impl TabularModel {
    /// Reads a file of any format, and finds what its columns are, which of them is the target, and what is odd about them. All
    /// cells are read before anything is decided, so that the order of the rows does not matter.
    ///
    /// - Columns of numbers are numbers. If they are too large for `f32` but close to each other, they are
    ///   [shifted](crate::Reading::Offset).
    /// - Dates that are all in one [format](brisk_table::DateFormat) are [decoded](Decoding::Date); others are left out.
    /// - A target of numbers that are too large for `f32` is shifted, too: [`Target::offset`].
    /// - Rows without a value of the target are left out, and columns without any value.
    /// - Whole numbers with leading zeros, and text, are categories; text whose values are nearly all different is left out.
    /// - Numbers or dates among which there is other text, and numbers with a currency, a percent sign or separators between
    ///   thousands, are an error, which shows the first such cells.
    ///
    /// # Errors
    /// [`Error::NoTarget`], [`Error::NoFeatures`], [`Error::Unlabelled`], [`Error::OddCells`], [`Error::FewLabels`],
    /// [`Error::TargetKind`], [`Error::UnusedOption`]; [`Error::Table`] if the file cannot be read, or has no such column; as
    /// [`Target::detect`].
    ///
    /// # Cost
    /// Reads the file twice. The table is in memory.
    ///
    /// # Examples
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("houses.csv");
    /// use brisk_table::DateFormat;
    /// use brisk_tabular::{DetectOptions, Decoding, TabularModel};
    ///
    /// std::fs::write(&path, "id,sold,zip,rooms,price\nA1,2024-01-05,01234,3,250\nA2,2024-02-11,12345,-,310\n")?;
    /// let detected = TabularModel::detect(&path, &DetectOptions { drop: vec!["id".into()], ..DetectOptions::default() })?;
    /// assert_eq!((detected.target.name(), &detected.columns.numbers[..]), ("price", &["rooms".to_owned()][..]));
    /// assert_eq!(detected.columns.decoded, [("sold".to_owned(), Decoding::Date(DateFormat::ISO))]);
    /// assert_eq!(detected.warnings[0].to_string(), "column `zip` has numbers with leading zeros, which are read as categories");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detect(file: impl AsRef<Path>, options: &DetectOptions) -> Result<Detected, Error> {
        Self::detect_with_progress(file, options, || ())
    }

    /// Like [`detect`](Self::detect); `progress` is called on this thread from time to time.
    pub fn detect_with_progress(
        file: impl AsRef<Path>,
        options: &DetectOptions,
        mut progress: impl FnMut(),
    ) -> Result<Detected, Error> {
        let path = file.as_ref();
        if [options.group.is_some(), options.time.is_some(), options.group_equal].into_iter().filter(|&is_set| is_set).count() > 1
        {
            return Err(Error::TwoSplits);
        }
        if is_table(path) {
            return of_table(path, options);
        }
        let format = Format::detect(path)?;
        options.text.check(path, format)?;
        let has_names = matches!(format, Format::Csv | Format::Arrow | Format::Parquet);
        let targets = [(options.target.is_some(), "target"), (!options.other_targets.is_empty(), "other_targets")];
        for (is_set, option) in targets.into_iter().chain(options.of_columns()) {
            check_used(has_names || !is_set, path, option, format.description())?;
        }
        if !has_names {
            let (table, _) = import_to_memory(path, &ImportOptions::default(), &mut progress)?;
            return detected(table, options, Plan::default(), &Source::Rows);
        }
        let survey = match format {
            Format::Csv => {
                let columns = ColumnOptions { keep_index: options.keep_index, ..ColumnOptions::default() };
                let csv = options.text.import(columns).csv;
                let survey = survey_csv_with_progress(path, &csv, |_| progress())?;
                let is_found = |word: &String| {
                    survey.columns.iter().any(|column| column.found_missing_values().any(|found| found == word.trim()))
                };
                let unused = options.text.missing_values.iter().filter(|word| !is_found(word)).cloned().collect();
                Surveyed { columns: survey.columns, index: survey.index_columns, unused_missing_values: unused }
            }
            _ => survey_typed(path, options.drop.as_slice(), options.keep_index, &options.text, &mut progress)?,
        };
        let mut plan = Plan::new(path, &survey, options, if format == Format::Csv { "line" } else { "row" })?;
        let import = options.text.import(plan.columns.clone());
        let (table, report) = import_to_memory(path, &import, &mut progress)?;
        if let (Some(column), Some(weights)) = (&options.weight, table.weights())
            && weights.iter().all(|&weight| weight == 0.0)
        {
            return Err(Error::NoWeight { path: path.to_owned(), column: column.clone(), n_rows: weights.len() });
        }
        let is_decoded = |name| plan.decoded.iter().flatten().any(|(decoded, _)| decoded == name);
        let found = report.warnings.iter().filter(|found| !is_surveyed(found) && !found.columns().iter().any(is_decoded));
        plan.warnings.extend(found.cloned().map(TabularWarning::Import));
        plan.splitting = match plan.split_by {
            None => Splitting::Random,
            Some(col) => {
                let dates = DateOrder::format_of(options.order_in(&survey.columns), &survey.columns[col]);
                let column = RowColumn { path, survey: &survey.columns[col], target: &plan.columns, text: &options.text, dates };
                if options.group.is_some() { column.groups(&mut progress)? } else { column.times(&mut progress)? }
            }
        };
        let source = if format == Format::Csv { Source::Text { path, options: Box::new(import.csv) } } else { Source::Rows };
        let mut detected = detected(table, options, plan, &source)?;
        let summary = |column: &ColumnSurvey| {
            let of_feature = detected.summaries.iter().find(|summary| summary.column == column.name);
            of_feature.cloned().unwrap_or_else(|| ColumnSummary::left_out(column))
        };
        let others = survey.columns.iter().filter(|column| column.name != detected.target.name());
        detected.summaries = others.map(summary).collect();
        detected.unused_missing_values = survey.unused_missing_values;
        detected.text.n_unnamed_columns = Columns::n_unnamed(&report.source_columns);
        Ok(detected)
    }
}

/// Whether the survey finds what an import warns of, or does what it advises.
fn is_surveyed(warning: &ImportWarning) -> bool {
    use ImportWarning::*;
    !matches!(
        warning,
        Sequence { .. }
            | PredictsLabel { .. }
            | ValuesAsNames { .. }
            | RowsInCell { .. }
            | Similar { .. }
            | Imprecise { .. }
            | Tiny { .. }
            | NumbersAsNames { .. }
    )
}

/// Whether the file is a table of brisk by its name.
pub(super) fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "safetensors")
}

impl DetectOptions {
    /// The options of columns with names, and whether they are set.
    fn of_columns(&self) -> [(bool, &'static str); 7] {
        [
            (self.date_order.is_some(), "date_order"),
            (!self.drop.is_empty(), "drop"),
            (!self.categorical.is_empty(), "categorical"),
            (self.group.is_some(), "group"),
            (self.time.is_some(), "time"),
            (self.weight.is_some(), "weight"),
            (self.keep_index, "keep_index"),
        ]
    }

    /// The order of dates of these columns that do not say it.
    fn order_in(&self, columns: &[ColumnSurvey]) -> Option<DateOrder> {
        self.date_order.or_else(|| DateOrder::of_columns(columns))
    }
}

/// A table that was imported before: its columns are what they are.
fn of_table(path: &Path, options: &DetectOptions) -> Result<Detected, Error> {
    let table = Table::open(path)?;
    table.check_intact()?;
    let label = table.label_names().first().map_or("label", String::as_str);
    if options.target.iter().chain(&options.other_targets).any(|target| target != label) {
        return Err(Error::OtherLabel { path: path.to_owned(), label: label.to_owned() });
    }
    for (is_set, option) in options.of_columns().into_iter().chain([(options.text != TextOptions::default(), "text")]) {
        check_used(!is_set, path, option, "a table that was imported before")?;
    }
    detected(table, options, Plan::default(), &Source::Rows)
}

/// What is read again to find a cell.
enum Source<'a> {
    Text { path: &'a Path, options: Box<CsvOptions> },
    Rows,
}

impl Source<'_> {
    /// What the numbers of cells count.
    fn counted(&self) -> &'static str {
        match self {
            Self::Text { .. } => "line",
            Self::Rows => "row",
        }
    }

    /// The first cells of a column whose values, from which `offset` was subtracted, are wanted.
    fn cells(&self, column: &str, values: &[f32], offset: f64, is_wanted: &(dyn Fn(f32) -> bool + Sync)) -> Vec<OddCell> {
        if let Self::Text { path, options } = self
            && let Ok(found) = find_numbers(path, options, &column.into(), |number| is_wanted((number - offset) as f32))
        {
            return found.first;
        }
        let wanted = values.iter().enumerate().filter(|(_, value)| is_wanted(**value)).take(MAX_SHOWN);
        let cell = |(row, value): (usize, &f32)| OddCell { line: row as u64, text: shortest(f64::from(*value) + offset) };
        wanted.map(cell).collect()
    }
}

/// How many cells are shown.
const MAX_SHOWN: usize = 3;

fn detected(table: Table, options: &DetectOptions, plan: Plan, source: &Source<'_>) -> Result<Detected, Error> {
    let n_labels = table.n_labels();
    if n_labels != 1 {
        return Err(Error::LabelCount { path: table.path().to_owned(), n_labels });
    }
    let mut columns = Columns::of(&table)?;
    if let Some(decoded) = plan.decoded {
        columns.decoded = decoded;
    }
    columns.label_offset = plan.offset;
    let name = table.label_names().first().map_or("label", String::as_str);
    let target = Target::detect(name, table.classes(), options.task.or(plan.task), &table)?.shifted_by(plan.offset);
    let (target_is_guess, mut warnings, text) = (plan.target_is_guess, plan.warnings, options.text.clone());
    let labels = Labels::Numbers.read("all", &table)?;
    if options.task.is_none() {
        check_labels(&table, &target, &labels, source)?;
        warnings.extend(rare_class(&target, &labels));
    }
    let outliers_of = |column: &str, values: &[f32], offset: f64| -> Vec<TabularWarning> {
        let warning = |Outlier { value, n_rows, first_row, others }: Outlier| {
            let cell = source.cells(column, values, offset, &|other| other == value).into_iter().next();
            TabularWarning::Outlier {
                column: column.to_owned(),
                value: cell.as_ref().map_or_else(|| shortest(f64::from(value) + offset), |cell| cell.text.clone()),
                n_rows: n_rows as u64,
                first: cell.map_or(first_row as u64, |cell| cell.line),
                counted: source.counted(),
                others: others.map(|other| f64::from(other) + offset),
            }
        };
        outliers(values, offset).into_iter().map(warning).collect()
    };
    if table.classes().is_empty() {
        warnings.extend(outliers_of(target.name(), &labels, plan.offset));
    }
    let mut totals = Totals::default();
    if table.classes().is_empty() {
        totals.add(target.name(), &labels, plan.offset);
    }
    let mut summaries = Vec::new();
    // Features that are not f32, such as pixels, have no room for outliers.
    let features = table.rows::<f32>(0..table.n_rows()).unwrap_or_default();
    for (col, column) in columns.numbers.iter().enumerate().filter(|_| !features.is_empty()) {
        let values: Vec<f32> = features.iter().skip(col).step_by(columns.numbers.len()).copied().collect();
        warnings.extend(outliers_of(column, &values, 0.0));
        totals.add(column, &values, 0.0);
        summaries.push(ColumnSummary::of_numbers(column, &values));
    }
    warnings.extend(totals.columns().map(|columns| TabularWarning::Totals { columns }));
    let codes = table.categories(0..table.n_rows())?;
    for (at, dictionary) in columns.categories.iter().enumerate() {
        let mut n_rows = vec![0; dictionary.n_codes()];
        codes.iter().skip(at).step_by(columns.categories.len()).for_each(|&code| n_rows[code as usize] += 1);
        let decoding = columns.decoding(dictionary.name());
        summaries.push(ColumnSummary::of_codes(dictionary, decoding, &n_rows));
        let Some(Decoding::Date(format)) = decoding else { continue };
        let dates = dictionary.values().iter().map(String::as_str).zip(n_rows[1..].iter().copied());
        warnings.extend(placeholder_dates(format, dates).into_iter().map(|PlaceholderDate { value, n_rows, others }| {
            let column = dictionary.name().to_owned();
            TabularWarning::PlaceholderDate { column, value: value.to_owned(), n_rows, others: others.map(str::to_owned) }
        }));
    }
    let splitting = if options.group_equal { Splitting::Equal { keys: keys(&table)? } } else { plan.splitting };
    let unused_missing_values = Vec::new();
    Ok(Detected { columns, target, table, summaries, splitting, target_is_guess, warnings, unused_missing_values, text })
}

/// Refuses a target that is neither classes nor a number for sure.
fn check_labels(table: &Table, target: &Target, labels: &[f32], source: &Source<'_>) -> Result<(), Error> {
    let Target::Number { name, offset, .. } = target else { return Ok(()) };
    let Some(NearlyClasses { common, n_rows }) = nearly_classes(labels, MAX_GUESSED_CLASSES) else { return Ok(()) };
    let cells = source.cells(name, labels, *offset, &|label| label.is_finite() && !common.contains(&label));
    let path = match source {
        Source::Text { path, .. } => path.to_path_buf(),
        Source::Rows => table.path().to_owned(),
    };
    let labels = common.iter().map(|&label| f64::from(label) + offset).collect();
    let few = FewLabels { path, target: name.clone(), labels, n_rows, cells, counted: source.counted() };
    Err(Error::FewLabels(Box::new(few)))
}

/// The first class that hardly any row has, or too few for training, validation and test rows.
fn rare_class(target: &Target, labels: &[f32]) -> Option<TabularWarning> {
    const SETS: usize = 3;
    const MAX_ROWS: usize = 4;
    const MIN_TIMES: usize = 1000;
    let is_rare = |count: usize| count < SETS || (count <= MAX_ROWS && count * MIN_TIMES <= labels.len());
    let Target::Classes { name, classes, labels: of_classes } = target else { return None };
    let (label, n_rows) = counts(labels).into_iter().find(|&(_, count)| is_rare(count))?;
    let class = of_classes.iter().position(|&other| other == label).map(|class| classes[class].clone())?;
    Some(TabularWarning::RareClass { column: name.clone(), class, n_rows: n_rows as u64, n_all: labels.len() as u64 })
}

/// The roles of the columns of a file.
#[derive(Debug, Default)]
struct Plan {
    columns: ColumnOptions,
    decoded: Option<Vec<(String, Decoding)>>,
    target_is_guess: bool,
    warnings: Vec<TabularWarning>,
    /// The column that rows are split by.
    split_by: Option<usize>,
    /// What it has.
    splitting: Splitting,
    /// What is subtracted from the target.
    offset: f64,
    /// What the target is by its cells, of which labels have only the digits that `f32` holds.
    task: Option<TargetKind>,
}

impl Plan {
    fn new(path: &Path, survey: &Surveyed, options: &DetectOptions, counted: &'static str) -> Result<Self, Error> {
        let surveyed = &survey.columns[..];
        let names: Vec<String> = surveyed.iter().map(|column| column.name.clone()).collect();
        let find = |name: &String, role: &'static str| {
            ColumnRef::Word(name.clone()).find(&names, role).map_err(|reason| reason.at(path))
        };
        let find_all = |names: &[String], role| names.iter().map(|name| find(name, role)).collect::<Result<Vec<_>, _>>();
        let find_any = |name: &Option<String>, role| name.as_ref().map(|name| find(name, role)).transpose();
        let others = find_all(&options.other_targets, "target")?;
        let dropped = [others, find_all(&options.drop, "columns to drop")?].concat();
        let target = match &options.target {
            Some(target) => find(target, "target")?,
            None => guessed_target(path, survey, &dropped)?,
        };
        let categorical = find_all(&options.categorical, "categorical columns")?;
        let (group, time) = (find_any(&options.group, "group")?, find_any(&options.time, "time")?);
        let weight = find_any(&options.weight, "weight")?;
        let is_used = |col: &usize| *col == target || Some(*col) == weight;
        let n_unlabelled = surveyed[target].n_missing;
        let both = categorical.iter().find(|col| is_used(col) || dropped.contains(col) || group == Some(**col));
        let both = both.or_else(|| dropped.iter().chain(&group).chain(&time).find(|col| is_used(col)));
        if let Some(&both) = both.or(weight.as_ref().filter(|&&weight| weight == target)) {
            let problem = format!("column `{}` is given two roles; choose one", surveyed[both].name);
            return Err(SourceError::ColumnRoles { problem, remedies: &[] }.at(path).into());
        }
        let (mut features, mut text, mut decoded, mut warnings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let index = &survey.index;
        let used = |name: &String| categorical.iter().chain([&target]).any(|&col| surveyed[col].name == *name);
        let left_out = index.iter().filter(|name| !used(name)).cloned();
        warnings.extend(left_out.map(|column| TabularWarning::Index { column }));
        if n_unlabelled > 0 && surveyed[target].n_values() == 0 {
            return Err(Error::Unlabelled { path: path.to_owned(), column: surveyed[target].name.clone() });
        }
        if n_unlabelled > 0 {
            let (column, n_all) = (surveyed[target].name.clone(), n_unlabelled + surveyed[target].n_values());
            warnings.push(TabularWarning::Unlabelled { column, n_rows: n_unlabelled, n_all });
        }
        let order = options.order_in(surveyed);
        let is_read = |col: &usize| !(is_used(col) || dropped.contains(col) || group == Some(*col) || categorical.contains(col));
        let may_be_dates = || (0..surveyed.len()).filter(|col| is_read(col) || time == Some(*col));
        warnings.extend(may_be_dates().filter_map(|col| short_years(&surveyed[col], order)));
        let mut open = may_be_dates().filter(|&col| is_open(&surveyed[col]));
        if options.date_order.is_none() {
            warnings.extend(open.map(|col| {
                let (example, order) = DateOrder::of_open(order, &surveyed[col]);
                TabularWarning::DateOrder { column: names[col].clone(), example, order }
            }));
        } else if open.next().is_none() {
            let format = "a table without dates that leave open whether day or month is first";
            return Err(Error::UnusedOption { path: path.to_owned(), option: "date_order", format });
        }
        for (col, survey) in surveyed.iter().enumerate() {
            let name = &survey.name;
            if is_used(&col) || dropped.contains(&col) || group == Some(col) {
                continue;
            }
            if categorical.contains(&col) {
                text.push(name.as_str().into());
                continue;
            }
            if index.contains(name) {
                continue;
            }
            check_cells(path, survey, counted, false)?;
            match Use::of(survey, order, &mut warnings) {
                Use::Number => features.push(name.as_str().into()),
                Use::Category => text.push(name.as_str().into()),
                Use::Decoded(decoding) => {
                    text.push(name.as_str().into());
                    decoded.push((name.clone(), decoding));
                }
                Use::LeftOut => {}
            }
        }
        let used = surveyed.iter().enumerate().filter(|(col, _)| !dropped.contains(col) && !categorical.contains(col));
        warnings.extend(used.filter(|(_, survey)| survey.kind() == ColumnKind::Numbers).filter_map(|(_, survey)| {
            let (column, example) = (survey.name.clone(), survey.thousands()?.to_owned());
            Some(TabularWarning::Thousands { column, example })
        }));
        let (label_kind, offset) = label_kind(path, &surveyed[target], options.task, counted, &mut warnings)?;
        let label = surveyed[target].name.as_str();
        let offsets = if offset == 0.0 { Vec::new() } else { vec![(label.into(), offset)] };
        if features.is_empty() && text.is_empty() {
            use TabularWarning::{Empty, Identifier, Index, OtherDates};
            warnings.retain(|warning| matches!(warning, Empty { .. } | Identifier { .. } | Index { .. } | OtherDates { .. }));
            return Err(Error::NoFeatures { path: path.to_owned(), left_out: warnings, n_dropped: dropped.len() });
        }
        let columns = ColumnOptions {
            labels: vec![label.into()],
            label_kind,
            weight: weight.map(|col| surveyed[col].name.as_str().into()),
            offsets,
            features: Some(features),
            categorical: Categorical::Columns(text),
            missing: Missing::Keep,
            bad_rows: if n_unlabelled > 0 { BadRows::SkipUnlabelled } else { BadRows::Error },
            ..ColumnOptions::default()
        };
        let task = are_many_numbers(&surveyed[target]).then_some(TargetKind::Number);
        let task = task.filter(|_| columns.label_kind == LabelKind::Number);
        let target_is_guess = options.target.is_none();
        let (split_by, splitting) = (group.or(time), Splitting::Random);
        Ok(Self { columns, decoded: Some(decoded), target_is_guess, warnings, split_by, splitting, offset, task })
    }
}

/// What a column is used for.
enum Use {
    Number,
    Category,
    Decoded(Decoding),
    LeftOut,
}

impl Use {
    fn of(survey: &ColumnSurvey, order: Option<DateOrder>, warnings: &mut Vec<TabularWarning>) -> Self {
        let column = survey.name.clone();
        let (n_distinct, n_values) = (survey.n_distinct(), survey.n_values());
        if n_distinct == 1 && survey.n_missing == 0 && n_values > 1 {
            warnings.push(TabularWarning::Import(ImportWarning::SameValue { columns: vec![column.clone()] }));
        }
        warnings.extend(units(survey));
        let is_identifier = n_distinct > MIN_IDENTIFIERS && n_distinct as f64 >= IDENTIFIER_SHARE * n_values as f64;
        match survey.kind() {
            ColumnKind::Numbers if is_precise(survey) => Self::Number,
            ColumnKind::Numbers => {
                let can_be_shifted = n_distinct <= MAX_DECODED && are_far_from_zero(survey);
                warnings.extend(rounded(survey, can_be_shifted));
                if can_be_shifted { Self::Decoded(Decoding::Number) } else { Self::Number }
            }
            ColumnKind::Dates if n_distinct <= MAX_DECODED => Self::Decoded(Decoding::Date(DateOrder::format_of(order, survey))),
            ColumnKind::OtherDates => {
                let cells = survey.not_in_format(DateOrder::format_of(order, survey));
                let example = cells.into_iter().next().map_or_else(String::new, |cell| cell.text);
                warnings.push(TabularWarning::OtherDates { column, example });
                Self::LeftOut
            }
            // That there are no rows is an error when they are read.
            ColumnKind::Empty if survey.n_missing == 0 => Self::Number,
            ColumnKind::Empty => {
                warnings.push(TabularWarning::Empty { column });
                Self::LeftOut
            }
            _ if is_identifier => {
                warnings.push(TabularWarning::Identifier { column, n_distinct, n_values });
                Self::LeftOut
            }
            ColumnKind::Codes => {
                warnings.push(TabularWarning::Codes { column });
                Self::Category
            }
            _ => Self::Category,
        }
    }
}

/// Whole numbers that lose digits although they are shifted, if they can be: by `f32`, or by `f64` before that.
fn rounded(survey: &ColumnSurvey, can_be_shifted: bool) -> Option<TabularWarning> {
    let largest = survey.min.abs().max(survey.max.abs());
    let is_wide = !can_be_shifted || survey.max - survey.min > 2.0 * MAX_EXACT;
    (survey.are_whole && (is_wide || largest >= MAX_EXACT_F64))
        .then(|| TabularWarning::Rounded { column: survey.name.clone(), largest })
}

/// Dates whose century is not in the file.
fn short_years(survey: &ColumnSurvey, order: Option<DateOrder>) -> Option<TabularWarning> {
    let format = Some(DateOrder::format_of(order, survey)).filter(|format| format.has_short_years())?;
    let example = survey.not_numbers.first().filter(|_| survey.kind() == ColumnKind::Dates)?.text.clone();
    let time = format.parse(&example)?;
    let read = format!("{}-{:02}-{:02}", time.year, time.month, time.day);
    Some(TabularWarning::ShortYears { column: survey.name.clone(), example, read })
}

/// Numbers that units make text.
fn units(survey: &ColumnSurvey) -> Option<TabularWarning> {
    survey.with_units().map(|example| TabularWarning::Units { column: survey.name.clone(), example: example.to_owned() })
}

/// How the labels are read, and what is subtracted from them.
fn label_kind(
    path: &Path,
    survey: &ColumnSurvey,
    task: Option<TargetKind>,
    counted: &'static str,
    warnings: &mut Vec<TabularWarning>,
) -> Result<(LabelKind, f64), Error> {
    let asks_for_classes = matches!(task, Some(TargetKind::Classes | TargetKind::Binary));
    if !asks_for_classes {
        check_cells(path, survey, counted, true)?;
        warnings.extend(units(survey));
    }
    match survey.kind() {
        ColumnKind::Numbers | ColumnKind::Empty if is_precise(survey) => Ok((LabelKind::Number, 0.0)),
        ColumnKind::Numbers => {
            let are_classes = survey.are_whole && may_be_classes(survey);
            if asks_for_classes || (task.is_none() && are_classes) {
                return Ok((LabelKind::Classes, 0.0));
            }
            let can_be_shifted = are_far_from_zero(survey);
            warnings.extend(rounded(survey, can_be_shifted));
            Ok((LabelKind::Number, if can_be_shifted { middle(survey.min, survey.max) } else { 0.0 }))
        }
        ColumnKind::Dates | ColumnKind::OtherDates if !asks_for_classes => {
            let (target, found) = (survey.name.clone(), "dates".to_owned());
            Err(Error::TargetKind { target, kind: TargetKind::Number, found })
        }
        _ => Ok((LabelKind::Classes, 0.0)),
    }
}

/// Refuses a column that is neither numbers nor dates for sure, but nearly.
fn check_cells(path: &Path, survey: &ColumnSurvey, counted: &'static str, is_target: bool) -> Result<(), Error> {
    let numbers = |expected: &str| (expected.to_owned(), survey.n_numbers, survey.not_numbers.clone());
    let (expected, n_expected, cells) = match survey.kind() {
        ColumnKind::AlmostNumbers { .. } => numbers("numbers"),
        ColumnKind::MarkedNumbers => numbers("plain numbers"),
        _ if is_target && survey.with_units().is_some() && survey.n_distinct() > MAX_GUESSED_CLASSES as u64 => {
            numbers("numbers without units")
        }
        ColumnKind::AlmostDates => {
            let format = DateOrder::format_of(None, survey);
            (format!("dates such as {}", format.example()), survey.n_in_format(), survey.not_in_format(format))
        }
        _ => return Ok(()),
    };
    let odd = OddCells {
        path: path.to_owned(),
        column: survey.name.clone(),
        expected,
        n_expected,
        cells,
        counted,
        decimal_comma: survey.kind() == ColumnKind::AlmostNumbers { decimal_comma: true },
        thousands: survey.thousands().is_some(),
        is_target,
    };
    Err(Error::OddCells(Box::new(odd)))
}

fn guessed_target(path: &Path, survey: &Surveyed, dropped: &[usize]) -> Result<usize, Error> {
    let is_kept = |col: &usize| !dropped.contains(col);
    let all = || (0..survey.columns.len()).filter(is_kept);
    let named = |target: &str| all().find(|&col| survey.columns[col].name.eq_ignore_ascii_case(target));
    if let Some(col) = TARGETS.iter().find_map(|target| named(target)) {
        return Ok(col);
    }
    let is_index = |column: &ColumnSurvey| survey.index.contains(&column.name);
    let last = all().rfind(|&col| !is_index(&survey.columns[col]) && survey.columns[col].n_values() > 0);
    let last = last.or_else(|| all().next_back()).unwrap_or(0);
    let column = &survey.columns[last];
    if column.n_missing > 0 {
        let (path, column, n_missing) = (path.to_owned(), column.name.clone(), column.n_missing);
        return Err(Error::NoTarget { path, column, n_missing });
    }
    Ok(last)
}
