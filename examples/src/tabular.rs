//! Shared code of `tabular` and `predict`: how text is read, and errors in terms of their options.

use std::path::Path;

use anyhow::{Error, Result, anyhow};
use brisk_table::{Decimal, Delimiter, Header, ImportSetting, Remedy, printable};
use brisk_tabular::{Error as TabularError, TextOptions};
use brisk_train::StopFlag;
use clap::Args;

use crate::command_line::value::{MAX_COUNT, decimal, delimiter, one_of, whole};
use crate::import_error::{in_words_of, training, unused_setting};
use crate::interruptible::{self, StoppedImport, interruptible};
use crate::print::shell_word;

/// How text files are read.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct TextArguments {
    /// Character between the cells of a text file, or `tab` [default: found from the first lines]
    #[arg(long, value_name = "CHARACTER", help_heading = "Data", value_parser = delimiter)]
    pub delimiter: Option<Delimiter>,
    /// Whether the first row of a text file names the columns: auto, present, absent
    #[arg(long, value_name = "WHICH", help_heading = "Data", default_value = "auto",
        value_parser = one_of([("auto", Header::Auto), ("present", Header::Present), ("absent", Header::Absent)]))]
    pub header: Header,
    /// Lines to leave out at the start of a text file
    #[arg(long, value_name = "N", help_heading = "Data", default_value = "0", allow_negative_numbers = true,
        value_parser = whole::<usize>(0..=MAX_COUNT))]
    pub skip_lines: usize,
    /// Word for a missing value, besides empty cells and the usual NA, NaN, null, None, -, ., ?, \N, #N/A, #DIV/0!; may be
    /// repeated
    #[arg(long, value_name = "WORD", help_heading = "Data", allow_hyphen_values = true)]
    pub missing_value: Vec<String>,
    /// Decimal mark of numbers in text, a point or a comma [default: . ; in predict that of the training table]
    #[arg(long, value_name = "MARK", help_heading = "Data", value_parser = decimal())]
    pub decimal: Option<Decimal>,
}

impl TextArguments {
    /// These options, in addition to those of a model.
    pub fn added_to(&self, text: &TextOptions) -> TextOptions {
        let mut missing_values = text.missing_values.clone();
        missing_values.extend(self.missing_value.iter().filter(|word| !text.missing_values.contains(word)).cloned());
        TextOptions {
            delimiter: self.delimiter.unwrap_or_default(),
            header: self.header,
            skip_lines: self.skip_lines,
            decimal: self.decimal.unwrap_or(text.decimal),
            n_unnamed_columns: text.n_unnamed_columns,
            missing_values,
        }
    }
}

/// Which of the two programs reports an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `tabular`.
    Tabular,
    /// `predict`.
    Predict,
}

/// Reads a table by `read`, which calls the function that it gets from time to time.
///
/// # Errors
/// As `read`, with the options of the program as remedies; if a stop was requested.
pub fn read<T>(
    path: &Path,
    program: Program,
    stop: &StopFlag,
    read: impl FnOnce(&mut dyn FnMut()) -> Result<T, TabularError>,
) -> Result<T> {
    let done = interruptible(|| read(&mut || interruptible::check(stop)));
    let done = done.ok_or_else(|| StoppedImport::new(path, stop))?;
    done.map_err(|error| in_options_of(program, error))
}

