//! The examples `tabular` and `predict`, called from the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use brisk_program::Device;
use brisk_table::{Schema, Table, TableWriter};
use brisk_tensor::Precision;
use serde_json::Value;

use crate::example::built;
use crate::place::Place;
use crate::run::noise;
use crate::say::say;
use crate::usage::check_usage_error;

/// A folder with a table in it.
fn place() -> Place {
    let place = Place::new();
    place.write("fruit.csv", fruit(600));
    place
}

/// Fruit by size, weight, which is sometimes missing, and colour; the price is a number, the name a class.
fn fruit(n_rows: usize) -> String {
    let mut text = "size,weight,colour,price,name\n".to_owned();
    for row in 0..n_rows {
        let (size, weight) = (7.0 + 2.0 * noise(row, 0), 150.0 + 50.0 * noise(row, 1));
        let colour = ["red", "green", "yellow"][row * 7 % 3];
        let name = match (colour, size > 7.0) {
            ("yellow", _) => "lemon",
            (_, true) => "apple",
            (_, false) => "plum",
        };
        let price = 0.01 * weight + if colour == "red" { 1.0 } else { 0.0 };
        let weight = if row % 9 == 0 { "?".to_owned() } else { weight.to_string() };
        text += &format!("{size},{weight},{colour},{price},{name}\n");
    }
    text
}

#[test]
fn an_ensemble_is_trained_and_predicts() {
    let place = place();
    let small = ["--model", "tabm", "--members", "4", "--hidden", "16", "--epochs", "8", "--lr", "0.01"];
    let args =
        [&["fruit.csv", "--target", "name", "--drop", "price", "--out", "model", "--json", "out.json"][..], &small].concat();
    let shown = place.succeed("tabular", &args);
    let results = place.json("out.json");
    assert!(results["test_accuracy"].as_f64() > Some(0.8) && shown.contains("tabm"), "{shown}");
    let network = &place.json("model/model.json")["network"];
    assert_eq!((&network["kind"], &network["n_members"]), (&"tabm".into(), &4.into()));
    place.write("new.csv", "colour,size,weight\nyellow,7,150\npink,6,?\n");
    place.succeed("predict", &["model", "new.csv", "--out", "names.csv"]);
    let text = fs::read_to_string(place.path("names.csv")).expect("it was written");
    assert!(text.lines().count() == 3 && text.contains("\nlemon,"), "{text}");
    place.refuse("tabular", &["fruit.csv", "--model", "mlp", "--members", "4"], &["--members", "tabm"]);
}

#[test]
fn an_effort_keeps_the_networks_that_are_best_together() {
    let place = place();
    let small = ["--members", "2", "--hidden", "8", "--epochs", "4", "--lr", "0.01", "--batch", "64", "--folds", "1"];
    for (effort, n_networks) in [("quick", 2), ("best", 14)] {
        let args = ["fruit.csv", "--drop", "price", "--effort", effort, "--out", "model", "--json", "out.json"];
        let (output, stderr) = place.run("tabular", &[&args[..], &small].concat());
        assert!(output.status.success(), "{stderr}");
        let shown = String::from_utf8(output.stdout).expect("results are UTF-8");
        assert!(stderr.contains(&format!("network 2 of at most {n_networks}, a linear model")), "{stderr}");
        let n_estimates = stderr.lines().filter(|line| line.starts_with("about ") && line.ends_with(" to go")).count();
        let results = place.json("out.json");
        let weights: Vec<f64> = results["weights"].as_array().expect("weights").iter().filter_map(|x| x.as_f64()).collect();
        assert_eq!((weights.len(), shown.contains("networks"), n_estimates), (n_networks, true, n_networks), "{shown}");
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-5 && results["temperature"].as_f64() > Some(0.0), "{results}");
        place.succeed("predict", &["model", "fruit.csv", "--out", "names.csv"]);
    }
    let (output, stderr) = place.run("tabular", &["fruit.csv", "--effort", "good", "--model", "mlp"]);
    assert!(
        output.status.code() == Some(2) && stderr.contains("'--effort <HOW>' cannot be used with '--model <KIND>'"),
        "{stderr}"
    );
}

#[test]
fn a_limit_of_time_that_is_too_short_is_told() {
    let place = place();
    place.refuse("tabular", &["fruit.csv", "--minutes", "1e-9", "--out", "model"], &["--minutes", "before training began"]);
    assert!(!place.path("model/model.json").exists());
}

/// Tables that are too small or too uneven to learn from: a sentence, or a result.
#[test]
fn a_table_of_few_rows_is_trained_on_or_refused() {
    let place = place();
    let small = ["--effort", "quick", "--members", "2", "--hidden", "8", "--epochs", "2", "--out", "model"];
    place.write("ten.csv", (0..10).fold("x,y\n".to_owned(), |text, row| text + &format!("{row},{}.5\n", row * row)));
    place.succeed("tabular", &[&["ten.csv", "--target", "y"][..], &small].concat());
    let one_of = |row: usize| if row == 50 { 72 } else { [6, 12][row % 2] };
    let rare = (0..100).fold("x,constant,y\n".to_owned(), |text, row| text + &format!("{},7,{}\n", row % 2, one_of(row)));
    place.write("rare.csv", rare);
    place.succeed("tabular", &[&["rare.csv", "--target", "y"][..], &small].concat());
    place.write("new.csv", "x,constant\n0,8\n1,-3.5\n");
    place.succeed("predict", &["model", "new.csv", "--out", "new_y.csv"]);
    let text = fs::read_to_string(place.path("new_y.csv")).expect("it was written");
    assert_eq!((text.lines().count(), text.contains("NaN")), (3, false), "{text}");
}

