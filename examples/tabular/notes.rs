//! What is printed about the table before training.

use std::mem::{Discriminant, discriminant};

use brisk_examples::print;
use brisk_loader::RowSource;
use brisk_report::thousands;
use brisk_table::{DateFormat, ImportWarning, printable};
use brisk_tabular::{Decoding, Detected, Preprocessing, Reading, Splitting, TabularRemedy, TabularWarning, Target, TargetScale};

/// How many rows there are of each set, and what they are split by.
pub(crate) fn rows(train: &impl RowSource, valid: Option<&impl RowSource>, test: &impl RowSource, splitting: &Splitting) {
    let valid = valid.map(|valid| format!(", {} to validate", thousands(valid.n_rows() as u64)));
    let [train, test] = [train.n_rows(), test.n_rows()].map(|n| thousands(n as u64));
    let by = match splitting {
        Splitting::Random => String::new(),
        Splitting::Groups { column, .. } => format!(", split by the groups of `{}`", printable(column)),
        Splitting::Equal { .. } => ", equal rows in one set".to_owned(),
        Splitting::Times { column, .. } => format!(", split by the times of `{}`", printable(column)),
    };
    print::note(format_args!("rows: {train} to train on{}, {test} to test{by}", valid.unwrap_or_default()));
}

/// What the columns and the target are, and what is odd about them.
pub(crate) fn columns(
    detected: &Detected,
    about_columns: &[TabularWarning],
    preprocessing: &Preprocessing,
    (target, is_kind_found): (&Target, bool),
) {
    let with_missing = preprocessing.numbers().iter().filter(|column| column.has_indicator).count();
    print::note(format_args!(
        "columns: {} ({with_missing} with missing values), {}",
        counted(preprocessing.numbers().len(), "number", "numbers"),
        counted(preprocessing.categories().len(), "category", "categories")
    ));
    for (column, n_rare) in preprocessing.rare_values() {
        let values = counted(n_rare, "value is", "values are");
        print::note(format_args!(
            "column `{}`: {values} in fewer than {} training rows, and one with unknown ones",
            printable(column),
            preprocessing.min_category_rows()
        ));
    }
    let is_left_out = |column: &str| preprocessing.left_out(&detected.columns).any(|other| other == column);
    for (column, decoding) in detected.columns.decoded.iter().filter(|(column, _)| !is_left_out(column)) {
        let how = match decoding {
            Decoding::Date(format) => {
                let example = if *format == DateFormat::ISO { String::new() } else { format!(" such as {}", format.example()) };
                format!("dates{example}, which become {}", parts_of_dates(preprocessing, column))
            }
            _ => "numbers close to each other, which become differences, so that they keep their digits".to_owned(),
        };
        print::note(format_args!("column `{}`: {how}", printable(column)));
    }
    warnings(about_columns, target);
    for word in &detected.unused_missing_values {
        print::note(format_args!("warning: no cell is {:?}, which `--missing-value` names", printable(word)));
    }
    let are_numbers = target.classes().iter().all(|class| class.parse::<f64>().is_ok());
    let number =
        if is_kind_found && target.classes().len() > 2 && are_numbers { "; `--task number` predicts a number" } else { "" };
    let other = if detected.target_is_guess { "; `--target COLUMN` chooses another" } else { "" };
    print::note(format_args!("target: {}, {}{number}{other}", printable(target.name()), described(target)));
}

/// "year, month, weekday and days", without those that are the same in all training rows.
fn parts_of_dates(preprocessing: &Preprocessing, column: &str) -> String {
    let parts = preprocessing.numbers().iter().filter(|number| number.column == column).map(|number| match number.reading {
        Reading::Date { part, .. } => part.name(),
        _ => "",
    });
    let parts: Vec<&str> = parts.collect();
    match &parts[..] {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => parts.concat(),
    }
}

/// The warnings; of many of one kind, the first ones.
pub(crate) fn warnings(found: &[TabularWarning], target: &Target) {
    const MAX_OF_KIND: usize = 5;
    let mut kinds: Vec<(Kind, usize)> = Vec::new();
    for found in found {
        let kind = kind_of(found);
        let at = kinds.iter().position(|(other, _)| *other == kind).unwrap_or(kinds.len());
        if at == kinds.len() {
            kinds.push((kind, 0));
        }
        kinds[at].1 += 1;
        if kinds[at].1 <= MAX_OF_KIND {
            warning(found, target);
        }
    }
    for (kind, n) in kinds.into_iter().filter(|(_, n)| *n > MAX_OF_KIND) {
        let example = found.iter().find(|found| kind_of(found) == kind).and_then(TabularWarning::column).unwrap_or_default();
        print::note(format_args!(
            "warning: the same as of column `{}` holds for {} more columns",
            printable(example),
            thousands((n - MAX_OF_KIND) as u64)
        ));
    }
}

