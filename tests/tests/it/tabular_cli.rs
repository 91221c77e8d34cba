//! The examples `tabular` and `predict`, called from the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use brisk_table::{Schema, Table, TableWriter};
use serde_json::Value;
use tempfile::TempDir;

use crate::example::built;
use crate::run::noise;
use crate::usage::check_usage_error;

/// A folder with tables in it.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().expect("the system has a folder for temporary files") };
        place.write("fruit.csv", &fruit(600));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("there is room for a small file");
    }

    fn run(&self, example: &'static str, args: &[&str]) -> (Output, String) {
        let mut command = Command::new(built(example));
        command.args(args).env("BRISK_DEVICE", "cpu").current_dir(self.dir.path());
        let output = command.output().expect("the example runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, stderr)
    }

    #[track_caller]
    fn succeed(&self, example: &'static str, args: &[&str]) -> String {
        let (output, stderr) = self.run(example, args);
        assert!(output.status.success(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).expect("results are UTF-8")
    }

    /// Checks that it is refused, with a last line that contains all of `words`.
    #[track_caller]
    fn refuse(&self, example: &'static str, args: &[&str], words: &[&str]) {
        let (output, stderr) = self.run(example, args);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{args:?}: {stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && !stderr.contains("panicked"), "{args:?}: {stderr}");
        for word in words {
            assert!(last.contains(word), "{args:?}: no `{word}` in: {last}");
        }
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).expect("it was written")).expect("it is JSON")
    }
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

const FAST: [&str; 6] = ["--epochs", "30", "--hidden", "32", "--lr", "0.01"];

#[test]
fn classes_are_learned_and_predicted() {
    let place = Place::new();
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
    assert!(shown.contains("shares of the classes"), "{shown}");
    assert!(shown.contains(&format!("best epoch  {}, valid_accuracy ", results["best_epoch"])), "{shown}");
    let mut left: Vec<_> =
        fs::read_dir(place.path("model")).expect("the folder").map(|entry| entry.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["model.json", "parameters.safetensors"], "and no temporary table");

    // Columns in a different order, additional ones, no target; an unknown colour.
    place.write("new.csv", "note,colour,size,weight\nripe,yellow,7,150\n?,red,8.5,?\nx,pink,6,120\n");
    place.succeed("predict", &["model", "new.csv", "--out", "new_names.csv"]);
    let text = fs::read_to_string(place.path("new_names.csv")).expect("it was written");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "name,probability_apple,probability_lemon,probability_plum");
    assert!(lines[1].starts_with("lemon,") && lines[2].starts_with("apple,") && lines.len() == 4, "{text}");

    place.succeed("predict", &["model", "new.csv", "--out", "names.safetensors"]);
    let table = Table::open(place.path("names.safetensors")).expect("a table");
    assert_eq!((table.classes(), table.n_cols()), (&["apple", "lemon", "plum"].map(str::to_owned)[..], 3));
    assert_eq!(table.labels::<u32>().expect("classes")[..2], [1, 0]);
}

#[test]
fn numbers_are_predicted_in_their_units() {
    let place = Place::new();
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
    let place = Place::new();
    place.succeed("tabular", &["fruit.csv", "--drop", "price", "--epochs", "2", "--hidden", "8", "--out", "model"]);
    place.succeed("predict", &["model", "fruit.csv", "--out", "names.parquet"]);
    place.succeed("predict", &["model", "fruit.csv", "--out", "names.safetensors"]);
    let back = ["names.parquet", "back.safetensors", "--label", "name", "--label-kind", "classes"];
    place.succeed("import", &back);
    let [table, back] = ["names.safetensors", "back.safetensors"].map(|name| Table::open(place.path(name)).expect("a table"));
    assert_eq!(back.column_names(), table.column_names());
    assert_eq!(back.rows::<f32>(0..600).expect("f32"), table.rows::<f32>(0..600).expect("f32"));
    // Rows to predict may be Parquet, too: these have none of the columns.
    place.refuse("predict", &["model", "names.parquet", "--out", "out.csv"], &["names.parquet", "`size`"]);
}

#[test]
fn a_residual_network_is_learned() {
    let place = Place::new();
    let args = ["fruit.csv", "--drop", "price", "--model", "resnet", "--epochs", "6", "--out", "model", "--json", "out.json"];
    place.succeed("tabular", &args);
    assert!(place.json("out.json")["test_accuracy"].as_f64() > Some(0.85), "{}", place.json("out.json"));
    place.succeed("predict", &["model", "fruit.csv", "--out", "names.csv"]);
}

#[test]
fn tables_that_cannot_be_learned_are_refused() {
    let place = Place::new();
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
    refuse(&format!("a,b,y\n{}", rows("1,,0\n2,?,1\n")), &["column `b` has no value", "drop it"]);
    refuse(&format!("a,y\n{}3,\n", rows("1,0\n2,1\n")), &["bad.csv, line 102, column 2 (`y`)", "missing value"]);
    refuse("a,y\n1,0\n2,1\n", &["too few"]);
    place.refuse("tabular", &["none.csv", "--out", "model"], &["none.csv", "no such file"]);
    place.refuse("tabular", &["fruit.csv", "--target", "taste", "--out", "model"], &["`taste`", "\"name\""]);
    place.refuse("tabular", &["fruit.csv", "--task", "number", "--out", "model"], &["3 classes with names"]);
    let schema = Schema { n_labels: 2, ..Schema::named(["a"]) };
    let mut writer = TableWriter::create(place.path("two.safetensors"), schema).expect("a new file");
    writer.push(&[1.0_f32], &[2.0_f32, 3.0]).expect("a row");
    writer.finish().expect("written");
    place.refuse(
        "tabular",
        &["two.safetensors", "--out", "model"],
        &["two.safetensors: the table has 2 labels", "one `--label`"],
    );
    let (output, _) = place.run("tabular", &["fruit.csv", "--model", "forest"]);
    check_usage_error(&output, &["--model", "forest"], &["mlp", "resnet"]);
}

#[test]
fn rows_that_cannot_be_predicted_are_refused() {
    let place = Place::new();
    place.succeed("tabular", &["fruit.csv", "--drop", "price", "--epochs", "1", "--hidden", "4", "--out", "model"]);
    place.write("few.csv", "size,colour\n1,red\n2,red\n");
    place.refuse("predict", &["model", "few.csv", "--out", "out.csv"], &["`weight`", "few.csv"]);
    place.write("text.csv", "size,weight,colour\nlarge,1,red\n");
    place.refuse("predict", &["model", "text.csv", "--out", "out.csv"], &["text.csv, line 2, column 1 (`size`)", "large"]);
    place.refuse("predict", &["model", "fruit.csv", "--out", "out.xlsx"], &["out.xlsx", ".csv, .parquet or .safetensors"]);
    place.refuse("predict", &["none", "fruit.csv", "--out", "out.csv"], &["none", "model.json", "not found"]);
    place.refuse("predict", &["model", "fruit.csv", "--out", "fruit.csv"], &["the same file as DATA"]);
    fs::remove_file(place.path("model/parameters.safetensors")).expect("it is there");
    place.refuse("predict", &["model", "fruit.csv", "--out", "out.csv"], &["parameters.safetensors", "not found"]);
    assert!(!place.path("out.csv").exists() && Path::new(&place.path("fruit.csv")).exists(), "nothing was written");
}