/// Ensembles would take minutes.
#[test]
fn a_perceptron_is_trained_on_a_table_of_many_columns() {
    let place = place();
    let names: String = (0..10_000).map(|col| format!("x{col},")).collect();
    let row = |row: usize| (0..10_000).map(|col| format!("{:.2},", noise(row, col))).collect::<String>() + &format!("{row}.5\n");
    place.write("wide.csv", format!("{names}y\n{}", (0..20).map(row).collect::<String>()));
    let (output, stderr) = place.run("tabular", &["wide.csv", "--epochs", "3", "--folds", "1", "--out", "model"]);
    assert!(output.status.success() && stderr.contains("an mlp is trained instead of ensembles"), "{stderr}");
    place.refuse("tabular", &["wide.csv", "--members", "4", "--out", "model"], &["`--members`", "10,000 features"]);
    place.succeed("predict", &["model", "wide.csv", "--out", "y.csv"]);
}

#[test]
fn a_batch_beyond_the_rows_is_warned_of_once() {
    let place = place();
    let args = ["fruit.csv", "--batch", "100000", "--folds", "3", "--model", "mlp", "--epochs", "2", "--out", "model"];
    let (output, stderr) = place.run("tabular", &args);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr.matches("warning: the batch size is 100000").count(), 1, "{stderr}");
}

const FAST: [&str; 8] = ["--model", "mlp", "--epochs", "30", "--hidden", "32", "--lr", "0.01"];

#[test]
fn classes_are_learned_and_predicted() {
    let place = place();
    let args = [&["fruit.csv", "--drop", "price", "--out", "model", "--json", "out.json"][..], &FAST].concat();
    let shown = place.succeed("tabular", &args);
    let results = place.json("out.json");
    assert!(results["test_accuracy"].as_f64() > Some(0.93), "{results}");
    assert!(results["trivial_accuracy"].as_f64() < Some(0.5), "{results}");
    for key in [
        "device",
        "executor",
        "seed",
        "rows",
        "epochs",
        "seconds",
        "loader_rows_per_s",
        "train_rows_per_s",
        "planned_peak_bytes",
        "precision",
    ] {
        assert!(!results[key].is_null(), "no {key}: {results}");
    }
    assert_eq!((&results["target"], &results["task"], &results["simulated"]), (&"name".into(), &"classes".into(), &false.into()));
    assert!(shown.contains("linear model") && shown.contains("shares of the classes"), "{shown}");
    assert!(results["linear_accuracy"].as_f64() > results["trivial_accuracy"].as_f64(), "{results}");
    assert!(shown.contains(&format!("best epoch   {}, valid_accuracy ", results["best_epoch"])), "{shown}");
    let mut left: Vec<_> =
        fs::read_dir(place.path("model")).expect("the folder").map(|entry| entry.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["model.json", "parameters.safetensors", "report.html"], "and no temporary table");

    // Columns in a different order, additional ones, no target; an unknown colour.
    place.write("new.csv", "note,colour,size,weight\nripe,yellow,7,150\n?,red,8.5,?\nx,pink,6,120\n");
    place.succeed("predict", &["model", "new.csv", "--out", "new_names.csv"]);
    let text = fs::read_to_string(place.path("new_names.csv")).expect("it was written");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "name,probability_apple,probability_lemon,probability_plum");
    assert!(lines[1].starts_with("lemon,") && lines[2].starts_with("apple,") && lines.len() == 4, "{text}");

    // With the target, the predictions are scored; a class that is not known is named.
    let with_target =
        "name,colour,size,weight\nlemon,yellow,7,150\nfig,red,8.5,?\n,green,6,120\nplum,red,5.5,120\nlemon,yellow,7,150\n";
    place.write("known.csv", with_target);
    let (output, stderr) = place.run("predict", &["model", "known.csv", "--out", "known_names.csv", "--json", "known.json"]);
    let shown = String::from_utf8(output.stdout).expect("results are UTF-8");
    assert!(stderr.contains("classes of name that the model does not know: fig (1)"), "{stderr}");
    assert!(
        shown.contains("predictions of 3 rows are compared; 1 have no value") && shown.contains("shares of the classes"),
        "{shown}"
    );
    let known = place.json("known.json");
    assert_eq!((&known["scored_rows"], &known["unknown_classes"]["fig"]), (&3.into(), &1.into()));
    assert_eq!((known["scored_accuracy"].as_f64(), known["constant_accuracy"].as_f64()), (Some(1.0), Some(2.0 / 3.0)), "{known}");

    // Columns of the file are kept as they are.
    place.write("ids.csv", "id,colour,size,weight,note\n007,yellow,7,150,\"a, b\"\nNA,red,8.5,?, x\n");
    place.succeed("predict", &["model", "ids.csv", "--out", "kept.csv", "--keep", "note", "--keep", "id"]);
    let text = fs::read_to_string(place.path("kept.csv")).expect("it was written");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("note,id,name,probability_apple") && lines[1].starts_with("\"a, b\",007,lemon,"), "{text}");
    assert!(lines[2].contains("x,NA,apple,"), "{text}");
    let keep = |column| ["model", "ids.csv", "--out", "kept.csv", "--keep", column];
    place.refuse("predict", &keep("key"), &["`key`", "id", "colour", "size"]);
    place.refuse("predict", &["model", "known.csv", "--out", "kept.csv", "--keep", "name"], &["--keep name", "already"]);

    place.succeed("predict", &["model", "new.csv", "--out", "names.safetensors"]);
    let table = Table::open(place.path("names.safetensors")).expect("a table");
    assert_eq!((table.classes(), table.n_cols()), (&["apple", "lemon", "plum"].map(str::to_owned)[..], 3));
    assert_eq!(table.labels::<u32>().expect("classes")[..2], [1, 0]);
}