type Kind = (Discriminant<TabularWarning>, Option<Discriminant<ImportWarning>>);

fn kind_of(warning: &TabularWarning) -> Kind {
    let of_import = if let TabularWarning::Import(warning) = warning { Some(discriminant(warning)) } else { None };
    (discriminant(warning), of_import)
}

/// A warning, and the option that changes what it is about.
pub(crate) fn warning(warning: &TabularWarning, target: &Target) {
    let column = print::shell_word(printable(warning.column().unwrap_or_default()));
    let is_target = warning.column() == Some(target.name());
    let option = match warning.remedy() {
        _ if matches!(warning, TabularWarning::Codes { .. }) => format!("`--categorical {column}` says that they are codes"),
        TabularRemedy::Drop => format!("`--drop {column}` leaves it out"),
        TabularRemedy::GroupEqual => "`--group-equal` keeps equal rows in one set".to_owned(),
        TabularRemedy::KeepIndex => "`--keep-index` keeps it".to_owned(),
        TabularRemedy::DateOrder => match warning {
            TabularWarning::DateOrder { order, .. } => format!("`--date-order {}` reads them the other way", order.other()),
            _ => "`--date-order` says which".to_owned(),
        },
        TabularRemedy::Correct => match warning {
            TabularWarning::RareClass { .. } => "correct the file if it is a mistake",
            TabularWarning::UntrainedClass { .. } => "split the rows in another way, or leave those of the class out",
            TabularWarning::Unlabelled { .. } => "`predict` finds their values",
            TabularWarning::Import(ImportWarning::RowsInCell { .. }) => "correct the quotes in the file",
            TabularWarning::SameInTraining { .. } => "correct the file if it should have others",
            TabularWarning::Empty { .. } => "correct the file if it should have values",
            TabularWarning::Totals { .. } => "remove it from the file",
            TabularWarning::ShortYears { .. } => "write years of four digits if that is not meant",
            TabularWarning::Units { .. } => "write the numbers without their units if they are numbers",
            TabularWarning::Thousands { .. } => "remove such marks from the file",
            _ => "correct the file if they mean the same",
        }
        .to_owned(),
        TabularRemedy::Scale => "subtract a number from the column in the file, or scale it".to_owned(),
        TabularRemedy::Header => "`--header present` or `--header absent` says which".to_owned(),
        TabularRemedy::MissingValue => {
            let (value, ranks) = match warning {
                TabularWarning::Outlier { value, .. } if is_target => (value.as_str(), ""),
                TabularWarning::Outlier { value, .. } => (value.as_str(), ", and `--scaling quantile` keeps the others apart"),
                TabularWarning::PlaceholderDate { value, .. } => (value.as_str(), ""),
                _ => ("WORD", ""),
            };
            let value = print::shell_word(printable(value));
            format!("`--missing-value {value}` says that it means a missing value{ranks}")
        }
        _ if is_target => "`--task classes` makes its values classes".to_owned(),
        _ => format!("`--categorical {column}` makes its values categories"),
    };
    print::note(format_args!("warning: {warning}; {option}"));
}

/// "1 category", "2 categories".
fn counted(n: usize, one: &str, several: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { several })
}

fn described(target: &Target) -> String {
    match target {
        Target::Classes { classes, .. } => {
            const SHOWN: usize = 5;
            let shown: Vec<_> = classes.iter().take(SHOWN).map(|class| printable(class).to_string()).collect();
            let more = if classes.len() > SHOWN { ", …" } else { "" };
            format!("{} classes: {}{more}", classes.len(), shown.join(", "))
        }
        Target::Number { scale: TargetScale::Log, mean, std, .. } => {
            format!(
                "a number, whose logarithm has the mean {} and the standard deviation {}",
                digits(*mean, *std),
                digits(*std, *std)
            )
        }
        Target::Number { offset, mean, std, .. } => {
            format!("a number, mean {}, standard deviation {}", digits(offset + mean, *std), digits(*std, *std))
        }
    }
}

/// A number, with digits down to a millionth of the standard deviation of such numbers.
fn digits(number: f64, std: f64) -> String {
    if std.is_nan() || !(1e-5..1e16).contains(&std) || number.abs() >= 1e16 {
        return format!("{number:.6e}");
    }
    let n_decimals = (6.0 - std.log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{number:.n_decimals$}");
    let shown = if n_decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    shown.to_owned()
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn numbers_have_the_digits_that_say_something() {
        let shown = [
            (3.034_564_256_668_091, 1.25),
            (1_700_000_300.123_456_8, 250.0),
            (-0.25, 0.5),
            (0.0, 1.0),
            (4e30, 2e30),
            (2e-9, 1e-9),
        ];
        let shown = shown.map(|(number, std)| digits(number, std));
        assert_eq!(shown, ["3.034564", "1700000300.12346", "-0.25", "0", "4.000000e30", "2.000000e-9"]);
    }
}
