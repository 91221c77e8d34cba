//! Rows of tables that are split by groups or by time, and models of folds.

use std::collections::HashSet;

use brisk_loader::{RowSource, Subset, labels_of};
use brisk_table::Table;
use brisk_tabular::{DetectOptions, Detected, Error, Splitting, TabularModel, TabularWarning};

use crate::place::Place;
use crate::run::noise;

/// Visits of patients: a size, the day, a class.
fn visits(n: usize, n_patients: usize) -> String {
    let row = |row: usize| {
        let size = noise(row, 0);
        let day = format!("20{:02}-{:02}-{:02}", 10 + row * 7 % 10, row * 5 % 12 + 1, row * 11 % 28 + 1);
        format!("{size},patient {},{day},{},{}\n", row * row % n_patients, row % 40, if size > 0.0 { "yes" } else { "no" })
    };
    "size,patient,day,hour,ill\n".to_owned() + &(0..n).map(row).collect::<String>()
}

fn detect(place: &Place, options: DetectOptions) -> Result<Detected, Error> {
    TabularModel::detect(place.path("rows.csv"), &DetectOptions { target: Some("ill".to_owned()), ..options })
}

/// The rows of a part, in the table.
fn rows_of(part: &Subset<&Table>) -> Vec<usize> {
    (0..part.n_rows() as u32).map(|row| part.row(row) as usize).collect()
}

#[test]
fn groups_are_not_divided() -> Result<(), Error> {
    let place = Place::new();
    place.write("rows.csv", visits(900, 31));
    // As text, and as numbers.
    for (column, n_columns) in [("patient", 2), ("hour", 1)] {
        let detected = detect(&place, DetectOptions { group: Some(column.to_owned()), ..DetectOptions::default() })?;
        let Splitting::Groups { groups, .. } = &detected.splitting else { panic!("{:?}", detected.splitting) };
        assert!(detected.columns.numbers.len() == n_columns && !detected.columns.numbers.iter().any(|name| name == column));
        let parts = detected.split(3, [0.7, 0.1, 0.2])?;
        let of_parts = parts.each_ref().map(|part| rows_of(part).iter().map(|&row| groups[row]).collect::<HashSet<_>>());
        assert!(of_parts[0].is_disjoint(&of_parts[1]) && of_parts[2].is_disjoint(&(&of_parts[0] | &of_parts[1])));
        let sizes = parts.each_ref().map(RowSource::n_rows);
        assert!(sizes.iter().sum::<usize>() == 900 && (500..750).contains(&sizes[0]) && sizes[1] > 20, "{sizes:?}");
        // Folds have whole groups, too.
        let [rest, _] = detected.split(3, [0.8, 0.2])?;
        let rows = rows_of(&rest);
        for fold in detected.folds(&rest, &rest, 3, 4)? {
            let of = |part: &Subset<_>| -> HashSet<u64> {
                (0..part.n_rows() as u32).map(|row| groups[rows[part.row(row) as usize]]).collect()
            };
            assert!(of(&fold.train).is_disjoint(&of(&fold.valid)) && fold.valid.n_rows() > 0);
        }
        let error = detected.folds(&rest, &rest, 3, 50).expect_err("there are fewer groups");
        assert!(matches!(error, Error::Folds { n_folds: 50, .. }), "{error}");
    }
    Ok(())
}