#[test]
fn the_precision_is_the_fastest_of_the_device_unless_one_is_asked_for() {
    let place = place();
    let fastest = Precision::fastest(&Device::cpu().expect("a CPU"));
    for (asked, expected) in [(None, fastest), (Some("bf16"), Precision::Bf16), (Some("f32"), Precision::F32)] {
        let precision = asked.map(|asked| ["--precision", asked]);
        let args = ["fruit.csv", "--drop", "price", "--device", "cpu", "--out", "model", "--json", "out.json"];
        let args: Vec<&str> = args.into_iter().chain(FAST).chain(precision.into_iter().flatten()).collect();
        let shown = place.succeed("tabular", &args);
        let results = place.json("out.json");
        assert_eq!(results["precision"], expected.to_string(), "{asked:?}: {results}");
        assert!(results["test_accuracy"].as_f64() > Some(0.9), "{expected}: {results}");
        let line = shown.lines().find(|line| line.starts_with("precision ")).expect("a line of its own");
        assert!(line.contains(&format!("{expected}, stored in {expected}")), "{line}");
    }
}

#[test]
fn numbers_are_predicted_in_their_units() {
    let place = place();
    let args = [&["fruit.csv", "--target", "price", "--scaling", "quantile", "--out", "model", "--json", "out.json"][..], &FAST]
        .concat();
    let shown = place.succeed("tabular", &args);
    assert!(shown.contains(", valid_rmse ") && shown.contains(" of the standardised target\n"), "{shown}");
    let results = place.json("out.json");
    let [rmse, trivial] = ["test_rmse", "trivial_rmse"].map(|name| results[name].as_f64().expect("a number"));
    assert!(rmse < 0.6 * trivial && trivial < 1.0, "{results}");
    place.succeed("predict", &["model", "fruit.csv", "--out", "prices.csv"]);
    let text = fs::read_to_string(place.path("prices.csv")).expect("it was written");
    let prices: Vec<f32> = text.lines().skip(1).map(|line| line.parse().expect("a number")).collect();
    assert!(prices.len() == 600 && prices.iter().all(|price| (0.0..4.0).contains(price)), "{prices:?}");
    // The same predictions in other formats.
    place.succeed("predict", &["model", "fruit.csv", "--out", "prices.safetensors"]);
    let table = Table::open(place.path("prices.safetensors")).expect("a table");
    assert!((table.labels::<f32>().expect("numbers")[5] - prices[5]).abs() < 1e-6, "the same predictions");
}

#[test]
#[cfg(feature = "all-formats")]
fn predictions_may_be_parquet() {
    let place = place();
    place.succeed("tabular", &["fruit.csv", "--drop", "price", "--epochs", "2", "--hidden", "8", "--out", "model"]);
    place.succeed("predict", &["model", "fruit.csv", "--out", "names.parquet"]);
    place.succeed("predict", &["model", "fruit.csv", "--out", "names.safetensors"]);
    let back = ["names.parquet", "back.safetensors", "--label", "name", "--label-kind", "classes"];
    place.succeed("import", &back);
    let [table, back] = ["names.safetensors", "back.safetensors"].map(|name| Table::open(place.path(name)).expect("a table"));
    assert_eq!(back.column_names(), table.column_names());
    assert_eq!(back.rows::<f32>(0..600).expect("f32"), table.rows::<f32>(0..600).expect("f32"));
    // Rows to predict may be Parquet, too: these have none of the columns.
    place.refuse("predict", &["model", "names.parquet", "--out", "out.csv"], &["names.parquet", "\"colour\""]);
}

#[test]
fn a_residual_network_is_learned() {
    let place = place();
    let args = ["fruit.csv", "--drop", "price", "--model", "resnet", "--epochs", "6", "--out", "model", "--json", "out.json"];
    place.succeed("tabular", &args);
    assert!(place.json("out.json")["test_accuracy"].as_f64() > Some(0.85), "{}", place.json("out.json"));
    place.succeed("predict", &["model", "fruit.csv", "--out", "names.csv"]);
}

