//! Regressions by the examples `tabular` and `predict`: calibration, the scale of the target, and intervals.

use std::fs;

use brisk_table::Table;

use crate::place::Place;
use crate::run::noise;
use crate::usage::check_usage_error;

const FAST: [&str; 9] = ["--model", "mlp", "--epochs", "8", "--hidden", "8", "--lr", "0.02", "--out"];

#[test]
fn the_program_says_that_a_model_is_no_better_than_the_mean() {
    let place = Place::new();
    let row = |row: usize| format!("{},{}\n", noise(row, 0), 20.0 + noise(row, 2));
    place.write("rows.csv", "x,y\n".to_owned() + &(0..500).map(row).collect::<String>());
    let (output, stderr) = place.run("tabular", &[&["rows.csv"][..], &FAST, &["model"]].concat());
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("not lower than that of the mean of the training rows"), "{stderr}");
    let constant = ["rows.csv", "--model", "mlp", "--epochs", "1", "--lr", "30", "--out", "model", "--json", "out.json"];
    let (_, stderr) = place.run("tabular", &constant);
    assert!(stderr.contains("so that all predictions are this mean"), "{stderr}");
    assert_eq!(place.json("out.json")["calibration_slope"], 0.0);
    place.succeed("predict", &["model", "rows.csv", "--out", "y.csv"]);
    let text = fs::read_to_string(place.path("y.csv")).expect("it was written");
    let mut numbers: Vec<&str> = text.lines().skip(1).collect();
    numbers.dedup();
    assert!(numbers.len() == 1 && numbers[0].parse::<f64>().is_ok_and(|mean| (mean - 20.0).abs() < 0.2), "{numbers:?}");
}

#[test]
fn the_program_says_that_the_test_rows_are_predicted_no_better_than_by_the_mean() {
    let place = Place::new();
    // In time, the relation turns round, after the training and validation rows.
    let row = |row: usize| format!("{row},{0},{1}\n", noise(row, 0), noise(row, 0) * if row < 400 { 1.0 } else { -1.0 });
    place.write("rows.csv", "t,x,y\n".to_owned() + &(0..500).map(row).collect::<String>());
    let (output, stderr) = place.run("tabular", &[&["rows.csv", "--time", "t"][..], &FAST, &["model"]].concat());
    let warning = "warning: on the test rows, the squared error of the predictions is not lower than that of the mean";
    assert!(output.status.success() && stderr.contains(warning), "{stderr}");
}

/// Prices with a long tail, by a size.
fn prices(n_rows: usize) -> String {
    let row = |row: usize| format!("{},{}\n", noise(row, 0), 1000.0 * (1.5 * noise(row, 0) + 0.3 * noise(row, 1)).exp());
    "size,price\n".to_owned() + &(0..n_rows).map(row).collect::<String>()
}

const SMALL: [&str; 7] = ["--model", "mlp", "--epochs", "16", "--hidden", "16", "--lr"];

#[test]
fn the_scale_of_the_target_is_chosen_or_asked_for() {
    let place = Place::new();
    place.write("rows.csv", prices(1500));
    let run = |more: &[&str]| {
        let args = [&["rows.csv", "--out", "model", "--json", "out.json"][..], &SMALL, &["0.01"], more].concat();
        let (output, stderr) = place.run("tabular", &args);
        assert!(output.status.success(), "{stderr}");
        (String::from_utf8(output.stdout).expect("text"), stderr, place.json("out.json"))
    };
    for more in [&[][..], &["--target-scale", "auto", "--folds", "2"]] {
        let (shown, stderr, results) = run(more);
        assert!(stderr.contains("target scale: log, since") && shown.contains("validation rows is"), "{stderr} {shown}");
        assert!(results["target_scale"] == "log" && results["target_scale_reason"].is_string(), "{results}");
        assert_eq!(place.json("model/model.json")["target"]["scale"], "log");
    }
    let (_, stderr, results) = run(&["--target-scale", "standard"]);
    assert!(results["target_scale"] == "standard" && results["target_scale_reason"].is_null(), "{results}");
    assert!(!stderr.contains("short training"), "{stderr}");
    let (shown, stderr, _) = run(&["--target-scale", "log"]);
    assert!(stderr.contains("whose logarithm has") && shown.contains("of the standardised logarithms"), "{stderr} {shown}");
    place.succeed("predict", &["model", "rows.csv", "--out", "prices.csv"]);
    let text = fs::read_to_string(place.path("prices.csv")).expect("it was written");
    assert!(text.lines().skip(1).all(|line| line.parse::<f64>().is_ok_and(|price| (150.0..8000.0).contains(&price))), "{text}");

    // What has no logarithm, and what is no number.
    place.write("rows.csv", prices(200) + "0.5,0\n");
    let words = ["row 200", "`price`", "found 0", "above 0", "--target-scale standard"];
    place.refuse("tabular", &["rows.csv", "--target-scale", "log", "--out", "model"], &words);
    place.write(
        "rows.csv",
        "a,b\n".to_owned() + &(0..60).map(|row| format!("{row},{}\n", ["x", "y"][row % 2])).collect::<String>(),
    );
    for scale in ["auto", "standard", "log"] {
        let words = ["`b` has 2 classes", "--task number"];
        place.refuse("tabular", &["rows.csv", "--target-scale", scale, "--out", "model"], &words);
    }
}

