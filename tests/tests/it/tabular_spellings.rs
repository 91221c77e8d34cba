//! Tables whose cells may be read in more than one way, and options of `tabular` and `predict` that have no effect on them.

use std::fs;

use brisk_tabular::{DetectOptions, Error, Splitting, TabularModel, TabularWarning};

use crate::place::Place;
use crate::run::noise;

/// Options of a training that takes little time.
const SHORT: [&str; 8] = ["--model", "mlp", "--hidden", "4", "--epochs", "1", "--out", "model"];

/// Rows of these cells and a label.
fn rows(header: &str, n_rows: usize, cells: impl Fn(usize) -> String) -> String {
    let rows = (0..n_rows).map(|row| format!("{},{}\n", cells(row), ["no", "yes"][row % 2]));
    format!("{header},name\n") + &rows.collect::<String>()
}

/// Trains on `rows.csv`; returns what is said.
#[track_caller]
fn trained(place: &Place, text: &str, args: &[&str]) -> String {
    place.write("rows.csv", text);
    let (output, stderr) = place.run("tabular", &[&["rows.csv"][..], &SHORT, args].concat());
    assert!(output.status.success(), "{stderr}");
    stderr
}

/// Predicts the rows of `text`; returns the predictions.
#[track_caller]
fn predicted(place: &Place, text: &str) -> String {
    place.write("new.csv", text);
    place.succeed("predict", &["model", "new.csv", "--out", "out.csv"]);
    fs::read_to_string(place.path("out.csv")).expect("it was written")
}

#[test]
fn marks_that_may_be_between_thousands_are_named() {
    let place = Place::new();
    let cells = |row: usize| if row.is_multiple_of(3) { format!("{}", row + 1) } else { format!("{}.{:03}", row + 1, row) };
    let said = trained(&place, &rows("price", 240, cells), &[]);
    assert!(said.contains("column `price` has 2.001 beside whole numbers below 1000"), "{said}");
    // Fractions, of which some are below 1.
    let said = trained(&place, &rows("price", 240, |row| format!("{}.{row:03}", row % 3)), &[]);
    assert!(!said.contains("beside whole numbers"), "{said}");
    // The mark that the error proposes.
    place.write("rows.csv", rows("price", 240, |row| format!("\"{},{row:03}\"", row + 1)));
    let words = ["decimal commas, or with commas between thousands", "`--decimal ,` if they are decimal, remove them if"];
    place.refuse("tabular", &[&["rows.csv"][..], &SHORT].concat(), &words);
}

#[test]
fn values_are_found_in_other_spellings() {
    let place = Place::new();
    // The label is that of the category.
    let text = |values: [&str; 2]| {
        let rows = (0..300).map(|row| format!("{},{},{}\n", noise(row, 0), values[row % 2], ["no", "yes"][row % 2]));
        "size,value,name\n".to_owned() + &rows.collect::<String>()
    };
    for (trained_on, options, spellings) in [
        (["3", "7"], &["--categorical", "value"][..], [["3.0", "7.0"], ["3", "7"]]),
        (["3.0", "7.0"], &["--categorical", "value"], [["3", "7"], ["3.00", "7.00"]]),
        (["True", "False"], &[], [["true", "false"], ["TRUE", "FALSE"]]),
    ] {
        trained(&place, &text(trained_on), options);
        let expected = predicted(&place, &text(trained_on));
        for spelling in spellings {
            assert_eq!(predicted(&place, &text(spelling)), expected, "{trained_on:?} as {spelling:?}");
        }
        let (_, said) = place.run("predict", &["model", "new.csv", "--out", "out.csv"]);
        assert!(!said.contains("did not occur"), "{said}");
    }
}

#[test]
fn columns_without_names_are_those_of_training() {
    let place = Place::new();
    let text = |n_columns: usize| {
        let row = |row: usize| (0..n_columns).map(|col| noise(row, col).to_string()).collect::<Vec<_>>().join(",");
        (0..200).map(|at| row(at) + "\n").collect::<String>()
    };
    let args = ["rows.csv", "--header", "absent", "--task", "number"];
    place.write("rows.csv", text(4));
    place.succeed("tabular", &[&args[..], &["--target", "0", "--drop", "3"], &SHORT].concat());
    place.write("three.csv", text(3));
    let words = ["three.csv: has 3 columns without names", "had 4"];
    place.refuse("predict", &["model", "three.csv", "--header", "absent", "--out", "out.csv"], &words);
    place.succeed("predict", &["model", "rows.csv", "--header", "absent", "--out", "out.csv"]);
    // Without the last column, the others are where they were.
    place.succeed("tabular", &[&args[..], &["--target", "3"], &SHORT].concat());
    place.succeed("predict", &["model", "three.csv", "--header", "absent", "--out", "out.csv"]);
}

#[test]
fn rows_are_ordered_by_the_time_in_utc() -> Result<(), Error> {
    let place = Place::new();
    // The rows of the first half are later by UTC, although their clock shows the same times.
    let time = |row: usize| match row < 100 {
        true => format!("2024-01-01T{:02}:{:02}:00-12:00", row / 10, row % 10),
        false => format!("2024-01-01T{:02}:{:02}:00+00:00", (row - 100) / 10, row % 10),
    };
    place.write("rows.csv", rows("at", 200, time));
    let options = DetectOptions { time: Some("at".to_owned()), ..DetectOptions::default() };
    let detected = TabularModel::detect(place.path("rows.csv"), &options)?;
    let Splitting::Times { times, .. } = &detected.splitting else { panic!("{:?}", detected.splitting) };
    assert!(times[..100].iter().all(|&early| times[100..].iter().all(|&late| early > late)), "{times:?}");
    assert_eq!(times[0], 12.0 * 3600.0 + 1_704_067_200.0);
    Ok(())
}