/// The error with the options of a program as remedies.
pub fn in_options_of(program: Program, error: TabularError) -> Error {
    match &error {
        TabularError::Table(error) => match unused_setting(error) {
            Some((ImportSetting::KeepIndex, reason, path)) => {
                anyhow!("{}: `--keep-index` {reason}; leave it out", printable(path))
            }
            _ => anyhow!(in_words_of(error, |remedy| self::remedy(program, remedy))),
        },
        TabularError::OddCells(odd) => {
            let decimal = match (odd.decimal_comma, odd.thousands) {
                (true, true) => "pass `--decimal ,` if they are decimal, remove them if they are between thousands, ",
                (true, false) => "pass `--decimal ,`, ",
                (false, _) => "",
            };
            let keep = if odd.is_target {
                "`--task classes` if they are classes".to_owned()
            } else {
                format!("`--categorical {}` to keep them as categories", shell_word(printable(&odd.column)))
            };
            let missing = match &odd.cells[..] {
                [first, others @ ..] if others.iter().all(|other| other.text == first.text) => {
                    format!("`--missing-value {}` if it means a missing value", shell_word(printable(&first.text)))
                }
                _ => "`--missing-value WORD` for a word that means a missing value".to_owned(),
            };
            anyhow!("{odd}; {decimal}correct them, or pass {missing}, or {keep}")
        }
        TabularError::FewLabels(few) => {
            anyhow!("{few}; correct them, or pass `--task number` if they are numbers to predict")
        }
        TabularError::NotPositive { .. } => anyhow!("{}; correct it, or pass `--target-scale standard`", without_remedy(&error)),
        TabularError::NotNumber { .. } => {
            anyhow!("{}; leave the option out, or pass `--task number` if it is one", without_remedy(&error))
        }
        TabularError::RareValues { column, .. } => {
            anyhow!(
                "{}; pass `--drop {}`, or a lower `--min-category-rows`",
                without_remedy(&error),
                shell_word(printable(column))
            )
        }
        TabularError::TooManyValues { column, .. } => {
            let column = shell_word(printable(column));
            anyhow!(
                "{}; pass `--drop {column}` if it identifies rows, or `--min-category-rows 2` or more, so that rare values become one",
                without_remedy(&error)
            )
        }
        TabularError::FewIntervalRows { .. } => {
            anyhow!("{}; choose lower `--intervals`, or use more rows, or `--folds`", without_remedy(&error))
        }
        TabularError::WatchedClass { .. } => {
            anyhow!("{}; pass `--monitor valid_log_loss`, or use more rows of the other class", without_remedy(&error))
        }
        TabularError::ThresholdClass { .. } => {
            anyhow!("{}; leave `--threshold` out, or use more rows of the other class", without_remedy(&error))
        }
        TabularError::NoFeatures { left_out, n_dropped: 1.., .. } if left_out.is_empty() => {
            anyhow!("{}; name fewer of them in `--drop`", without_remedy(&error))
        }
        TabularError::NoFeatures { left_out, .. } if left_out.is_empty() => {
            anyhow!("{}; `--delimiter` chooses another one", without_remedy(&error))
        }
        TabularError::NoFeatures { .. } => {
            anyhow!("{}; keep one of them with `--categorical`", without_remedy(&error))
        }
        TabularError::NoTarget { .. } => {
            anyhow!("{}; name the target with `--target`", without_remedy(&error))
        }
        TabularError::TooManyClasses { .. } => {
            let problem = without_remedy(&error);
            anyhow!("{problem}; name another column with `--target`, or pass `--task classes` if they are right")
        }
        TabularError::TargetKind { .. } => {
            anyhow!("{}; name another column with `--target`, or choose another `--task`", without_remedy(&error))
        }
        TabularError::UnusedOption { path, option, format } => {
            let option = match *option {
                "missing_values" => "--missing-value",
                "skip_lines" => "--skip-lines",
                "keep_index" => "--keep-index",
                "date_order" => "--date-order",
                "text" => "--delimiter, --header, --skip-lines, --missing-value or --decimal",
                other => return anyhow!("{}: `--{other}` has no effect on {format}; leave it out", printable(path)),
            };
            anyhow!("{}: `{option}` has no effect on {format}; leave it out", printable(path))
        }
        _ => error.into(),
    }
}

/// The message without the way out, which names the library's options.
fn without_remedy(error: &TabularError) -> String {
    let message = error.to_string();
    message.rsplit_once("; ").map_or(message.clone(), |(problem, _)| problem.to_owned())
}

/// Remedies as options of the program.
fn remedy(program: Program, remedy: Remedy) -> Option<&'static str> {
    Some(match (program, remedy) {
        (_, Remedy::SkipLines) => "leave out the lines above it with `--skip-lines`",
        (_, Remedy::HeaderPresent) => "pass `--header present`",
        (_, Remedy::HeaderAbsent) => "pass `--header absent`",
        (_, Remedy::SkipRows | Remedy::FillMissing | Remedy::KeepMissing | Remedy::LabelsAsClasses) => return None,
        (Program::Tabular, Remedy::OtherLabel) => "name another column with `--target`",
        (Program::Tabular, Remedy::DropColumn) => "leave the column out with `--drop`",
        (Program::Tabular, Remedy::MakeCategorical) => "keep its values as categories with `--categorical`",
        (Program::Predict, Remedy::MakeCategorical) => "pass `--missing-value WORD` or `--decimal ,` if that is what it means",
        (Program::Predict, Remedy::DropColumn) => return None,
        (_, other) => return training(other),
    })
}

/// A score as text: four decimals, or less for large numbers; small ones by their first three digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.1}"),
        size if size > 0.0 && size < 0.001 => format!("{value:.2e}"),
        _ => format!("{value:.4}"),
    }
}