#[test]
fn intervals_are_written_beside_predictions() {
    let place = Place::new();
    place.write("rows.csv", prices(1500));
    let args = ["rows.csv", "--out", "model", "--json", "out.json", "--intervals", "0.8"];
    let shown = place.succeed("tabular", &[&args[..], &SMALL, &["0.01"]].concat());
    let results = place.json("out.json");
    assert!(shown.contains("intervals") && shown.contains("for 80 % of the numbers; "), "{shown}");
    let coverage = results["test_interval_coverage"].as_f64().expect("a share");
    // Of 300 rows, and bounds from 150: four binomial deviations of both.
    assert!((coverage - 0.8).abs() < 4.0 * (0.16_f64 / 300.0 + 0.16 / 150.0).sqrt(), "{results}");
    assert_eq!(place.json("model/model.json")["intervals"], results["intervals"]);
    place.succeed("predict", &["model", "rows.csv", "--out", "prices.csv", "--json", "out.json"]);
    assert_eq!(place.json("out.json")["intervals"], 0.8);
    let text = fs::read_to_string(place.path("prices.csv")).expect("it was written");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("price,price_lower,price_upper"));
    let rows: Vec<Vec<f64>> = lines.map(|line| line.split(',').map(|cell| cell.parse().expect("a number")).collect()).collect();
    assert!(rows.len() == 1500 && rows.iter().all(|row| row[1] < row[0] && row[0] < row[2]), "{rows:?}");
    place.succeed("predict", &["model", "rows.csv", "--out", "prices.safetensors"]);
    let table = Table::open(place.path("prices.safetensors")).expect("a table");
    assert_eq!(table.column_names(), ["price_predicted", "price_lower", "price_upper"]);
    let first: Vec<f64> = table.rows::<f32>(0..1).expect("f32").iter().map(|&x| x.into()).collect();
    assert!(first.iter().zip(&rows[0]).all(|(a, b)| (a / b - 1.0).abs() < 1e-6), "{first:?}, {:?}", rows[0]);

    // Too few rows, no share, and no number.
    place.write("few.csv", prices(100));
    let words = ["`price`", "0.95", "at least 39 validation rows, there are 10", "--intervals"];
    place.refuse("tabular", &["few.csv", "--intervals", "0.95", "--folds", "1", "--out", "none"], &words);
    for share in ["0", "1", "90", "x"] {
        let (output, _) = place.run("tabular", &["few.csv", "--intervals", share]);
        check_usage_error(&output, &["--intervals", share], &["between 0 and 1"]);
    }
    place.write(
        "few.csv",
        "a,b\n".to_owned() + &(0..60).map(|row| format!("{row},{}\n", ["x", "y"][row % 2])).collect::<String>(),
    );
    let words = ["`b` has 2 classes", "prediction intervals", "leave the option out"];
    place.refuse("tabular", &["few.csv", "--intervals", "0.9", "--out", "none"], &words);
    assert!(!place.path("none/model.json").exists(), "nothing was written");
}

#[test]
fn numbers_are_shown_with_digits_that_say_something() {
    let place = Place::new();
    let said = |rows: &dyn Fn(usize) -> String, more: &[&str]| {
        place.write("rows.csv", "x,y\n".to_owned() + &(0..300).map(rows).collect::<String>());
        let args = ["rows.csv", "--target", "y", "--model", "mlp", "--epochs", "1", "--hidden", "4", "--out", "model"];
        place.run("tabular", &[&args[..], more].concat()).1
    };
    let target = |said: &str| said.lines().find(|line| line.starts_with("target: ")).map(str::to_owned).unwrap_or_default();
    let number = said(&|row| format!("{},{:.3}\n", noise(row, 0), 3.0 + noise(row, 1)), &["--target-scale", "standard"]);
    let longest = target(&number).split([' ', ',']).map(str::len).max();
    assert!(longest <= Some("deviation".len()), "{number}");
    let zero = said(&|row| format!("{},{}\n", noise(row, 0), ["-0", "1", "2", "0"][row % 4]), &[]);
    assert!(target(&zero).contains("3 classes: 0, 1, 2"), "{zero}");
    let number = |row: usize| if row == 7 { "1e30".to_owned() } else { noise(row, 0).to_string() };
    let huge = said(&|row| format!("{},{:e}\n", number(row), 1e30 * f64::from(noise(row, 1))), &[]);
    assert!(!huge.contains("00000000000"), "{huge}");
    let dropped = said(&|row| format!("{},{}\n", noise(row, 0), noise(row, 1)), &["--drop", "x"]);
    assert!(dropped.contains("fewer of them in `--drop`") && !dropped.contains("--delimiter"), "{dropped}");
}
