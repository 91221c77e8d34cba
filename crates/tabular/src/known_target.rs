use std::collections::HashMap;
use std::path::Path;

use brisk_table::{Categorical, ColumnOptions, Error as TableError, LabelKind, Missing, SourceError, Table};
use brisk_train::Scores;

use crate::detect::is_table;
use crate::error::Error;
use crate::mean::weighted_mean;
use crate::model::{TabularModel, constant_output};
use crate::predictions::Predictions;
use crate::reading::{decimal, nfc};
use crate::scratch::import_to_memory;
use crate::target::Target;
use crate::text_options::TextOptions;
use crate::validated::Validated;

/// The values that a file of rows to predict has in the column of the target: [`TabularModel::read_target`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KnownTarget {
    /// The number of the class of each row, or its number without the [offset](Target::offset); NaN if it is not known.
    labels: Vec<f32>,
    /// The values that are none of the classes of the model, and how many rows have each, the most frequent first.
    pub unknown_classes: Vec<(String, usize)>,
    /// How many rows have no value.
    pub n_missing: usize,
}

/// What predictions of rows are worth whose target is known: [`TabularModel::score_predictions`]. All rows count alike, also if
/// the model was trained with weights.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KnownScores {
    /// The metrics of the predictions.
    pub scores: Scores,
    /// Those of the best constant prediction of the same rows: the shares of their classes, or their mean.
    pub constant: Scores,
    /// How many rows have a target that the model knows; the others do not count.
    pub n_rows: usize,
}

impl TabularModel {
    /// Reads the column of the target of a file of rows, in their order; `None` if the file does not have the column. Rows
    /// without a value, or with one that is none of the [classes](Target::classes), are counted. Text is read as by
    /// [`read_rows_with`](Self::read_rows_with).
    ///
    /// # Errors
    /// [`Error::Table`] if the file cannot be read, or has text where the target is a number.
    pub fn read_target(
        &self,
        file: impl AsRef<Path>,
        text: &TextOptions,
        mut progress: impl FnMut(),
    ) -> Result<Option<KnownTarget>, Error> {
        let (path, target) = (file.as_ref(), self.target());
        let name = target.name();
        if is_table(path) {
            let table = Table::open(path)?;
            let has_target = table.label_names() == [name] && target.offset() == 0.0;
            return if has_target { KnownTarget::of_table(target, &table).map(Some) } else { Ok(None) };
        }
        let are_numbers = target.classes().is_empty();
        let mut columns = ColumnOptions {
            label_kind: LabelKind::Absent,
            features: Some(Vec::new()),
            missing: Missing::Keep,
            ..ColumnOptions::default()
        };
        if are_numbers {
            columns.features = Some(vec![name.into()]);
            columns.offsets = if target.offset() == 0.0 { Vec::new() } else { vec![(name.into(), target.offset())] };
        } else {
            columns.categorical = Categorical::Columns(vec![name.into()]);
        }
        let table = match import_to_memory(path, &text.import(columns), &mut progress) {
            Err(Error::Table(error)) if is_of_no_column(&error) => return Ok(None),
            imported => imported?.0,
        };
        let rows = 0..table.n_rows();
        if are_numbers {
            return Ok(Some(KnownTarget::new(table.rows::<f32>(rows)?.to_vec(), Vec::new())));
        }
        let texts: Vec<&str> = table.dictionaries().iter().flat_map(|values| values.values()).map(String::as_str).collect();
        // Code 0 is a missing value.
        let text_of = |&code: &u32| Some(texts[(code as usize).checked_sub(1)?]);
        Ok(Some(KnownTarget::of_texts(target, table.categories(rows)?.iter().map(text_of))))
    }

    /// The metrics of predictions of rows whose target is known, in the units of the target, and those of the best constant
    /// prediction of these rows. `None` unless there are as many rows of both, of which at least one has a known target.
    ///
    /// # Errors
    /// [`Error::Metric`](brisk_train::Error::Metric).
    pub fn score_predictions(&self, predictions: &Predictions, known: &KnownTarget) -> Result<Option<KnownScores>, Error> {
        let (outputs, labels) = (predictions.outputs(), &known.labels);
        let n_outputs = self.task().n_outputs();
        if predictions.n_rows() != labels.len() || labels.iter().all(|label| label.is_nan()) {
            return Ok(None);
        }
        let of_known = outputs.chunks_exact(n_outputs).zip(labels).filter(|(_, label)| !label.is_nan());
        let (outputs, labels): (Vec<&[f32]>, Vec<f32>) = of_known.unzip();
        let (outputs, n_rows) = (outputs.concat(), labels.len());
        let own = Validated { outputs, labels, weights: None };
        let constant = match self.target() {
            Target::Classes { .. } => self.target().constant_of(&own),
            Target::Number { .. } => vec![weighted_mean(own.labels.iter().map(|&label| label.into()), None)],
        };
        let of_constant = Validated { outputs: constant_output(&constant).repeat(n_rows), ..own.clone() };
        Ok(Some(KnownScores { scores: self.scores_at_threshold(own)?, constant: self.scores_of(of_constant)?, n_rows }))
    }
}

