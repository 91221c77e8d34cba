//! What the columns of a file are whose columns have types.

use std::collections::HashMap;
use std::path::Path;

use brisk_table::{
    Categorical, ColumnKind, ColumnOptions, ColumnRef, ColumnSurvey, Dictionary, Error as TableError, ImportOptions, LabelKind,
    Missing, SourceError,
};

use crate::error::Error;
use crate::scratch::import_to_memory;
use crate::target::are_few;
use crate::text_options::TextOptions;

/// Whole numbers up to this are exact in `f32`.
pub(super) const MAX_EXACT: f64 = 16_777_216.0;

/// Whole numbers up to this are exact in `f64`.
pub(super) const MAX_EXACT_F64: f64 = 9_007_199_254_740_992.0;

/// Fractions are shifted if they are this many times as large as their spread.
pub(super) const FAR_FROM_ZERO: f64 = 256.0;

/// What the columns of a file are.
pub(super) struct Surveyed {
    pub(super) columns: Vec<ColumnSurvey>,
    /// Those that are the index of a data frame, whether they are among the columns or not.
    pub(super) index: Vec<String>,
    /// The words for missing values that no cell has.
    pub(super) unused_missing_values: Vec<String>,
}

/// Surveys a file whose columns have types, by importing it with text as categories. Columns of other types, which have to be
/// left out, are empty.
pub(super) fn survey_typed(
    path: &Path,
    drop: &[String],
    keep_index: bool,
    text: &TextOptions,
    progress: &mut dyn FnMut(),
) -> Result<Surveyed, Error> {
    let missing_values = text.missing_values.clone();
    let mut columns = ColumnOptions {
        label_kind: LabelKind::Absent,
        categorical: Categorical::Auto,
        missing: Missing::Keep,
        missing_values: missing_values.clone(),
        keep_index,
        ..ColumnOptions::default()
    };
    let mut import = |columns: &ColumnOptions| import_to_memory(path, &ImportOptions::with_columns(columns), progress);
    // Which columns the words of `drop` mean is only known with the names of all.
    let mut refused: Vec<(ColumnRef, Error)> = Vec::new();
    let (mut table, mut report) = loop {
        match import(&columns) {
            Ok(imported) => break imported,
            Err(error) => match column_of_type(&error).filter(|_| !drop.is_empty()) {
                Some(column) => {
                    columns.drop.push(column.clone());
                    refused.push((column, error));
                }
                None => return Err(error),
            },
        }
    };
    let unused_missing_values = if missing_values.is_empty() {
        Vec::new()
    } else {
        let (table, _) = import(&ColumnOptions { missing_values: Vec::new(), ..columns.clone() })?;
        let is_text =
            |word: &str| table.dictionaries().iter().flat_map(Dictionary::values).any(|value| value.eq_ignore_ascii_case(word));
        let features = table.rows::<f32>(0..table.n_rows())?;
        let is_number = |word: &str| word.parse().is_ok_and(|number: f32| features.contains(&number));
        let is_unused = |word: &&String| !is_text(word.trim()) && !is_number(word.trim());
        missing_values.iter().filter(is_unused).cloned().collect()
    };
    // Numbers of which f32 has too few digits are read again, as text.
    let is_large = |(_, column): &(&String, &brisk_table::ColumnStatistics)| {
        let largest = column.min.abs().max(column.max.abs());
        largest >= MAX_EXACT || (largest > 0.0 && largest >= FAR_FROM_ZERO * (column.max - column.min))
    };
    let large: Vec<&String> = report.column_names.iter().zip(&report.statistics).filter(is_large).map(|(name, _)| name).collect();
    if !large.is_empty() {
        let text = report.dictionaries.iter().map(|dictionary| dictionary.name());
        let text = text.chain(large.iter().map(|name| name.as_str())).map(ColumnRef::from).collect();
        columns.categorical = Categorical::Columns(text);
        (table, report) = import(&columns)?;
    }
    let n_rows = report.n_rows as u64;
    let numbers = report.column_names.iter().zip(&report.statistics);
    let mut surveys: HashMap<String, ColumnSurvey> =
        numbers.map(|(name, statistics)| (name.clone(), ColumnSurvey::of_numbers(name, statistics, n_rows))).collect();
    let codes = table.categories(0..table.n_rows())?;
    let width = report.dictionaries.len();
    for (col, dictionary) in report.dictionaries.iter().enumerate() {
        let mut first_and_count = vec![(0, 0); dictionary.n_codes()];
        for (row, &code) in codes.iter().skip(col).step_by(width).enumerate() {
            let (first, count) = &mut first_and_count[code as usize];
            *first = if *count == 0 { row as u64 } else { *first };
            *count += 1;
        }
        let mut survey = ColumnSurvey::new(dictionary.name(), text.decimal, &missing_values);
        for (value, &(first, count)) in dictionary.values().iter().zip(&first_and_count[1..]) {
            survey.add(value, first, count);
        }
        survey.n_missing += first_and_count[0].1;
        surveys.insert(survey.name.clone(), survey);
    }
    let names = &report.source_columns;
    let dropped =
        drop.iter().map(|word| ColumnRef::Word(word.clone()).find(names, "columns to drop").map_err(|reason| reason.at(path)));
    let dropped = dropped.collect::<Result<Vec<usize>, _>>()?;
    let is_dropped = |column: &ColumnRef| dropped.iter().any(|&col| *column == ColumnRef::Name(names[col].clone()));
    if let Some((_, error)) = refused.into_iter().find(|(column, _)| !is_dropped(column)) {
        return Err(error);
    }
    // In the order of the file, by which columns are named by their indices.
    let empty = |name: &String| ColumnSurvey::new(name, text.decimal, &missing_values);
    let columns = report.source_columns.iter().map(|name| surveys.remove(name).unwrap_or_else(|| empty(name))).collect();
    Ok(Surveyed { columns, index: report.index_columns, unused_missing_values })
}

/// Whether `f32` has enough digits for the numbers.
pub(super) fn is_precise(survey: &ColumnSurvey) -> bool {
    let (largest, spread) = (survey.min.abs().max(survey.max.abs()), survey.max - survey.min);
    if survey.are_whole { largest <= MAX_EXACT } else { spread == 0.0 || largest < FAR_FROM_ZERO * spread }
}

/// Whether the numbers are closer to each other than to zero.
pub(super) fn are_far_from_zero(survey: &ColumnSurvey) -> bool {
    survey.max.abs().max(survey.min.abs()) > survey.max - survey.min
}

/// Whether the numbers have too many different values for classes.
pub(super) fn are_many_numbers(survey: &ColumnSurvey) -> bool {
    let may_be_classes = if survey.are_whole { may_be_classes(survey) } else { survey.n_distinct() <= 2 };
    survey.kind() == ColumnKind::Numbers && !may_be_classes
}

/// Whether whole numbers are few enough for classes.
pub(super) fn may_be_classes(survey: &ColumnSurvey) -> bool {
    are_few(survey.n_distinct() as usize, survey.n_values() as usize)
}

/// The column that an import refused for its type.
fn column_of_type(error: &Error) -> Option<ColumnRef> {
    let Error::Table(cause) = error else { return None };
    let TableError::Source { reason, .. } = &**cause else { return None };
    let SourceError::ColumnType { column, .. } = &**reason else { return None };
    Some(ColumnRef::Name(column.clone()))
}