#[test]
fn the_latest_rows_are_tested() -> Result<(), Error> {
    let place = Place::new();
    place.write("rows.csv", visits(900, 31));
    for column in ["day", "hour"] {
        let detected = detect(&place, DetectOptions { time: Some(column.to_owned()), ..DetectOptions::default() })?;
        let Splitting::Times { times, .. } = &detected.splitting else { panic!("{:?}", detected.splitting) };
        assert_eq!(detected.columns.numbers.len() + detected.columns.decoded.len(), 3, "the time remains a feature");
        let parts = detected.split(3, [0.7, 0.1, 0.2])?;
        let ends = parts.each_ref().map(|part| {
            let times: Vec<f64> = rows_of(part).iter().map(|&row| times[row]).collect();
            [times.iter().copied().fold(f64::INFINITY, f64::min), times.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
        });
        assert!(ends[0][1] < ends[1][0] && ends[1][1] < ends[2][0], "{ends:?}");
        let sizes = parts.each_ref().map(RowSource::n_rows);
        assert!(sizes[0].abs_diff(630) < 30 && sizes[2].abs_diff(180) < 30, "{sizes:?}");
        let [rest, _] = detected.split(3, [0.8, 0.2])?;
        assert!(matches!(detected.folds(&rest, &rest, 3, 4), Err(Error::FoldsOfTimes { .. })), "{column}");
    }
    let both = DetectOptions { time: Some("day".to_owned()), drop: vec!["day".to_owned()], ..DetectOptions::default() };
    let detected = detect(&place, both)?;
    assert!(detected.columns.decoded.is_empty() && matches!(detected.splitting, Splitting::Times { .. }), "dropped");
    Ok(())
}

/// 150 different rows of two numbers and a category, of which nothing follows, six times each.
fn copies() -> String {
    let row = |row: usize| {
        let of = row * 7 % 150;
        format!(
            "{},{},{},{}\n",
            noise(of, 0),
            noise(of, 1),
            ["a", "b", "c"][of % 3],
            if noise(of, 2) > 0.0 { "yes" } else { "no" }
        )
    };
    "size,weight,kind,ill\n".to_owned() + &(0..900).map(row).collect::<String>()
}

#[test]
fn copies_of_rows_are_said_or_kept_together() -> Result<(), Error> {
    let place = Place::new();
    place.write("rows.csv", copies());
    let detected = detect(&place, DetectOptions::default())?;
    let [train, test] = detected.split(3, [0.8, 0.2])?;
    let equal = detected.equal_rows(&train, &test)?;
    let Some(TabularWarning::EqualRows { n_rows, n_test: 180 }) = equal else { panic!("{equal:?}") };
    assert!(n_rows > 150, "{n_rows}");

    let detected = detect(&place, DetectOptions { group_equal: true, ..DetectOptions::default() })?;
    let of = |part: &Subset<&Table>| rows_of(part).iter().map(|row| row * 7 % 150).collect::<HashSet<_>>();
    let [train, valid, test] = detected.split(3, [0.7, 0.1, 0.2])?;
    let [of_train, of_valid, of_test] = [&train, &valid, &test].map(of);
    assert!(of_train.is_disjoint(&of_valid) && of_test.is_disjoint(&(&of_train | &of_valid)) && of_test.len() == 30);
    assert_eq!(detected.equal_rows(&train, &test)?, None);
    for fold in detected.folds(&train, &train, 3, 4)? {
        let rows = rows_of(&train);
        let of = |part: &Subset<_>| -> HashSet<usize> {
            (0..part.n_rows() as u32).map(|row| rows[part.row(row) as usize] * 7 % 150).collect()
        };
        assert!(of(&fold.train).is_disjoint(&of(&fold.valid)) && fold.valid.n_rows() > 0);
    }
    assert!(matches!(detected.folds(&train, &train, 3, 120), Err(Error::Folds { n_folds: 120, .. })));

    // Few different values are equal by chance.
    let row = |row: usize| format!("{},{},{}\n", row * 7919 % 11, row / 3 % 5, ["yes", "no"][row % 2]);
    place.write("rows.csv", "size,weight,ill\n".to_owned() + &(0..900).map(row).collect::<String>());
    let detected = detect(&place, DetectOptions::default())?;
    let [train, test] = detected.split(3, [0.8, 0.2])?;
    assert_eq!(detected.equal_rows(&train, &test)?, None);
    Ok(())
}

#[test]
fn the_program_says_how_many_test_rows_occur_in_training() {
    let place = Place::new();
    place.write("rows.csv", copies());
    let run = |options: &[&str]| {
        let args = [&["rows.csv", "--target", "ill", "--json", "out.json"][..], options, &SMALL].concat();
        let (output, stderr) = place.run("tabular", &args);
        assert!(output.status.success(), "{stderr}");
        (stderr, place.json("out.json")["warnings"].to_string())
    };
    for said in [run(&[]), run(&["--folds", "2"])] {
        assert!(said.0.contains("of 180 test rows") && said.0.contains("`--group-equal`"), "{}", said.0);
        assert!(said.1.contains("of 180 test rows"), "{}", said.1);
    }
    let said = run(&["--group-equal"]);
    assert!(!said.0.contains("test rows have") && said.0.contains("equal rows in one set"), "{}", said.0);
    let (output, stderr) = place.run("tabular", &["rows.csv", "--group-equal", "--group", "kind"]);
    assert!(output.status.code() == Some(2) && stderr.contains("--group-equal"), "{stderr}");
}

/// Rows of which one in so many is ill.
fn one_ill_in(n: usize, of: usize) -> String {
    let row = |row: usize| format!("{},{},{}\n", noise(row, 0), noise(row, 1), if row % of == of / 2 { "yes" } else { "no" });
    "size,weight,ill\n".to_owned() + &(0..n).map(row).collect::<String>()
}

#[test]
fn each_set_has_a_row_of_each_class() -> Result<(), Error> {
    let place = Place::new();
    let rows = |part: &Subset<&Table>| {
        let labels = labels_of(part).expect("labels");
        [0.0, 1.0].map(|class| labels.iter().filter(|&&label| label == class).count())
    };
    for (n_ill, at_least) in [(1, [1, 0, 0]), (2, [1, 0, 0]), (3, [1, 1, 1]), (4, [1, 1, 1])] {
        place.write("rows.csv", one_ill_in(800, 800 / n_ill));
        let detected = detect(&place, DetectOptions::default())?;
        for seed in 0..10 {
            let parts = detected.split(seed, [0.7, 0.1, 0.2])?;
            let of_parts = parts.each_ref().map(rows);
            let [all_no, all_yes] = [0, 1].map(|class| of_parts.iter().map(|counts| counts[class]).sum::<usize>());
            assert_eq!(
                (all_no + all_yes, parts.each_ref().map(rows_of).concat().iter().collect::<HashSet<_>>().len()),
                (800, 800)
            );
            // By names, "no" is the first class.
            let n_yes = of_parts.map(|counts| counts[1]);
            assert!(n_yes.iter().zip(at_least).all(|(n, least)| *n >= least), "{n_ill}, {seed}: {n_yes:?}");
        }
    }
    Ok(())
}

#[test]
fn few_rows_of_a_class_are_validated_by_or_the_class_is_named() {
    let place = Place::new();
    place.write("rows.csv", one_ill_in(1000, 250));
    let args =
        ["rows.csv", "--target", "ill", "--effort", "good", "--members", "2", "--hidden", "4", "--epochs", "1", "--out", "model"];
    let (output, stderr) = place.run("tabular", &args);
    assert!(output.status.success() && stderr.contains("3 folds of the training rows"), "{stderr}");

    // One row of the class, which is trained on.
    place.write("rows.csv", one_ill_in(1000, 1000));
    let refuse = |args: &[&str], words: &[&str]| {
        place.refuse("tabular", &[&["rows.csv", "--target", "ill"][..], args, &SMALL].concat(), words);
    };
    refuse(&[], &["`ill`", "100 validation rows", "class \"no\"", "`--monitor valid_log_loss`"]);
    let log_loss = ["--monitor", "valid_log_loss"];
    refuse(&[&log_loss[..], &["--threshold", "f1"]].concat(), &["`ill`", "100 validation rows", "class \"no\"", "`--threshold`"]);
    place.succeed("tabular", &[&["rows.csv", "--target", "ill"][..], &log_loss, &SMALL].concat());
}

#[test]
fn classes_that_nothing_predicts_are_said() {
    let place = Place::new();
    let row = |row: usize, is_noise: bool| {
        let of = if is_noise { noise(row, 2) } else { noise(row, 0) + 0.4 * noise(row, 2) };
        format!("{},{},{}\n", noise(row, 0), noise(row, 1), if of > 0.0 { "yes" } else { "no" })
    };
    for (is_noise, seeds) in [(true, &["0", "1", "2", "3"][..]), (false, &["0"])] {
        place.write("rows.csv", "size,weight,ill\n".to_owned() + &(0..900).map(|at| row(at, is_noise)).collect::<String>());
        for seed in seeds {
            let args = ["rows.csv", "--seed", seed, "--json", "out.json"];
            let (output, stderr) = place.run("tabular", &[&args[..], &SMALL, &["--lr", "0.01"]].concat());
            assert!(output.status.success(), "{stderr}");
            let is_said = stderr.contains("shares of the classes");
            assert_eq!(is_said, is_noise, "seed {seed}: {stderr}");
            let gain = &place.json("out.json")["test_gain"];
            assert_eq!(gain[0].as_f64() > gain[1].as_f64().map(|error| 2.0 * error), !is_noise, "{gain}");
        }
    }
}

#[test]
fn classes_that_no_training_row_has_are_named() {
    let place = Place::new();
    // The class "late" is in the last rows only.
    let row = |row: usize| {
        let name = if row >= 290 { "late" } else { ["a", "b"][row % 2] };
        format!("{},2024-{:02}-{:02},{name}\n", noise(row, 0), row / 28 + 1, row % 28 + 1)
    };
    place.write("rows.csv", "size,day,ill\n".to_owned() + &(0..300).map(row).collect::<String>());
    let args = [&["rows.csv", "--target", "ill", "--json", "out.json"][..], &SMALL].concat();
    let (output, stderr) = place.run("tabular", &[&args[..], &["--time", "day"]].concat());
    assert!(
        output.status.success() && stderr.contains("the class \"late\" in 10 rows, none of which is a training row"),
        "{stderr}"
    );
    assert!(place.json("out.json")["warnings"].to_string().contains("late"), "{stderr}");
    let (output, stderr) = place.run("tabular", &args);
    assert!(output.status.success() && !stderr.contains("late\" in"), "{stderr}");
}

const SMALL: [&str; 8] = ["--model", "mlp", "--epochs", "2", "--hidden", "4", "--out", "model"];

#[test]
fn columns_that_rows_cannot_be_split_by_are_refused() {
    let place = Place::new();
    place.write("rows.csv", visits(300, 2));
    let refuse = |args: &[&str], words: &[&str]| {
        place.refuse("tabular", &[&["rows.csv", "--target", "ill"][..], args, &SMALL].concat(), words);
        assert!(!place.path("model/model.json").exists(), "{args:?}: there is no model");
    };
    refuse(&["--group", "person"], &["`person`", "\"patient\""]);
    refuse(&["--group", "patient"], &["`patient` has 2 groups", "at least 3"]);
    refuse(&["--group", "ill"], &["`ill`", "two roles"]);
    refuse(&["--time", "patient"], &["`patient`", "patient 0", "2024-01-31"]);
    let (output, stderr) =
        place.run("tabular", &[&["rows.csv", "--target", "ill", "--time", "day", "--group", "patient"][..], &SMALL].concat());
    assert!(output.status.code() == Some(2) && stderr.contains("--group") && stderr.contains("--time"), "{stderr}");
    let (output, stderr) = place.run("tabular", &[&["rows.csv", "--time", "day", "--folds", "3"][..], &SMALL].concat());
    assert!(output.status.code() == Some(2) && stderr.contains("--folds") && stderr.contains("--time"), "{stderr}");
    place.write("rows.csv", visits(150, 9));
    refuse(&["--folds", "100"], &["100 folds", "rows of class"]);
    refuse(&["--folds", "5", "--group", "patient"], &["5 folds", "groups of `patient`"]);
    place.write("rows.csv", visits(300, 9).replace("patient 4", ""));
    refuse(&["--group", "patient"], &["`patient` has no group in", "first in row"]);
    let gaps = visits(300, 9).lines().enumerate().fold(String::new(), |text, (line, row)| {
        let cells: Vec<&str> = row.split(',').collect();
        text + &[cells[0], cells[1], if line == 8 { "" } else { cells[2] }, cells[3], cells[4]].join(",") + "\n"
    });
    place.write("rows.csv", gaps);
    refuse(&["--time", "day"], &["`day` has no time in 1 rows, first in row 7"]);
}

/// A folder has the files of its model, or of its models, only.
#[test]
fn nothing_is_left_of_the_models_that_others_replace() {
    let place = Place::new();
    place.write("rows.csv", visits(200, 20));
    let mut files = Vec::new();
    for targets in ["size,ill,hour", "size,ill", "ill", "size,ill"] {
        place.succeed("tabular", &[&["rows.csv", "--target", targets][..], &SMALL].concat());
        let folders = ["", "0", "1", "2"].map(|folder| place.path("model").join(folder));
        let names = |folder: &std::path::Path| -> Vec<String> {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        files.push(folders.map(|folder| names(&folder).join(" ")));
    }
    let model = "model.json parameters.safetensors report.html";
    assert_eq!(files[0], ["0 1 2 targets.json", model, model, model]);
    assert_eq!(files[1], ["0 1 targets.json", model, model, ""]);
    assert_eq!(files[2], [model, "", "", ""]);
    assert_eq!(files[3], files[1]);
}

#[test]
fn a_model_of_folds_is_the_mean_of_their_models() {
    let place = Place::new();
    place.write("rows.csv", visits(600, 60));
    let fast = ["--model", "mlp", "--epochs", "12", "--hidden", "16", "--lr", "0.01", "--json", "out.json", "--out", "model"];
    for (options, target) in [(&[][..], "ill"), (&["--group", "patient"], "ill"), (&["--drop", "ill"], "size")] {
        let args = [&["rows.csv", "--target", target, "--folds", "3"][..], options, &fast].concat();
        let shown = place.succeed("tabular", &args);
        let results = place.json("out.json");
        let score = if target == "ill" { "log_loss" } else { "rmse" };
        let folds = &results["folds"][score];
        let values: Vec<f64> = folds["values"].as_array().expect("values").iter().filter_map(|x| x.as_f64()).collect();
        let mean = values.iter().sum::<f64>() / 3.0;
        assert!(values.len() == 3 && (folds["mean"].as_f64().expect("a mean") - mean).abs() < 1e-9, "{results}");
        assert!(shown.contains("out of 3 folds"), "{shown}");
        let network = &place.json("model/model.json")["network"];
        assert_eq!((&network["kind"], network["members"].as_array().map(Vec::len)), (&"ensemble".into(), Some(3)));
        assert_eq!(results["weights"].as_array().map(Vec::len), Some(3));
        if target == "ill" {
            assert!(results["test_accuracy"].as_f64() > Some(0.85), "{results}");
        }
        assert_eq!(results["importance"]["columns"].as_array().map(Vec::len), Some(if options.is_empty() { 4 } else { 3 }));
        place.succeed("predict", &["model", "rows.csv", "--out", "out.csv"]);
    }
}
