//! Errors of the importers, with remedies in terms of a program's options.

use std::path::Path;

use brisk_table::{Error, ImportSetting, ImportWarning, Remedy, SourceError, Unused};

/// The option of an import that has no effect, why, and the source.
pub fn unused_setting(error: &Error) -> Option<(ImportSetting, Unused, &Path)> {
    match error {
        Error::Source { path, reason } => match **reason {
            SourceError::UnusedSetting { setting, reason } => Some((setting, reason, path)),
            _ => None,
        },
        _ => None,
    }
}

/// The error as a program prints it, where `words` gives the remedies that the program has.
pub fn in_words_of(error: &Error, words: impl Fn(Remedy) -> Option<&'static str>) -> String {
    with_ways_out(error.problem(), error.remedies(), words)
}

/// The warning as a program prints it, where `words` gives the remedies that the program has.
pub fn warning_in_words_of(warning: &ImportWarning, words: impl Fn(Remedy) -> Option<&'static str>) -> String {
    with_ways_out(warning.problem(), warning.remedies(), words)
}

fn with_ways_out(problem: String, remedies: &[Remedy], words: impl Fn(Remedy) -> Option<&'static str>) -> String {
    let mut ways: Vec<_> = remedies.iter().filter_map(|remedy| words(*remedy)).collect();
    ways.dedup();
    let ways = match ways.as_slice() {
        [] => return problem,
        [way] => (*way).to_owned(),
        [first, last] => format!("{first} or {last}"),
        [first @ .., last] => format!("{}, or {last}", first.join(", ")),
    };
    format!("{problem}; {ways}")
}

/// Remedies as options of the example `import`.
pub fn import(remedy: Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::SkipRows => "pass `--on-bad-row skip`",
        Remedy::KeepMissing | Remedy::KeepNotFinite => "pass `--missing keep`",
        Remedy::FillMissing => "replace it with `--missing mean` or `--missing NUMBER`",
        Remedy::FillMissingWithNumber => "pass `--missing NUMBER`",
        Remedy::OtherLabel => "name another column with `--label`",
        Remedy::LabelsAsNumbers => "pass `--label-kind number`",
        Remedy::LabelsAsClasses => "pass `--label-kind classes`",
        Remedy::AddClass => "leave out `--like`",
        Remedy::OtherWeight => "name another column with `--weight`",
        Remedy::DropColumn => "leave the column out with `--drop`",
        Remedy::MakeCategorical => "store the column as codes with `--categorical`",
        Remedy::StoreAsF32 => "pass `--dtype f32`",
        Remedy::SubtractOffset => "subtract a number from it with `--offset`",
        Remedy::KeepIndex => "keep the index with `--keep-index`",
        Remedy::SkipLines => "leave out the lines above it with `--skip-lines`",
        Remedy::HeaderPresent => "pass `--header present`",
        Remedy::HeaderAbsent => "pass `--header absent`",
        Remedy::NameFormat => "name its format with `--format`",
        Remedy::NameFeatures => "name the features with `--features`",
        Remedy::NameLabels | Remedy::NameLabelsFile => "name the labels with `--labels`",
        Remedy::ReadAsCifar10 => "pass `--cifar-labels ten` for CIFAR-10",
        Remedy::ReadAsCifar100 => "pass `--cifar-labels fine` or `--cifar-labels coarse` for CIFAR-100",
        Remedy::ConvertChannels => "choose the channels with `--channels`",
        Remedy::ScaleImages => "resize them with `--size`",
        other => return of_the_file(other),
    })
}

/// Remedies as options of the examples that train.
pub fn training(remedy: Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::SkipRows => "pass `--on-bad-row skip`",
        Remedy::OtherLabel => "name another column with `--label`",
        Remedy::FillMissing => "replace it with `--missing` of the example import",
        Remedy::DropColumn => "leave the column out with `--drop` of the example import",
        Remedy::SkipLines => "leave out the lines above it with `--skip-lines` of the example import",
        Remedy::HeaderPresent => "pass `--header present` of the example import",
        Remedy::HeaderAbsent => "pass `--header absent` of the example import",
        other => return of_the_file(other),
    })
}

/// Remedies that change the file itself.
fn of_the_file(remedy: Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::Correct => "correct it",
        Remedy::SortRow => "sort the row",
        Remedy::RemoveFile => "remove it",
        Remedy::MoveToClass => "move it into the folder of its class",
        Remedy::ConvertText => "convert the file to UTF-8",
        Remedy::RenameColumn => "rename one of them",
        Remedy::ScaleColumn => "scale the column",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use brisk_table::CsvOptions;

    use super::*;

    #[track_caller]
    fn check(text: &str, words: fn(Remedy) -> Option<&'static str>, expected: &str) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (rows, table) = (folder.path().join("rows.csv"), folder.path().join("table.safetensors"));
        fs::write(&rows, text).expect("it can be written");
        let error = brisk_table::import(&rows, &table, &CsvOptions::default()).expect_err("it is wrong");
        let message = in_words_of(&error, words);
        assert_eq!(message.split_once("rows.csv").map(|(_, message)| message), Some(expected), "{message}");
    }

    #[test]
    fn remedies_are_options_of_the_program() {
        let missing = "label,mass\n1,80.4\n0,\n";
        let found = ", line 3, column 2 (`mass`): found \"\", expected a number, this is a missing value; ";
        check(missing, |_| None, found.trim_end_matches("; "));
        let ways = "pass `--missing keep`, replace it with `--missing mean` or `--missing NUMBER`, or pass `--on-bad-row skip`";
        check(missing, import, &format!("{found}{ways}"));
        let ways = "replace it with `--missing` of the example import or pass `--on-bad-row skip`";
        check(missing, training, &format!("{found}{ways}"));
        let found = ": the header has 2 columns, line 3 has 3; ";
        check("label,mass\n1,80.4\n0,1,2\n", training, &format!("{found}correct it or pass `--on-bad-row skip`"));
    }
}
