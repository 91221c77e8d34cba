//! Dates in the formats that files have.

use std::fs;

use brisk_table::DateFormat;
use brisk_tabular::{DateOrder, Decoding, DetectOptions, Detected, Error, Splitting, TabularModel, TabularWarning};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A file of these columns, and a number to predict.
fn detect(header: &str, cells: impl Fn(usize) -> String, options: &DetectOptions) -> Outcome<Result<Detected, Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rows.csv");
    let rows = (0..60).map(|row| format!("{};{}.5\n", cells(row), row * 7 % 60)).collect::<String>();
    fs::write(&path, format!("{header};y\n{rows}"))?;
    Ok(TabularModel::detect(&path, options))
}

/// How the only column is decoded, and the warnings.
#[track_caller]
fn check(cell: impl Fn(usize) -> String, expected: &str, n_warnings: usize) {
    let detected = detect("when", &cell, &DetectOptions::default()).expect("a file").expect("it is read");
    let format = DateFormat::named(expected).expect("a format");
    assert_eq!(detected.columns.decoded, [("when".to_owned(), Decoding::Date(format))], "{}", cell(0));
    assert_eq!(detected.warnings.len(), n_warnings, "{:?}", detected.warnings);
}

#[test]
fn a_column_of_dates_has_the_format_of_all_its_cells() {
    let (day, month) = (|row: usize| row % 28 + 1, |row: usize| row % 12 + 1);
    check(|row| format!("2024-{:02}-{:02}", month(row), day(row)), "%Y-%m-%d", 0);
    check(|row| format!("{:02}/{:02}/2024", month(row), day(row)), "%m/%d/%Y", 0);
    check(|row| format!("{:02}/{:02}/2024", day(row), month(row)), "%d/%m/%Y", 0);
    check(|row| format!("{:02}.{:02}.2024 14:05", day(row), month(row)), "%d.%m.%Y", 0);
    check(|row| format!("{}-Mar-2024", day(row)), "%d-%b-%Y", 0);
    check(|row| format!("Mar {}, 2024", day(row)), "%b %d, %Y", 0);
    check(|row| format!("2024{:02}{:02}", month(row), day(row)), "%Y%m%d", 0);
    // Years of two digits are named.
    check(|row| format!("{}/{}/24 14:05", day(row), month(row)), "%d/%m/%y", 1);
    check(|row| format!("{}-Mar-69", day(row)), "%d-%b-%y", 1);
    // No number says which is the day.
    check(|row| format!("{:02}/{:02}/2024 2:05 PM", row % 11 + 1, month(row)), "%m/%d/%Y", 1);
    check(|row| format!("{:02}.{:02}.2024", row % 11 + 1, month(row)), "%d.%m.%Y", 1);
}

fn decoding(detected: &Detected, column: &str) -> Option<Decoding> {
    detected.columns.decoded.iter().find(|(name, _)| name == column).map(|(_, decoding)| *decoding)
}

#[test]
fn the_order_of_day_and_month_is_that_of_other_columns_or_the_one_asked_for() -> Outcome {
    let cells = |row: usize| format!("{0:02}/{1:02}/2024;{2}.{1}.2023", row % 12 + 1, row % 11 + 1, row % 28 + 1);
    let format = |pattern| DateFormat::named(pattern).map(Decoding::Date);
    let detected = detect("a;b", cells, &DetectOptions::default())??;
    assert_eq!(decoding(&detected, "a"), format("%d/%m/%Y"), "as in `b`");
    let TabularWarning::DateOrder { column, example, order } = &detected.warnings[0] else { panic!("{:?}", detected.warnings) };
    assert_eq!((column.as_str(), example.as_str(), *order), ("a", "01/01/2024", DateOrder::DayFirst));
    let options = DetectOptions { date_order: Some(DateOrder::MonthFirst), ..DetectOptions::default() };
    let detected = detect("a;b", cells, &options)??;
    assert_eq!(decoding(&detected, "a"), format("%m/%d/%Y"));
    assert_eq!(decoding(&detected, "b"), format("%d.%m.%Y"), "whose cells say it");
    assert!(detected.warnings.is_empty(), "{:?}", detected.warnings);
    let error = detect("a;b", |row| format!("{row};{}", row % 7), &options)?.expect_err("there are no dates");
    assert!(matches!(error, Error::UnusedOption { option: "date_order", .. }), "{error}");
    Ok(())
}

#[test]
fn nearly_all_dates_are_an_error_that_shows_the_others() -> Outcome {
    let cell = |row: usize| if row == 40 { "03/17/2024".to_owned() } else { format!("{}/{}/2024", row % 28 + 1, row % 12 + 1) };
    let error = detect("when", cell, &DetectOptions::default())?.expect_err("an odd cell");
    let Error::OddCells(odd) = &error else { panic!("{error}") };
    assert_eq!((odd.n_expected, odd.cells.len(), odd.cells[0].line), (59, 1, 42), "{error}");
    assert!(error.to_string().contains("59 dates such as 17/03/2024"), "{error}");
    Ok(())
}

#[test]
fn rows_are_split_by_times_in_any_format() -> Outcome {
    let options = DetectOptions { time: Some("when".to_owned()), ..DetectOptions::default() };
    let detected = detect("when", |row| format!("{}.{}.2024", row % 28 + 1, row % 12 + 1), &options)??;
    let Splitting::Times { times, .. } = &detected.splitting else { panic!("{:?}", detected.splitting) };
    assert_eq!((times.len(), times[0]), (detected.table.n_rows(), 1_704_067_200.0));
    assert_eq!(times[14] - times[2], 12.0 * 86_400.0);
    Ok(())
}