#[test]
fn tables_that_cannot_be_learned_are_refused() {
    let place = place();
    let refuse = |text: &str, words: &[&str]| {
        place.write("bad.csv", text);
        place.refuse("tabular", &["bad.csv", "--out", "model"], words);
        assert!(!place.path("model/model.json").exists(), "there is no model");
    };
    let rows = |row: &str| row.repeat(50);
    refuse("", &["bad.csv", "an empty file"]);
    refuse("a,y\n", &["bad.csv", "a header and no rows"]);
    refuse("y\n1\n2\n", &["no column is left for features"]);
    refuse(&format!("a,y\n{}", rows("1,no\n")), &["50 rows all have the label no"]);
    refuse(&format!("a,y\n{}", rows("1,\n2,NA\n")), &["bad.csv", "no row has a value of `y`"]);
    refuse("a,y\n1,0\n2,1\n", &["too few"]);
    place.refuse("tabular", &["none.csv", "--out", "model"], &["none.csv", "no such file"]);
    place.refuse("tabular", &["fruit.csv", "--target", "taste", "--out", "model"], &["`taste`", "\"name\""]);
    place.refuse("tabular", &["fruit.csv", "--task", "number", "--out", "model"], &["3 classes with names"]);
    let schema = Schema { n_labels: 2, ..Schema::named(["a"]) };
    let mut writer = TableWriter::create(place.path("two.safetensors"), schema).expect("a new file");
    writer.push(&[1.0_f32], &[2.0_f32, 3.0]).expect("a row");
    writer.finish().expect("written");
    place.refuse("tabular", &["two.safetensors", "--out", "model"], &["two.safetensors: the table has 2 labels", "one label"]);
    let (output, _) = place.run("tabular", &["fruit.csv", "--model", "forest"]);
    check_usage_error(&output, &["--model", "forest"], &["mlp", "resnet"]);
}

#[test]
fn rows_that_cannot_be_predicted_are_refused() {
    let place = place();
    place.succeed("tabular", &["fruit.csv", "--drop", "price", "--epochs", "1", "--hidden", "4", "--out", "model"]);
    place.write("few.csv", "size,colour\n1,red\n2,red\n");
    place.refuse("predict", &["model", "few.csv", "--out", "out.csv"], &["`weight`", "few.csv"]);
    place.write("few.csv", "size\n1\n");
    place.refuse("predict", &["model", "few.csv", "--out", "out.csv"], &["few.csv", "\"weight\", \"colour\"", "[\"size\"]"]);
    place.write("text.csv", "size,weight,colour\nlarge,1,red\n");
    place.refuse("predict", &["model", "text.csv", "--out", "out.csv"], &["text.csv, line 2, column 1 (`size`)", "large"]);
    place.refuse("predict", &["model", "fruit.csv", "--out", "out.xlsx"], &["out.xlsx", ".csv, .parquet or .safetensors"]);
    place.refuse("predict", &["none", "fruit.csv", "--out", "out.csv"], &["none", "model.json", "not found"]);
    for model in ["s3://bucket/model", "https://me:pass@host/model"] {
        let error =
            place.refuse("predict", &[model, "fruit.csv", "--out", "out.csv"], &["models are read from a path", "/model"]);
        assert!(!error.contains("pass@"), "{error}");
    }
    place.refuse("predict", &["model", "fruit.csv", "--out", "fruit.csv"], &["the same file as DATA"]);
    fs::remove_file(place.path("model/parameters.safetensors")).expect("it is there");
    place.refuse("predict", &["model", "fruit.csv", "--out", "out.csv"], &["parameters.safetensors", "not found"]);
    assert!(!place.path("out.csv").exists() && Path::new(&place.path("fruit.csv")).exists(), "nothing was written");
}

/// Trains on `text`, and returns what was printed about it.
#[track_caller]
fn noted(text: &str, args: &[&str]) -> String {
    let place = place();
    place.write("rows.csv", text);
    let args = [&["rows.csv", "--epochs", "1", "--hidden", "4", "--out", "model"][..], args].concat();
    let (output, stderr) = place.run("tabular", &args);
    assert!(output.status.success(), "{stderr}");
    stderr
}

/// Rows with a number, a cell of `column`, and a label.
fn with_column(n_rows: usize, column: impl Fn(usize) -> String) -> String {
    let row = |row: usize| format!("{},{},{}\n", noise(row, 0), column(row), ["no", "yes"][row % 2]);
    "size,other,name\n".to_owned() + &(0..n_rows).map(row).collect::<String>()
}

#[test]
fn odd_cells_are_shown_with_their_lines_wherever_they_are() {
    let place = place();
    for odd in [0, 299] {
        for (cell, line) in [("12.5x", odd + 2), ("inf", odd + 2)] {
            let cell = |row: usize| if row == odd { cell.to_owned() } else { row.to_string() };
            place.write("bad.csv", with_column(300, cell));
            let words = ["column `other` has 299 numbers", &format!("line {line} has"), "--missing-value", "--categorical other"];
            place.refuse("tabular", &["bad.csv", "--out", "model"], &words);
            // The same in the target.
            let words = ["column `other`", &format!("line {line} has"), "--task classes"];
            place.refuse("tabular", &["bad.csv", "--target", "other", "--out", "model"], &words);
        }
    }
    place.write("bad.csv", with_column(300, |row| format!("\"{row},5\"")));
    place.refuse(
        "tabular",
        &["bad.csv", "--out", "model"],
        &["column `other` has numbers with decimal commas: line 2 has", "--decimal ,"],
    );
    place.write("bad.csv", with_column(300, |row| format!("class {row}")));
    place.refuse(
        "tabular",
        &["bad.csv", "--target", "other", "--out", "model"],
        &["300 classes in 300 rows", "--target", "--task classes"],
    );
    place.write("bad.csv", with_column(300, |row| format!("2024-01-{:02}", row % 28 + 1)));
    place.refuse("tabular", &["bad.csv", "--target", "other", "--out", "model"], &["`other`", "dates"]);
    place.refuse(
        "tabular",
        &["bad.csv", "--drop", "name,name", "--categorical", "name", "--out", "model"],
        &["`name`", "two roles"],
    );
}

