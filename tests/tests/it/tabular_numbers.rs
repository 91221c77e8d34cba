//! Regressions by the examples `tabular` and `predict`: calibration.

use std::fs;

use crate::place::Place;
use crate::run::noise;

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
