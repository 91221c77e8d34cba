//! Weights of rows and of classes, and thresholds.

use std::fs;

use brisk_loader::{RowSource, Rows};
use brisk_nn::tensor::Precision;
use brisk_tabular::{
    Calibration, ClassWeights, Columns, Error, Fitted, Fitting, Network, Preprocessing, Recipe, Scaling, TabularModel, Target,
    Threshold, ThresholdMetric,
};

use crate::gpu::cpu;
use crate::place::Place;
use crate::run::noise;

/// Rows of which about one in eight is of the second class, which `x` says something about.
fn rows(n: usize, seed: usize) -> Rows {
    let x: Vec<f32> = (0..n).map(|row| noise(row, seed)).collect();
    let labels = x.iter().enumerate().map(|(row, x)| f32::from(u8::from(x + 1.5 * noise(row, seed + 1) > 1.6))).collect();
    Rows::new(x, labels, 1).expect("a label for each row")
}

fn fitted(train: &Rows, valid: &Rows, change: impl FnOnce(Fitting<'_>) -> Fitting<'_>) -> Result<Fitted, Error> {
    let columns = Columns::numbers(["x"]);
    let preprocessing = Preprocessing::fit(&columns, train, Scaling::Standard)?;
    let target = Target::detect("y", &[], None, train)?.fitted_to("train", train)?;
    let of = |rows| preprocessing.over(&columns, rows).map(|rows| rows.with_target(&target));
    let (train, valid) = (of(train)?.to_rows("train")?, of(valid)?.to_rows("valid")?);
    let recipe = Recipe { max_epochs: 15, lr: 5e-3, batch_rows: 64, ..Recipe::of_one(Network::Mlp { hidden: vec![16] }, 2000) };
    let configure = Box::new(|trainer: brisk_train::Trainer<'static>, _| trainer.precision(Precision::F32));
    let fitting = change(Fitting { configure, ..Fitting::new(vec![recipe], 3) });
    fitting.fit(&cpu(2), preprocessing.clone(), target.clone(), &train, &valid)
}

fn mean_probability(model: &TabularModel, rows: &Rows) -> Result<f64, Error> {
    let predictions = model.predictor(&cpu(1))?.predict(&Columns::numbers(["x"]), rows)?;
    let of_second = predictions.probabilities().iter().skip(1).step_by(2);
    Ok(of_second.map(|&p| f64::from(p)).sum::<f64>() / rows.n_rows() as f64)
}

#[test]
fn probabilities_are_those_observed_whatever_the_classes_count() -> Result<(), Error> {
    let (train, valid, test) = (rows(3000, 0), rows(1500, 2), rows(3000, 4));
    let share = f64::from(test.labels().iter().sum::<f32>()) / 3000.0;
    assert!((0.05..0.25).contains(&share), "{share}");
    let mut log_losses = Vec::new();
    for class_weights in [ClassWeights::Observed, ClassWeights::Balanced] {
        let Fitted { model, .. } = fitted(&train, &valid, |fitting| Fitting { class_weights, ..fitting })?;
        let mean = mean_probability(&model, &test)?;
        assert!((mean - share).abs() < 0.03, "{class_weights:?}: {mean}, observed {share}");
        let shifts = &model.calibration().and_then(Calibration::classes).expect("classes").shifts;
        assert_eq!(shifts[1] < -0.5, class_weights == ClassWeights::Balanced, "{shifts:?}");
        let scores = model.evaluate(&model.rows(&Columns::numbers(["x"]), &test)?)?;
        log_losses.push(scores.get("log_loss").expect("a log loss"));
    }
    assert!((log_losses[0] - log_losses[1]).abs() < 0.02, "{log_losses:?}");
    Ok(())
}

/// Rows of weight 0 do not count anywhere, and a weight of 2 counts as two rows.
#[test]
fn weights_count_in_training_calibration_and_scores() -> Result<(), Error> {
    let (train, valid) = (rows(2000, 0), rows(800, 2));
    // The rows with labels that are turned round have weight 0.
    let turned = |rows: &Rows, weight: f32| {
        let of = |row: usize| row.is_multiple_of(3);
        let labels = rows.labels().iter().enumerate().map(|(row, label)| if of(row) { 1.0 - label } else { *label });
        let weights: Vec<f32> = (0..rows.n_rows()).map(|row| if of(row) { weight } else { 2.0 }).collect();
        Rows::new(rows.features().to_vec(), labels.collect::<Vec<f32>>(), 1)
            .and_then(|rows| rows.with_weights(weights))
            .expect("rows")
    };
    let columns = Columns::numbers(["x"]);
    let share = f64::from(valid.labels().iter().sum::<f32>()) / 800.0;
    let of_weights = fitted(&turned(&train, 0.0), &turned(&valid, 0.0), |fitting| fitting)?.model;
    let mean = mean_probability(&of_weights, &valid)?;
    assert!((mean - share).abs() < 0.03, "{mean}, observed {share}");
    let of_all = fitted(&turned(&train, 2.0), &turned(&valid, 2.0), |fitting| fitting)?.model;
    assert!(mean_probability(&of_all, &valid)? > share + 0.1, "a third of the labels are turned round");

    let weighted = of_weights.rows(&columns, turned(&valid, 0.0))?.to_rows("test")?;
    let kept: Vec<u32> = (0..800).filter(|row| row % 3 != 0).collect();
    let kept = brisk_loader::Subset::of_rows(of_weights.rows(&columns, &valid)?.to_rows("test")?, kept).expect("rows");
    let [found, expected] = [of_weights.evaluate(&weighted)?, of_weights.evaluate(&kept)?];
    for ((name, found), (_, expected)) in found.values.iter().zip(&expected.values) {
        assert!((found - expected).abs() < 1e-6, "{name}: {found}, expected {expected}");
    }
    let [found, expected] = [&weighted, &weighted].map(|rows| of_weights.evaluate_constant(rows, rows));
    assert_eq!(found?.values, expected?.values);
    let nothing = Rows::new(vec![1.0; 9], vec![0.0; 9], 1).and_then(|rows| rows.with_weights(vec![0.0; 9])).expect("rows");
    let error = of_weights.evaluate(&of_weights.rows(&columns, nothing)?).expect_err("all weights are 0");
    assert!(error.to_string().contains("all 9 weights are 0"), "{error}");
    Ok(())
}

#[test]
fn a_threshold_decides_in_the_folder_too() -> Result<(), Error> {
    let (train, valid, test) = (rows(3000, 0), rows(1500, 2), rows(1500, 4));
    let threshold = Some(ThresholdMetric::F1);
    let Fitted { model, .. } = fitted(&train, &valid, |fitting| Fitting { threshold, ..fitting })?;
    let at = model.threshold().expect("one was chosen");
    assert!(at.metric == ThresholdMetric::F1 && (0.02..0.5).contains(&at.value), "{at:?}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    model.save(folder.path())?;
    let loaded = TabularModel::load(folder.path())?;
    assert_eq!(loaded.threshold(), Some(at));
    let predictions = loaded.predictor(&cpu(1))?.predict(&Columns::numbers(["x"]), &test)?;
    let (mut right, mut found, mut all) = (0, 0, 0);
    for (row, &label) in test.labels().iter().enumerate() {
        let yes = predictions.numbers()[row] == 1.0;
        assert_eq!(
            (yes, predictions.class(row)),
            (predictions.probabilities()[2 * row + 1] > at.value, Some(if yes { "1" } else { "0" }))
        );
        (right, found, all) = (right + u32::from(yes && label == 1.0), found + u32::from(yes), all + u32::from(label == 1.0));
    }
    let f1 = 2.0 * f64::from(right) / f64::from(found + all);
    let rows = model.rows(&Columns::numbers(["x"]), &test)?;
    let accuracy = model.threshold_score(Threshold { metric: ThresholdMetric::Accuracy, ..at }, &rows)?;
    assert_eq!(model.evaluate(&rows)?.get("accuracy"), Some(accuracy), "all scores are those of the predictions");
    let [score, half] = [at, Threshold { value: 0.5, ..at }].map(|at| model.threshold_score(at, &rows));
    assert!((score? - f1).abs() < 1e-9 && f1 > half?, "{f1}");
    let path = folder.path().join("model.json");
    let text = fs::read_to_string(&path).expect("it was written");
    fs::write(&path, text.replacen("\"metric\": \"f1\"", "\"metric\": \"luck\"", 1)).expect("it can be written");
    let error = TabularModel::load(folder.path()).expect_err("there is no such metric").to_string();
    assert!(error.contains("threshold") && error.contains("luck"), "{error}");
    Ok(())
}

/// A table with weights, of which one cell is as given.
fn table(place: &Place, cell: &str) {
    let row = |row: usize| {
        let weight = if row == 70 { cell.to_owned() } else { (row % 4).to_string() };
        let class = if noise(row, 0) > 0.6 { "yes" } else { "no" };
        format!("{},{},{weight},{},{class}\n", noise(row, 0) + noise(row, 1), noise(row, 2), ["a", "b", "c"][row % 3])
    };
    place.write("rows.csv", "size,age,share,kind,ill\n".to_owned() + &(0..400).map(row).collect::<String>());
}

#[test]
fn weights_and_thresholds_are_options_of_the_program() {
    let place = Place::new();
    table(&place, "2.5");
    let fast = ["--model", "mlp", "--epochs", "6", "--hidden", "8", "--lr", "0.01", "--json", "out.json", "--out", "model"];
    let of = |options: &[&'static str]| [&["rows.csv", "--target", "ill"][..], options, &fast].concat();
    let options = ["--weight", "share", "--class-weights", "balanced", "--threshold", "balanced-accuracy", "--save-rows", "rows"];
    let shown = place.succeed("tabular", &of(&options));
    let (results, model) = (place.json("out.json"), place.json("model/model.json"));
    let threshold = &results["threshold"];
    assert_eq!((&threshold["metric"], &threshold["value"]), (&model["threshold"]["metric"], &model["threshold"]["value"]));
    assert!(threshold["test_score"].is_number() && threshold["test_score_at_half"].is_number(), "{results}");
    assert!(shown.contains("balanced accuracy") && shown.contains(" at 0.5"), "{shown}");
    let names: Vec<&str> =
        model["preprocessing"]["numbers"].as_array().expect("a list").iter().filter_map(|x| x["name"].as_str()).collect();
    assert_eq!(names, ["size", "age"], "a weight is no feature");
    let saved = brisk_table::Table::open(place.path("rows/test.safetensors")).expect("a table");
    assert!(saved.weights().is_some_and(|weights| weights.contains(&3.0)), "weights are saved");
    // Rows to predict need no weights.
    place.write("new.csv", "size,age,kind\n2,0,a\n-2,0,b\n");
    let shown = place.succeed("predict", &["model", "new.csv", "--out", "new_ill.csv"]);
    assert!(shown.contains("threshold") && shown.contains("balanced accuracy"), "{shown}");
}

#[test]
fn weights_and_thresholds_that_make_no_sense_are_refused() {
    let place = Place::new();
    let small = ["--model", "mlp", "--epochs", "1", "--hidden", "4", "--out", "model"];
    let refuse = |options: &[&str], words: &[&str]| {
        place.refuse("tabular", &[&["rows.csv"][..], options, &small].concat(), words);
        assert!(!place.path("model/model.json").exists(), "{options:?}: there is no model");
    };
    for cell in ["-1", "", "heavy", "inf"] {
        table(&place, cell);
        refuse(&["--target", "ill", "--weight", "share"], &["rows.csv, line 72, column 3 (`share`)", "weight"]);
    }
    table(&place, "1");
    refuse(&["--target", "ill", "--weight", "size", "--drop", "size"], &["`size`", "two roles"]);
    refuse(&["--target", "ill", "--weight", "mass"], &["`mass`", "\"size\""]);
    refuse(&["--target", "ill", "--weight", "share", "--monitor", "valid_loss"], &["valid_loss", "valid_log_loss"]);
    refuse(&["--target", "size", "--class-weights", "balanced"], &["`size` is a number", "weights of classes"]);
    refuse(&["--target", "size", "--threshold", "f1"], &["`size` is a number", "two classes"]);
    refuse(&["--target", "kind", "--threshold", "f1"], &["`kind` has 3 classes", "two classes"]);
    let text = fs::read_to_string(place.path("rows.csv")).expect("it was written");
    let zeros = text.lines().enumerate().map(|(line, row)| {
        let cells: Vec<&str> = row.split(',').collect();
        [cells[0], cells[1], if line == 0 { "share" } else { "0" }, cells[3], cells[4]].join(",") + "\n"
    });
    place.write("rows.csv", zeros.collect::<String>());
    refuse(&["--target", "ill", "--weight", "share"], &["`share`", "all 400 weights are 0"]);
}