#[test]
fn words_for_missing_values_do_not_change_a_column() {
    for word in ["-", ".", "#DIV/0!", "\\N", "<NA>", "None", "\u{a0}"] {
        let noted = noted(&with_column(300, |row| if row % 50 == 7 { word.to_owned() } else { row.to_string() }), &[]);
        assert!(noted.contains("2 numbers (1 with missing values), 0 categories"), "{word}: {noted}");
    }
    let text = with_column(300, |row| if row % 9 == 0 { "absent".to_owned() } else { row.to_string() });
    assert!(noted(&text, &["--missing-value", "absent"]).contains("2 numbers (1 with missing values)"), "a word of the user");
    let text = with_column(300, |row| ["None", "Brick", "Stone"][row % 3].to_owned());
    let place = place();
    place.write("rows.csv", &text);
    place.succeed("tabular", &["rows.csv", "--epochs", "1", "--hidden", "4", "--out", "model"]);
    let values = &place.json("model/model.json")["preprocessing"]["categories"][0]["values"];
    assert_eq!(values.as_array().map(Vec::len), Some(3), "`None` is one of the values: {values}");
}

#[test]
fn dates_codes_and_identifiers_are_recognised() {
    let noted_of = |cell: &dyn Fn(usize) -> String| noted(&with_column(300, cell), &[]);
    let dates = noted_of(&|row| format!("2024-{:02}-{:02}T{:02}:30", row % 12 + 1, row % 28 + 1, row % 24));
    assert!(dates.contains("5 numbers (0 with missing values), 0 categories") && dates.contains("`other`: dates"), "{dates}");
    assert!(dates.contains("become month, weekday, hour and days"), "{dates}");
    let days = noted_of(&|row| format!("2024-{:02}-{:02}", row % 12 + 1, row % 28 + 1));
    assert!(days.contains("4 numbers") && days.contains("`other`: dates, which become month, weekday and days"), "{days}");
    let us = noted_of(&|row| format!("{}/{}/2024 {}:30 PM", row % 12 + 1, row % 28 + 1, row % 12 + 1));
    assert!(us.contains("`other`: dates such as 03/17/2024, which become month, weekday, hour and days"), "{us}");
    let years = noted_of(&|row| format!("20{:02}-{:02}-{:02}", row % 7 + 10, row % 12 + 1, row % 28 + 1));
    assert!(years.contains("5 numbers") && years.contains("become year, month, weekday and days"), "{years}");
    let codes = noted_of(&|row| format!("{:05}", row % 17));
    assert!(codes.contains("1 number (0 with missing values), 1 category") && codes.contains("leading zeros"), "{codes}");
    let left_out = |cell: &dyn Fn(usize) -> String| {
        let noted = noted_of(cell);
        assert!(noted.contains("1 number (0 with missing values), 0 categories"), "{noted}");
        assert!(noted.contains("`other` is left out") && noted.contains("--categorical other"), "{noted}");
    };
    left_out(&|row| format!("customer {row}"));
    left_out(&|row| format!("{:02}:30", row % 24));
    let kept = noted(&with_column(300, |row| format!("customer {row}")), &["--categorical", "other"]);
    assert!(kept.contains("1 number (0 with missing values), 1 category"), "{kept}");
}

#[test]
fn numbers_with_units_and_dates_in_several_forms_are_said() {
    let units = noted(&with_column(300, |row| format!("{} km", row % 40)), &[]);
    let said = ["warning: column `other` has numbers with units, such as \"0 km\"", "without their units"];
    assert!(said.iter().all(|said| units.contains(said)), "{units}");
    let date = |row: usize| format!("{:02}/{:02}/2024", row % 28 + 1, row % 12 + 1);
    let mixed =
        |row: usize| if row.is_multiple_of(2) { date(row) } else { format!("2024-{:02}-{:02}", row % 12 + 1, row % 28 + 1) };
    let dates = noted(&with_column(300, mixed), &[]);
    let said = ["column `other` is left out", "\"01/01/2024\"", "`--categorical other`"];
    assert!(said.iter().all(|said| dates.contains(said)), "{dates}");
}

#[test]
fn large_numbers_keep_their_digits() {
    let place = place();
    // Time stamps that differ in their last digits, of which the target is a function.
    let rows: String =
        (0..600).map(|row| format!("{},{}\n", 1_700_000_000 + row * 7 % 600, (row * 7 % 600) as f32 * 0.01)).collect();
    place.write("times.csv", format!("time,delay\n{rows}"));
    let args = [&["times.csv", "--out", "model", "--json", "out.json"][..], &FAST].concat();
    place.succeed("tabular", &args);
    assert!(place.json("out.json")["test_r2"].as_f64() > Some(0.97), "{}", place.json("out.json"));
    place.succeed("predict", &["model", "times.csv", "--out", "delays.csv"]);
    let text = fs::read_to_string(place.path("delays.csv")).expect("it was written");
    let delays: Vec<f32> = text.lines().skip(1).map(|line| line.parse().expect("a number")).collect();
    assert!((delays[0] - delays[85]).abs() > 4.0, "0 and 595 * 0.01: {} {}", delays[0], delays[85]);
    // Classes beyond 2^24.
    let noted = noted(&with_column(300, |row| (16_777_216 + row % 3).to_string()), &["--target", "other"]);
    assert!(noted.contains("3 classes: 16777216, 16777217, 16777218"), "{noted}");
}