impl KnownTarget {
    fn new(labels: Vec<f32>, unknown_classes: Vec<(String, usize)>) -> Self {
        let n_unknown: usize = unknown_classes.iter().map(|(_, n_rows)| n_rows).sum();
        let n_missing = labels.iter().filter(|label| label.is_nan()).count() - n_unknown;
        Self { labels, unknown_classes, n_missing }
    }

    /// The labels of a table, which are numbers, or those of classes.
    fn of_table(target: &Target, table: &Table) -> Result<Self, Error> {
        let labels: Vec<f32> = match table.labels::<f32>() {
            Ok(labels) => labels.to_vec(),
            Err(TableError::WrongDType { .. }) => table.labels::<u32>()?.iter().map(|&class| class as f32).collect(),
            Err(error) => return Err(error.into()),
        };
        if target.classes().is_empty() {
            return Ok(Self::new(labels, Vec::new()));
        }
        let text = |&label: &f32| table.classes().get(label as usize).cloned().unwrap_or_else(|| (label + 0.0).to_string());
        let texts: Vec<String> = labels.iter().map(text).collect();
        Ok(Self::of_texts(target, texts.iter().zip(&labels).map(|(text, label)| (!label.is_nan()).then_some(text.as_str()))))
    }

    /// The classes of these names.
    fn of_texts<'a>(target: &Target, texts: impl Iterator<Item = Option<&'a str>>) -> Self {
        let (mut known, mut unknown) = (HashMap::new(), HashMap::<&str, usize>::new());
        let label = |text: Option<&'a str>| {
            let class = text.and_then(|text| *known.entry(text).or_insert_with(|| class_of(target, text)));
            if let (Some(text), None) = (text, class) {
                *unknown.entry(text).or_default() += 1;
            }
            class.map_or(f32::NAN, |class| class as f32)
        };
        let labels = texts.map(label).collect();
        let mut unknown: Vec<(String, usize)> = unknown.into_iter().map(|(text, n_rows)| (text.to_owned(), n_rows)).collect();
        unknown.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Self::new(labels, unknown)
    }
}

/// The class of a name, or of a number that is written in another way, such as 1.0 for 1.
fn class_of(target: &Target, text: &str) -> Option<usize> {
    let text = nfc(text.trim());
    let number = decimal(&text);
    let is_class = |class: &String| nfc(class) == text || number.is_some_and(|number| decimal(class) == Some(number));
    let classes = target.classes();
    classes.iter().position(|class| nfc(class) == text).or_else(|| classes.iter().position(is_class))
}

/// Whether the import failed since there is no such column.
fn is_of_no_column(error: &TableError) -> bool {
    matches!(error, TableError::Source { reason, .. } if matches!(**reason, SourceError::NoColumn { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_found_by_their_names_and_others_are_counted() {
        let classes = |names: [&str; 2]| Target::Classes {
            name: "y".to_owned(),
            classes: names.map(str::to_owned).to_vec(),
            labels: vec![0.0, 1.0],
        };
        let known = KnownTarget::of_texts(
            &classes(["no", "yes"]),
            [Some("yes"), None, Some("perhaps"), Some(" no"), Some("never"), Some("perhaps")].into_iter(),
        );
        let labels: Vec<Option<f32>> = known.labels.iter().map(|&label| Some(label).filter(|label| !label.is_nan())).collect();
        assert_eq!(labels, [Some(1.0), None, None, Some(0.0), None, None]);
        assert_eq!(known.unknown_classes, [("perhaps".to_owned(), 2), ("never".to_owned(), 1)]);
        assert_eq!(known.n_missing, 1);
        let numbers = classes(["3", "5"]);
        assert_eq!(["5", "3.0", "4"].map(|text| class_of(&numbers, text)), [Some(1), Some(0), None]);
    }
}