#[test]
fn whether_day_or_month_is_first_is_found_or_said() {
    let place = Place::new();
    let open = rows("when,x", 200, |row| format!("{:02}/{:02}/2024,{}", row % 12 + 1, row % 11 + 1, noise(row, 0)));
    let said = trained(&place, &open, &[]);
    let words =
        ["warning: column `when` has dates such as \"01/01/2024\"", "the month is taken to be", "`--date-order day-first`"];
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    let said = trained(&place, &open, &["--date-order", "day-first"]);
    assert!(!said.contains("`when` has dates") && said.contains("`when`: dates such as 17/03/2024"), "{said}");
    // The model keeps it.
    let predict = |cell: &str, words: &[&str]| {
        place.write("new.csv", format!("when,x\n03/04/2024,0.5\n{cell},0.5\n"));
        place.refuse("predict", &["model", "new.csv", "--out", "out.csv"], words);
    };
    predict("04/17/2024", &["new.csv: line 3, column `when`: found \"04/17/2024\", expected a date such as 17/03/2024"]);
    predict("2024-04-03", &["line 3, column `when`: found \"2024-04-03\""]);
    assert!(!predicted(&place, "when,x\n17/04/2024,0.5\n").is_empty());
    // The cells decide.
    let decided = rows("when,x", 200, |row| format!("{:02}/{:02}/2024,{}", row % 28 + 1, row % 12 + 1, noise(row, 0)));
    let said = trained(&place, &decided, &[]);
    assert!(!said.contains("`when` has dates") && said.contains("`when`: dates such as 17/03/2024"), "{said}");
    let args = [&["rows.csv"][..], &SHORT, &["--date-order", "day-first"]].concat();
    place.refuse("tabular", &args, &["rows.csv", "`--date-order` has no effect"]);
}

#[test]
fn columns_without_values_are_left_out() {
    let place = Place::new();
    let text = (0..200).map(|row| format!("{},{},\n", noise(row, 0), noise(row, 1))).collect::<String>();
    let said = trained(&place, &format!("a,b,\n{text}"), &["--task", "number"]);
    assert!(said.contains("column `column_2` is left out: it has no value in any row"), "{said}");
    assert!(said.contains("target: b, a number"), "{said}");
}

#[test]
fn why_no_column_is_left_is_said() {
    let place = Place::new();
    place.write("rows.csv", rows("day,id", 200, |row| format!("{:02}:15,x{row}", row % 24)));
    let args = [&["rows.csv"][..], &SHORT].concat();
    place.refuse("tabular", &args, &["`day` is left out: \"00:15\"", "`id` is left out", "`--categorical`"]);
    place.write("rows.csv", "only\n".to_owned() + &"1\n2\n".repeat(50));
    place.refuse("tabular", &args, &["no column is left for features", "`--delimiter`"]);
}

#[test]
fn the_delimiter_may_be_any_character() {
    let place = Place::new();
    let text = rows("a,b", 200, |row| format!("{},{}", noise(row, 0), noise(row, 1)));
    for (mark, args) in [("|", &[][..]), ("~", &["--delimiter", "~"])] {
        let said = trained(&place, &text.replace(',', mark), args);
        assert!(said.contains("columns: 2 numbers") && said.contains("target: name, 2 classes: no, yes"), "{mark}: {said}");
        place.succeed("predict", &[&["model", "rows.csv", "--out", "out.csv"][..], args].concat());
    }
}

#[test]
fn many_warnings_of_one_kind_are_a_few_lines() {
    let place = Place::new();
    let names: Vec<String> = (0..40).map(|col| format!("c{col}")).collect();
    let text = rows(&format!("size,{}", names.join(",")), 200, |row| format!("{}{}", noise(row, 0), ",1".repeat(40)));
    let said = trained(&place, &text, &[]);
    assert_eq!(said.matches("is left out: all training rows have the same value there").count(), 5, "{said}");
    assert!(said.contains("the same as of column `c0` holds for 35 more columns"), "{said}");
}

#[test]
fn words_and_limits_without_effect_are_named() {
    let place = Place::new();
    let text = rows("size", 200, |row| if row % 9 == 0 { "-999".to_owned() } else { noise(row, 0).to_string() });
    let said = trained(&place, &text, &["--missing-value", "-999", "--missing-value", "-99"]);
    assert!(said.contains("no cell is \"-99\"") && !said.contains("no cell is \"-999\""), "{said}");
    let args = [&["rows.csv"][..], &SHORT].concat();
    place.refuse("tabular", &[&args[..], &["--keep-index"]].concat(), &["`--keep-index` has no effect", "rows.csv"]);
    place.refuse("tabular", &[&args[..], &["--min-category-rows", "3"]].concat(), &["`--min-category-rows` has no effect"]);
    let warnings = TabularModel::detect(place.path("rows.csv"), &DetectOptions::default()).expect("it is a table").warnings;
    assert!(warnings.iter().any(|warning| matches!(warning, TabularWarning::Outlier { .. })), "{warnings:?}");
}