#[test]
fn the_target_is_guessed_by_its_name_and_said() {
    let text = (0..300).map(|row| format!("{},{}\n", ["a", "b"][row % 2], noise(row, 0))).collect::<String>();
    let guessed = noted(&format!("Label,size\n{text}"), &[]);
    assert!(guessed.contains("target: Label, 2 classes: a, b; `--target COLUMN` chooses another"), "{guessed}");
    assert!(noted(&format!("group,size\n{text}"), &[]).contains("target: size, a number"), "the last");
    // Nor is a last column with gaps taken for it.
    let place = place();
    let remarks = (0..300).map(|row| format!("{},{},{}\n", ["a", "b"][row % 2], noise(row, 0), ["", "late"][row % 2]));
    place.write("rows.csv", &("group,size,remark\n".to_owned() + &remarks.collect::<String>()));
    let args = ["rows.csv", "--epochs", "1", "--hidden", "4", "--out", "model"];
    place.refuse(
        "tabular",
        &args,
        &["called target, label, class, y", "`remark`, has no value in 150 rows; name the target with `--target`"],
    );
    place.succeed("tabular", &[&args[..], &["--target", "group"]].concat());
}

#[test]
fn options_that_do_nothing_are_refused() {
    let place = place();
    place.write(
        "rows.svm",
        (0..60).map(|row| format!("{} 1:{} 2:{}\n", row % 2, noise(row, 0), noise(row, 1))).collect::<String>(),
    );
    for option in [&["--drop", "a"], &["--target", "a"], &["--categorical", "a"], &["--decimal", ","], &["--missing-value", "x"]]
    {
        place.refuse("tabular", &[&["rows.svm", "--out", "model"][..], option].concat(), &["rows.svm", option[0], "svmlight"]);
    }
}

/// From a file with everything in it to predictions: dates, codes, words for missing values, and categories that are new when
/// predicting.
#[test]
fn an_adult_file_is_learned_and_predicted() {
    let names = "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,gain,loss,hours,country,income";
    let Some(data) = std::env::var_os("BRISK_DATA").map(PathBuf::from) else {
        say("BRISK_DATA is not set: THE RUN OVER THE ADULT CENSUS HAS NOT RUN");
        return;
    };
    let file = fs::File::open(data.join("tabular/adult.data.gz")).expect("BRISK_DATA has the adult census");
    let text = std::io::read_to_string(flate2::read::GzDecoder::new(file)).expect("it is text");
    let place = place();
    let write = |name: &str, rows: std::ops::Range<usize>, with_target: bool| {
        let mut out = format!("id,{},day,zip,score\n", if with_target { names } else { names.trim_end_matches(",income") });
        for (row, line) in text.lines().enumerate().skip(rows.start).take(rows.len()) {
            let mut cells: Vec<String> = line.split(',').map(|cell| cell.trim().to_owned()).collect();
            if !with_target {
                cells.pop();
                cells[13] = if row % 2 == 0 { "Atlantis".to_owned() } else { cells[13].clone() };
            }
            let score = match row % 10 {
                0 => "-".to_owned(),
                1 => "#DIV/0!".to_owned(),
                _ => cells[4].clone() + ".5",
            };
            let cells = cells.join(",");
            out += &format!(
                "P{row},{cells},2024-{:02}-{:02} {:02}:00,{:05},{score}\n",
                row % 12 + 1,
                row % 28 + 1,
                row % 24,
                row % 23
            );
        }
        place.write(name, &out);
    };
    write("adult.csv", 0..900, true);
    write("new.csv", 900..1100, false);
    // One row whose texts are all missing.
    let new = fs::read_to_string(place.path("new.csv")).expect("it was written");
    let mut lines: Vec<String> = new.lines().map(str::to_owned).collect();
    lines[1] = "P,39,?,77516,,13,NA,?,?,?,?,0,0,40,?,,,".to_owned();
    place.write("new.csv", &(lines.join("\n") + "\n"));

    let args = ["adult.csv", "--target", "income", "--epochs", "12", "--hidden", "32", "--out", "model", "--json", "out.json"];
    let (output, noted) = place.run("tabular", &args);
    assert!(output.status.success(), "{noted}");
    let results = place.json("out.json");
    assert!(results["test_auc"].as_f64() > Some(0.8), "{results}");
    let columns = &place.json("model/model.json")["preprocessing"];
    let listed = |kind: &str| -> Vec<String> {
        let names =
            columns[kind].as_array().into_iter().flatten().map(|column| column["name"].as_str().unwrap_or_default().to_owned());
        names.collect()
    };
    let numbers =
        ["age", "fnlwgt", "education-num", "gain", "loss", "hours", "score", "day_month", "day_weekday", "day_hour", "day_days"];
    assert_eq!(listed("numbers"), numbers);
    let categories = ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "country", "zip"];
    assert_eq!(listed("categories"), categories);
    for said in ["column `id` is left out", "column `zip` has numbers with leading zeros", "column `day`: dates"] {
        assert!(noted.contains(said), "no `{said}`: {noted}");
    }

    let (output, noted) = place.run("predict", &["model", "new.csv", "--out", "incomes.csv"]);
    assert!(output.status.success(), "{noted}");
    assert!(noted.contains("column `country`: ") && noted.contains("\"Atlantis\""), "{noted}");
    let predictions = fs::read_to_string(place.path("incomes.csv")).expect("it was written");
    assert_eq!(predictions.lines().count(), 201);
    let expected: Vec<bool> = text.lines().skip(900).take(200).map(|line| line.ends_with(">50K")).collect();
    let right = predictions.lines().skip(1).zip(expected).filter(|(line, rich)| line.starts_with(">50K") == *rich).count();
    assert!(right > 145, "{right} of 200");
}

