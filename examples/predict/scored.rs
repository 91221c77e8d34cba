//! What predictions are worth, if the file has the target, too.

use std::path::Path;

use anyhow::Result;
use brisk_examples::print;
use brisk_examples::tabular::{Program, in_options_of, number, read};
use brisk_report::thousands;
use brisk_table::printable;
use brisk_tabular::{KnownScores, KnownTarget, TabularModel, TabularModels, TextOptions};
use brisk_train::StopFlag;
use serde_json::{Value, json};

use crate::output::Predicted;

/// The scores of the predictions of a target that the file has.
pub(crate) struct Scored {
    target: String,
    has_classes: bool,
    known: KnownTarget,
    scores: KnownScores,
}

/// Those of each target. A target that is not compared is named.
pub(crate) fn each(
    models: &TabularModels,
    predicted: &[Predicted],
    file: &Path,
    text: &TextOptions,
    stop: &StopFlag,
) -> Result<Vec<Option<Scored>>> {
    models.models().iter().zip(predicted).map(|(model, predicted)| of_target(model, predicted, file, text, stop)).collect()
}

fn of_target(
    model: &TabularModel,
    Predicted { predictions, .. }: &Predicted,
    file: &Path,
    text: &TextOptions,
    stop: &StopFlag,
) -> Result<Option<Scored>> {
    let (target, has_classes) = (printable(model.target().name()).to_string(), !model.target().classes().is_empty());
    // Predictions do not depend on the column, so that one that cannot be read is no error.
    let known = match read(file, Program::Predict, stop, |progress| Ok(model.read_target(file, text, progress)))? {
        Ok(Some(known)) => known,
        Ok(None) => return Ok(None),
        Err(error) => {
            print::note(format_args!(
                "warning: the predictions are not compared with the column {target}: {}",
                in_options_of(Program::Predict, error)
            ));
            return Ok(None);
        }
    };
    if !known.unknown_classes.is_empty() {
        let named = known.unknown_classes.iter().take(MAX_NAMED);
        let named: Vec<String> = named.map(|(class, n_rows)| format!("{} ({})", printable(class), count(*n_rows))).collect();
        let n_more = known.unknown_classes.len() - named.len();
        let more = if n_more > 0 { format!(" and {} more", count(n_more)) } else { String::new() };
        print::note(format_args!(
            "warning: the scores leave out rows with classes of {target} that the model does not know: {}{more}",
            named.join(", ")
        ));
    }
    let scores = model.score_predictions(predictions, &known)?;
    Ok(scores.map(|scores| Scored { target, has_classes, known, scores }))
}

/// How many unknown classes are named.
const MAX_NAMED: usize = 5;

fn count(n: usize) -> String {
    thousands(n as u64)
}

impl Scored {
    /// The scores next to those of a constant prediction.
    pub(crate) fn table(&self) -> String {
        let Self { target, has_classes, known, scores } = self;
        let missing = if known.n_missing > 0 { format!("; {} have no value", count(known.n_missing)) } else { String::new() };
        let constant = if *has_classes { "shares of the classes of these rows" } else { "mean of these rows" };
        let mut table = format!(
            "the file has the column {target}, with which the predictions of {} rows are compared{missing}\n{:<12}{:>14}   {constant}\n",
            count(scores.n_rows),
            "",
            "predictions"
        );
        for (name, own) in &scores.scores.values {
            // The R² of the mean is 0 but for the digits of an f32.
            let of_constant = scores.constant.get(name).map(|value| if value.abs() < 1e-9 { 0.0 } else { value });
            let constant = of_constant.map_or_else(|| "-".to_owned(), number);
            table += &format!("{name:<12}{:>14}   {constant}\n", number(*own));
        }
        table
    }
}

/// What the results say about them: nothing, if the file does not have the target.
pub(crate) fn json(scored: &Option<Scored>) -> Vec<(String, Value)> {
    let Some(Scored { known, scores, .. }) = scored else { return Vec::new() };
    let mut facts = vec![
        ("scored_rows".to_owned(), json!(scores.n_rows)),
        (
            "unknown_classes".to_owned(),
            known.unknown_classes.iter().map(|(class, n_rows)| (class.clone(), json!(n_rows))).collect(),
        ),
    ];
    for (prefix, scores) in [("scored", &scores.scores), ("constant", &scores.constant)] {
        facts.extend(scores.values.iter().map(|(name, value)| (format!("{prefix}_{name}"), json!(value))));
    }
    facts
}
