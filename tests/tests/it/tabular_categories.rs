//! Rare values of categories, by the examples `tabular` and `predict`.

use std::fs;

use crate::place::Place;
use crate::run::noise;

#[test]
fn rare_values_are_merged_and_told() {
    let place = Place::new();
    let colour = |row: usize| if row % 40 == 7 { format!("shade {row}") } else { ["red", "green"][row % 2].to_owned() };
    let row = |row: usize| {
        format!("{},{},{}\n", noise(row, 0), colour(row), if row.is_multiple_of(2) { 5.0 } else { 1.0 } + noise(row, 1))
    };
    place.write("rows.csv", "size,colour,price\n".to_owned() + &(0..600).map(row).collect::<String>());
    let run = |more: &[&str]| {
        let args = ["rows.csv", "--model", "mlp", "--epochs", "2", "--hidden", "4", "--out", "model", "--json", "out.json"];
        let (output, stderr) = place.run("tabular", &[&args[..], more].concat());
        (output.status.success(), stderr, place.json("out.json"))
    };
    let (_, stderr, results) = run(&[]);
    assert!(!stderr.contains("unknown ones") && results["rare_values"] == serde_json::json!({}), "{stderr} {results}");
    let (_, stderr, results) = run(&["--min-category-rows", "3"]);
    assert!(stderr.contains("column `colour`: ") && stderr.contains(" in fewer than 3 training rows"), "{stderr}");
    assert!(results["rare_values"]["colour"].as_u64() > Some(5), "{results}");
    let preprocessing = &place.json("model/model.json")["preprocessing"];
    assert_eq!(preprocessing["min_category_rows"], 3);
    assert_eq!(preprocessing["categories"][0]["values"].as_array().map(Vec::len), Some(2), "{preprocessing}");
    place.write("new.csv", "size,colour\n0.5,red\n0.5,shade 7\n0.5,mauve\n");
    let (_, stderr) = place.run("predict", &["model", "new.csv", "--out", "prices.csv"]);
    assert!(stderr.contains("2 of 3 values did not occur in training, or in fewer than 3 rows"), "{stderr}");
    let text = fs::read_to_string(place.path("prices.csv")).expect("it was written");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 4 && lines[2] == lines[3], "rare and unknown are one: {text}");
    let words = ["column `colour`", "at least 1000", "--drop colour", "--min-category-rows"];
    place.refuse("tabular", &["rows.csv", "--min-category-rows", "1000", "--out", "none"], &words);
}

/// Columns that have one value, or none, in all training rows, which depends on the seed, or in all rows.
#[test]
fn columns_that_training_rows_do_not_differ_in_are_left_out() {
    let place = Place::new();
    let row = |row: usize| {
        let sparse = if row == 77 || row == 191 { "3.5" } else { "" };
        let word = if row == 50 { "word" } else { "" };
        format!("{},{sparse},{word},7,{}\n", noise(row, 0), noise(row, 0) + 0.1 * noise(row, 1))
    };
    place.write("rows.csv", "x,sparse,word,same,y\n".to_owned() + &(0..400).map(row).collect::<String>());
    let mut left_out = std::collections::HashSet::new();
    for seed in ["0", "1", "2", "3", "4", "5"] {
        let args =
            ["rows.csv", "--model", "mlp", "--epochs", "1", "--hidden", "4", "--folds", "1", "--seed", seed, "--out", "model"];
        let (output, stderr) = place.run("tabular", &[&args[..], &["--categorical", "word", "--json", "out.json"]].concat());
        assert!(output.status.success(), "{stderr}");
        assert!(stderr.contains("`same` is left out") && !stderr.contains("`same` has the same value"), "{stderr}");
        for column in ["sparse", "word"] {
            if stderr.contains(&format!("`{column}` is left out")) {
                left_out.insert(column);
                assert!(place.json("out.json")["warnings"].to_string().contains(column), "{stderr}");
            }
        }
        place.write("new.csv", "x,sparse,word\n0.5,1,other\n");
        place.succeed("predict", &["model", "new.csv", "--out", "out.csv"]);
    }
    assert!(left_out.contains("word"), "one row in ten is not trained on: {left_out:?}");
    // If there is nothing else, a single value is kept, from which the mean is learned.
    place.write("rows.csv", "same,y\n".to_owned() + &(0..100).map(|row| format!("7,{}\n", noise(row, 0))).collect::<String>());
    place.succeed("tabular", &["rows.csv", "--model", "mlp", "--epochs", "1", "--hidden", "4", "--out", "model"]);
}

#[test]
fn a_category_of_many_values_names_the_ways_out() {
    let place = Place::new();
    let row = |row: usize| format!("{},word {},{}\n", noise(row, 0), row * 7919 % 13_000, noise(row, 1));
    place.write("rows.csv", "x,name,y\n".to_owned() + &(0..26_000).map(row).collect::<String>());
    let small = ["rows.csv", "--model", "mlp", "--epochs", "1", "--hidden", "4", "--out", "model"];
    place.refuse("tabular", &small, &["`name`", "at most 10000", "`--drop name`", "`--min-category-rows 2`"]);
    place.succeed("tabular", &[&small[..], &["--min-category-rows", "2"]].concat());
}

#[test]
fn whole_numbers_that_become_classes_may_be_numbers() {
    let place = Place::new();
    let said = |classes: &dyn Fn(usize) -> String, options: &[&str]| {
        let rows: String = (0..400).map(|row| format!("{},{}\n", noise(row, 0), classes(row))).collect();
        place.write("rows.csv", format!("x,y\n{rows}"));
        let small = ["rows.csv", "--model", "mlp", "--epochs", "1", "--hidden", "4", "--out", "model"];
        let (output, stderr) = place.run("tabular", &[&small[..], options].concat());
        assert!(output.status.success(), "{stderr}");
        stderr.contains("`--task number`")
    };
    let count = |row: usize| (row % 14).to_string();
    assert!(said(&count, &[]) && !said(&count, &["--task", "classes"]) && !said(&count, &["--task", "number"]));
    assert!(!said(&|row| (row % 2).to_string(), &[]) && !said(&|row| format!("kind {}", row % 14), &[]));
}

/// In a file of one column, a blank line may be meant as a missing value.
#[test]
fn blank_lines_of_one_column_are_counted() {
    let place = Place::new();
    let row = |row: usize| {
        format!("{},{}\n", if row.is_multiple_of(9) { String::new() } else { noise(row, 0).to_string() }, noise(row, 0))
    };
    place.write("rows.csv", "x,y\n".to_owned() + &(0..200).map(row).collect::<String>());
    place.succeed("tabular", &["rows.csv", "--model", "mlp", "--epochs", "1", "--hidden", "4", "--out", "model"]);
    for (text, n_blank, n_rows) in [
        ("x\n\n0.1\n\r\n\n0.2\n\n\n", 3, 2),
        ("x\n0.1\n0.2\n\n", 0, 2),
        ("x,z\n0.1,1\n\n0.2,1\n", 0, 2),
        ("x\n0.1\n\"\"\nNA\n0.2\n", 0, 4),
    ] {
        place.write("new.csv", text);
        let (output, stderr) = place.run("predict", &["model", "new.csv", "--out", "out.csv"]);
        let is_said = stderr.contains(&format!("warning: {n_blank} blank lines are no rows"));
        assert!(
            output.status.success() && is_said == (n_blank > 0) && stderr.contains("blank lines") == is_said,
            "{text:?}: {stderr}"
        );
        let lines = fs::read_to_string(place.path("out.csv")).expect("predictions").lines().count();
        assert_eq!(lines, n_rows + 1, "{text:?}");
    }
}