/// What a killed run leaves is in the folder that the system clears, not beside the model.
#[test]
#[cfg(unix)]
fn scratch_files_are_in_the_folder_for_temporary_files() {
    let place = place();
    place.succeed("tabular", &["fruit.csv", "--drop", "price", "--epochs", "1", "--hidden", "4", "--out", "model"]);
    for (example, args) in
        [("tabular", ["fruit.csv", "--epochs=1", "--out=model"]), ("predict", ["model", "fruit.csv", "--out=out.csv"])]
    {
        let mut command = Command::new(built(example));
        let output =
            command.args(args).env("BRISK_DEVICE", "cpu").env("TMPDIR", place.path("gone")).current_dir(place.path("")).output();
        let stderr = String::from_utf8_lossy(&output.expect("the example runs").stderr).into_owned();
        assert!(stderr.contains("gone") && stderr.contains("cannot create"), "{example}: {stderr}");
    }
}

#[test]
fn an_index_and_columns_that_know_the_target_are_said() {
    let rows: String = (0..300).map(|row| format!("{row},{},{}\n", noise(row, 0), row % 2)).collect();
    let left_out = noted(&format!(",size,label\n{rows}"), &[]);
    assert!(left_out.contains("it is the index of a data frame; `--keep-index` keeps it"), "{left_out}");
    assert!(left_out.contains("1 number (0 with missing values), 0 categories"), "{left_out}");
    assert!(noted(&format!(",size,label\n{rows}"), &["--keep-index"]).contains("2 numbers"), "kept");
    let counted = noted(&format!("n,size,label\n{rows}"), &[]);
    assert!(counted.contains("column `n` counts the rows from 0, as an index does; `--drop n` leaves it out"), "{counted}");
    let rows: String = (0..300).map(|row| format!("{},{},{}\n", row % 2 * 7, noise(row, 0), row % 2)).collect();
    let known = noted(&format!("outcome,size,label\n{rows}"), &[]);
    assert!(known.contains("column `outcome` predicts the label by itself"), "{known}");
    let amount = |row: usize| if row.is_multiple_of(2) { noise(row, 1).to_string() } else { String::new() };
    let rows: String = (0..300).map(|row| format!("{},{},{}\n", amount(row), noise(row, 0), row % 2)).collect();
    let missing = noted(&format!("amount,size,label\n{rows}"), &[]);
    assert!(missing.contains("column `amount` predicts the label by itself"), "{missing}");
}

#[test]
fn errors_of_small_targets_are_shown() {
    let place = place();
    let rows: String = (0..300).map(|row| format!("{},{}\n", noise(row, 0), 1e-3 + 1e-5 * noise(row, 1))).collect();
    place.write("small.csv", format!("size,width\n{rows}"));
    let shown =
        place.succeed("tabular", &["small.csv", "--epochs", "1", "--hidden", "4", "--out", "model", "--json", "out.json"]);
    let line = shown.lines().find(|line| line.starts_with("rmse")).expect("a line for the error");
    let found: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let expected = place.json("out.json")["test_rmse"].as_f64().expect("a number");
    assert!((found[0] - expected).abs() < 0.01 * expected, "{line}, {expected}");
}

#[test]
fn several_targets_are_trained_and_predicted() {
    let place = place();
    let small = ["--model", "mlp", "--epochs", "10", "--hidden", "16", "--lr", "0.01", "--out", "model", "--json", "out.json"];
    let shown = place.succeed("tabular", &[&["fruit.csv", "--target", "price,name"][..], &small].concat());
    let results = &place.json("out.json")["targets"];
    assert_eq!((&results[0]["target"], &results[1]["target"], &results[2]), (&"price".into(), &"name".into(), &Value::Null));
    assert!(results[0]["test_rmse"].as_f64() < Some(0.5) && results[1]["test_accuracy"].as_f64() > Some(0.8), "{results}");
    assert!(shown.contains("price") && shown.contains("rmse") && shown.contains("accuracy"), "{shown}");
    for folder in ["0", "1"] {
        let numbers = &place.json(&format!("model/{folder}/model.json"))["preprocessing"]["numbers"];
        let names: Vec<_> = numbers.as_array().into_iter().flatten().map(|column| column["name"].as_str()).collect();
        assert_eq!(names, [Some("size"), Some("weight")], "another target is no feature");
        assert!(place.path(format!("model/{folder}/report.html")).exists());
    }
    let index = place.json("model/targets.json");
    let named = |i: usize| (index["targets"][i]["name"].as_str(), index["targets"][i]["folder"].as_str());
    assert_eq!([named(0), named(1)], [(Some("price"), Some("0")), (Some("name"), Some("1"))]);

    place.succeed("predict", &["model", "fruit.csv", "--out", "both.csv", "--json", "predicted.json"]);
    let text = fs::read_to_string(place.path("both.csv")).expect("it was written");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "price,name,name_probability_apple,name_probability_lemon,name_probability_plum");
    assert!(lines.len() == 601 && lines[1].split(',').count() == 5, "{}", lines[1]);
    assert_eq!(place.json("predicted.json")["targets"][1]["classes"][0], "apple");
    // One of them is a model like any other.
    place.succeed("predict", &["model/1", "fruit.csv", "--out", "names.csv"]);
    let names = fs::read_to_string(place.path("names.csv")).expect("it was written");
    let of_both = lines.iter().skip(1).map(|line| line.split_once(',').map(|(_, rest)| rest));
    assert!(names.lines().skip(1).map(Some).eq(of_both), "the same predictions");
    place.refuse("predict", &["model", "fruit.csv", "--out", "both.safetensors"], &["classes of one target", ".csv"]);

    // A folder in which one of the models is of another run is no model.
    place.succeed(
        "tabular",
        &[&["fruit.csv", "--target", "name", "--drop", "price", "--seed", "5", "--out", "model/1"][..], &small[..8]].concat(),
    );
    place.refuse("predict", &["model", "fruit.csv", "--out", "out.csv"], &["targets.json", "`name`", "checksum"]);
}

#[test]
fn targets_that_are_numbers_have_intervals_each_in_a_table() {
    let place = place();
    let rows: String = (0..300).map(|row| format!("{},{},{}\n", noise(row, 0), noise(row, 0) * 3.0, noise(row, 1))).collect();
    place.write("rows.csv", format!("x,a,b\n{rows}"));
    let args = ["rows.csv", "--target", "a,b", "--model", "mlp", "--epochs", "2", "--hidden", "4", "--intervals", "0.8"];
    place.succeed("tabular", &[&args[..], &["--folds", "2", "--minutes", "2", "--report", "none", "--out", "model"]].concat());
    assert!(!place.path("model/0/report.html").exists(), "none was asked for");
    place.succeed("predict", &["model", "rows.csv", "--out", "out.safetensors"]);
    let table = Table::open(place.path("out.safetensors")).expect("a table");
    assert_eq!((table.label_names(), table.n_rows()), (&["a", "b"].map(str::to_owned)[..], 300));
    assert_eq!(table.column_names(), ["a_predicted", "a_lower", "a_upper", "b_predicted", "b_lower", "b_upper"]);
}

#[test]
fn targets_that_cannot_be_trained_together_are_refused() {
    let place = place();
    let refuse = |targets: &str, more: &[&str], words: &[&str]| {
        place.refuse("tabular", &[&["fruit.csv", "--target", targets, "--out", "model"][..], more].concat(), words);
        assert!(!place.path("model/targets.json").exists() && !place.path("model/0").exists(), "nothing was trained");
    };
    refuse("price,name,price", &[], &["`--target` names `price` twice"]);
    refuse("price,3", &[], &["`price` is given two roles"]);
    refuse("price,taste", &[], &["taste", "target", "\"size\", \"weight\", \"colour\", \"price\", \"name\""]);
    refuse("price,name", &["--drop", "name"], &["`name`", "two roles"]);
    // What is wrong with the second is known before the first is trained.
    refuse("price,name", &["--intervals", "0.9"], &["target `name` has 3 classes", "intervals"]);
    refuse("name,price", &["--class-weights", "balanced"], &["target `price` is a number"]);
    refuse("price,name", &["--report", "page.html"], &["`--report` names one page", "`--report none`"]);
}

#[test]
fn no_output_replaces_the_data_or_another_output() {
    let place = place();
    place.write("train.safetensors", "rows");
    place.write("rows.csv", "a,b,y\n1,2,3\n");
    std::fs::create_dir_all(place.path("model/1")).expect("there is room");
    let refuse = |args: &[&str], words: &[&str]| place.refuse("tabular", args, words);
    refuse(&["train.safetensors", "--save-rows", ".", "--out", "model"], &["--save-rows", "the same file as DATA"]);
    refuse(&["rows.csv", "--json", "model/model.json", "--out", "model"], &["--json", "the same file as --out"]);
    let report = ["--report", "model/parameters.safetensors"];
    refuse(&[&["rows.csv", "--out", "model"], &report[..]].concat(), &["--report", "the same file as --out"]);
    for path in ["model/targets.json", "model/1/model.json"] {
        refuse(&["rows.csv", "--target", "y,a", "--json", path, "--out", "model"], &["--json", "the same file as --out"]);
    }
}

#[test]
fn a_damaged_table_is_refused() {
    let place = place();
    let row = |row: usize| format!("{},{}\n", noise(row, 0), noise(row, 1));
    place.write("rows.csv", "x,y\n".to_owned() + &(0..40).map(row).collect::<String>());
    place.succeed("import", &["rows.csv", "rows.safetensors", "--label", "y"]);
    place.succeed("tabular", &[&["rows.safetensors", "--out", "model"], &FAST[..]].concat());
    let path = place.path("rows.safetensors");
    let mut bytes = std::fs::read(&path).expect("it was imported");
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).expect("there is room");
    place.refuse("tabular", &[&["rows.safetensors", "--out", "other"], &FAST[..]].concat(), &["rows.safetensors", "damaged"]);
    place.refuse("predict", &["model", "rows.safetensors", "--out", "y.csv"], &["rows.safetensors", "damaged"]);
}
